"""What every store must do, whichever files or servers are behind it."""
