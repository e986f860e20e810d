"""Print the oldest dependencies that pyproject.toml allows, as pins for pip.

Guests want newer companions than ours and are left out: their lower bounds are those
that they were written against.
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("parquet", "dask", "ray")
TOOLS = ("hypothesis", "pytest", "pytest-xdist")


def main() -> None:
    """Turn every ``>=`` of the library, of extras and of the tools that test it into ``==``."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for extra in EXTRAS for line in optional[extra]]
    wanted += [line for line in optional["dev"] if re.split(r"[^\w-]", line)[0] in TOOLS]
    for line in wanted:
        print(line.replace(">=", "=="))


if __name__ == "__main__":
    main()
