"""The store in a Postgres database: several processes, every verb one statement or one transaction.

`open_postgres` connects, `migrations` brings a schema up to date, `adopt` takes in what a directory held. Nothing here
knows how files are kept.
"""

from store.postgres.adopt import adopt
from store.postgres.store import PostgresStore, open_postgres

__all__ = ["PostgresStore", "adopt", "open_postgres"]
