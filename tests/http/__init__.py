"""The API over real HTTP on loopback."""
