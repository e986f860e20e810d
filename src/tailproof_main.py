"""The command ``tailproof``, which answers Ctrl-C in one word from its first moment on."""

import sys

__all__ = ["main"]


def main() -> None:
    """Import the library, which takes a second, and run the command."""
    try:
        from tailproof.cli import main as run

        run()
    except KeyboardInterrupt:
        print("tailproof: stopped", file=sys.stderr)
        sys.exit(130)
