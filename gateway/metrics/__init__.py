"""What operators are told in figures: counted where things happen, read when somebody asks, named in one table.

Counting is a step in a dictionary and never waits. No label names a person, a chat or a text; each has few values. The
library that writes the format is loaded with the API only.
"""
