"""The command ``tailproof``, also as ``python -m tailproof``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback, even during imports."""
    try:
        from tailproof.cli import main as run

        run()
    except KeyboardInterrupt:
        print("tailproof: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
