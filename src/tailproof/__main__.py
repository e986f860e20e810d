"""``python -m tailproof`` is the command ``tailproof``."""

from tailproof.cli import main

main()
