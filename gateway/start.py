"""Where the command `goclaw` begins: a Ctrl-C before everything is loaded ends it quietly too."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from gateway.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
