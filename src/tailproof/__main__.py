"""The command ``tailproof``, also as ``python -m tailproof``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C ends it with one word, also while it is still importing."""
    try:
        from tailproof.cli import main as run

        run()
    except KeyboardInterrupt:
        print("tailproof: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
