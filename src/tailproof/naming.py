"""Names in the order in which people write them."""

import re

__all__ = ["natural_key"]


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts 10 after 9.

    >>> sorted(["a10", "a9", "b"], key=natural_key)
    ['a9', 'a10', 'b']
    """
    parts = [part for part in re.split(r"(\d+)", name) if part]
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
