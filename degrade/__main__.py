"""``degrade``, and ``python -m degrade``: looks after Ctrl-C before more is imported than this file needs."""

import sys


def main() -> int:
    """The command line; returns its exit code."""
    try:
        from degrade import cli

        return cli.main()
    except KeyboardInterrupt:
        print("degrade: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
