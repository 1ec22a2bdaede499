"""The command line, in process and as the real command."""
