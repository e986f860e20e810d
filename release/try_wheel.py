"""Install the wheel of a folder with every Python that is here, and take a stranger's first steps.

``python release/try_wheel.py DIST FOLDER``; the environments stay in FOLDER. PYTHONS names the
interpreters, as for `make test-pythons`.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from interpreters import found

README = r"""
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

shown = r"```python\n(.*?)```\n\n```text\n(.*?)```"
blocks = re.findall(shown, Path("README.md").read_text(encoding="utf-8"), re.DOTALL)
assert blocks, "README.md must show what its Python prints"
names = {}
for code, output in blocks:
    with redirect_stdout(StringIO()) as said:
        exec(code, names)
    assert said.getvalue() == output, said.getvalue()
names["agent"].close()
"""
REWARDS = "variant,revenue\n" + "".join(f"{'AB'[i % 2]},{i % 7 * (i % 3)}\n" for i in range(400))
CALIBRATE = ("calibrate", "visits.csv", "--reward", "revenue", "--arm", "variant")


def main(dist: Path, folder: Path) -> None:
    """Try the wheel outside the source tree, so that only its own files are imported."""
    (wheel,) = (file.resolve() for file in dist.glob("*.whl"))
    shutil.rmtree(folder, ignore_errors=True)
    for version, python in found().items():
        place = folder / version
        place.mkdir(parents=True)
        shutil.copy("README.md", place)
        (place / "visits.csv").write_text(REWARDS)
        env = place.resolve() / "env"
        subprocess.run([python, "-m", "venv", env], check=True)
        own, command = env / "bin" / "python", env / "bin" / "tailproof"
        subprocess.run([own, "-m", "pip", "install", "--quiet", wheel], check=True)
        subprocess.run([own, "-I", "-c", README], cwd=place, check=True)
        for words in (("--version",), ("list",), ("--help",), CALIBRATE):
            subprocess.run([command, *words], cwd=place, check=True)
        uvx = str(Path(sys.executable).with_name("uvx"))
        alone = (uvx, "--quiet", "--python", own, "--from", wheel, "tailproof")
        subprocess.run([*alone, *CALIBRATE], cwd=place, check=True)
        print(f"{wheel.name} works in an empty environment of Python {version}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
