"""The Postgres engine held against a real server: how one is started for a test run, and what is promised of it."""
