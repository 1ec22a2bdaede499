"""Where the command `goclaw` begins: a Ctrl-C before everything is loaded ends it quietly too, and so does a full disk.

What cannot be written to stdout is said once, in a sentence. Whoever reads a pipe and has read enough is not told.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def main() -> None:
    if sys.stdout is None or sys.stderr is None:  # closed by whoever started it
        sys.stdout, sys.stderr = sys.stdout or nowhere(), sys.stderr or nowhere()
    try:
        from gateway.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in CANNOT_WRITE or error.filename is not None:
            raise
        cannot_write(error)
    finally:
        flush()


def nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - until the process ends


def cannot_write(error: OSError) -> None:
    print(f"error: the output cannot be written: {os.strerror(error.errno or 0)}", file=sys.stderr)  # noqa: T201
    sys.exit(1)


def flush() -> None:
    """What the interpreter would write at its end is written now, or never: it must not fail then."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
