"""The store in a directory: one process, one journal line for each change, on the disk before anybody hears of it.

`open_json` takes a directory into use, `read_json` looks at one without touching it, `gather` packs all of it for
another store. Nothing here knows a database.
"""

from store.files.gather import gather
from store.files.store import JsonStore, Look, open_json, read_json

__all__ = ["JsonStore", "Look", "gather", "open_json", "read_json"]
