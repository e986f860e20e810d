"""Install the wheel of a folder into an empty environment and run the README's examples there.

``python release/try_wheel.py DIST FOLDER``; the environment stays in FOLDER.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path


def main(dist: Path, folder: Path) -> None:
    """Try the wheel outside the source tree, so that only its own files are imported."""
    (wheel,) = dist.glob("*.whl")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder / "env", with_pip=True)
    scripts = folder.resolve() / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
    place = folder / "empty"
    place.mkdir()
    shutil.copy("README.md", place)
    run = "import doctest, sys; sys.exit(doctest.testfile('README.md', module_relative=False, "
    run += "optionflags=doctest.NORMALIZE_WHITESPACE).failed)"
    subprocess.run([python, "-I", "-c", run], cwd=place, check=True)
    for command in (["--version"], ["list"], ["--help"]):
        subprocess.run([scripts / "tailproof", *command], cwd=place, check=True)
    print(f"{wheel.name} works in an empty environment")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
