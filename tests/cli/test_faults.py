"""Commands and files under bad luck: full disks, stops, odd files, narrow and plain terminals."""

import io
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from tailproof import Identification, Result, Uniform, __version__, environments, noise, simulate
from tailproof.cli import app
from tailproof.cli.output import identification_table, regret_table
from tailproof.figures import pulls_figure, regret_figure
from tailproof.results.files import whole_file
from tailproof.simulation.cells import Cell

SIMULATE = "simulate --policy oful --filter 5 --horizon 60 --paths 6 --environment 'neutral(dim=3)'"
IDENTIFY = "identify --policy 'lin_gap_e(norm_bound=2)' --paths 6 --environment 'near_tie(angle=1)'"
IDENTIFY += " --noise normal --max-pulls 900"
COMMANDS = {"result.npz": SIMULATE, "identification.npz": IDENTIFY}


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def process(
    command: str, largest_file: int | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command on its own, perhaps where no file may be larger than a full disk allows."""
    return subprocess.run(
        [sys.executable, "-m", "tailproof", *shlex.split(command)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
        preexec_fn=None if largest_file is None else partial(_limit, largest_file),
    )


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("largest", [100, 2000], ids=["no cell fits", "cells fit, the result not"])
@pytest.mark.parametrize("file", COMMANDS)
def test_a_full_disk_loses_no_table_and_blocks_nothing(
    file: str, largest: int, tmp_path: Path
) -> None:
    command = f"{COMMANDS[file]} --out {tmp_path / 'new'}"
    fits = largest > 100
    if fits and file == "result.npz":
        largest = 12_000  # 6 paths and 60 checkpoints of regret and error
    done = process(command, largest_file=largest)
    assert done.returncode == 2, done.stderr
    table, complaint = done.stdout.decode(), done.stderr.decode()
    assert re.search(r"oful|lin_gap_e", table)
    assert complaint.startswith("tailproof: ")
    assert "File too large" in complaint
    assert "Traceback" not in complaint
    kept = list(tmp_path.glob("new/cells/*.cell"))
    assert bool(kept) == fits
    assert (tmp_path / "new").exists() == fits
    (tmp_path / "new").mkdir(exist_ok=True)  # an empty folder is as good as none
    again = run(command)
    assert table.splitlines()[-3].split()[-2] in again
    assert file in tree(tmp_path / "new")
    assert tree(tmp_path) == {"new"} | {f"new/{name}" for name in tree(tmp_path / "new")}
    assert "new/cells" not in tree(tmp_path)


@pytest.mark.parametrize("file", COMMANDS)
def test_a_stopped_command_goes_on(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailproof.simulation.cells.CHUNK", 2)
    command, finished = f"{COMMANDS[file]} --out {tmp_path / 'new'}", 0
    from tailproof.simulation import sweeps

    keep = sweeps._write_cell

    def stop(*given: Any) -> None:
        nonlocal finished
        if finished == 2:
            raise KeyboardInterrupt
        finished += 1
        keep(*given)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_write_cell", stop)
        assert "tailproof: stopped" in run(command, code=130)
    cells = list(tmp_path.glob("new/cells/*.cell"))
    assert len(cells) == 2
    (tmp_path / "new" / file).write_bytes(b"half a resul")
    kept: list[str] = []
    monkeypatch.setattr(sweeps, "_write_cell", lambda folder, key, found: kept.append(key))
    run(command)
    assert len(kept) == (4 if file == "result.npz" else 1)
    assert not {path.stem for path in cells} & set(kept)
    assert (tmp_path / "new" / file).read_bytes() != b"half a resul"
    assert not (tmp_path / "new" / "cells").exists()


def test_a_full_disk_leaves_no_half_picture(tmp_path: Path) -> None:
    rewards = np.random.default_rng(0).standard_cauchy(400).round(4)
    (tmp_path / "r.csv").write_text("\n".join(["x", *map(str, rewards)]))
    command = f"calibrate {tmp_path / 'r.csv'} --reward x --plot {tmp_path / 'p.png'}"
    done = process(command, largest_file=1000)
    assert done.returncode == 2, done.stderr
    assert b"Pull each chosen arm" in done.stdout
    assert tree(tmp_path) == {"r.csv"}


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "new" / "cells").mkdir(parents=True)
    (tmp_path / "new" / "letter.txt").write_text("dear")
    output = run(f"{SIMULATE} --out {tmp_path / 'new'}", code=2)
    assert "new contains other files: letter.txt" in output
    assert tree(tmp_path) == {"new", "new/cells", "new/letter.txt"}
    (tmp_path / "file").touch()
    assert "out must be a folder that does not" in run(f"{SIMULATE} --out {tmp_path}/file", code=2)


@pytest.mark.parametrize(
    ("encoding", "command", "code"),
    [("ascii", SIMULATE, 0), ("cp1252", "simulate --help", 0), ("ascii", "simulate --noise θ", 2)],
)
def test_output_survives_any_terminal(encoding: str, command: str, code: int) -> None:
    done = process(command, PYTHONIOENCODING=encoding, PYTHONWARNINGS="error")
    assert done.returncode == code
    assert done.stderr == b"" if code == 0 else done.stderr.startswith(b"tailproof: noise must be")
    assert code or b"oful" in done.stdout


@pytest.mark.parametrize("columns", [30, 40, 60, 80])
def test_narrow_terminals_lose_nothing(columns: int, result: Result) -> None:
    long = {"filtered(oful(noise_scale=0.45), repeats=15)": result.curves["u"]}
    named = Result(pulls=result.pulls, curves=long, settings=result.settings)
    for table in (
        regret_table("A title", "noise", named),
        identification_table("A title", identification("a_name_that_is_rather_long")),
    ):
        wide, narrow = shown(table, 200), shown(table, columns)
        assert max(map(len, narrow.splitlines())) <= columns
        assert columns_of(narrow) == columns_of(wide)
        assert "long" in columns_of(narrow)[0] or "oful" in columns_of(narrow)[0]


def shown(table: Table, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def columns_of(text: str) -> list[str]:
    """Each column with its folds undone."""
    lines = [re.split("[│┃]", line)[1:-1] for line in text.splitlines() if line[0] in "│┃"]
    return ["".join("".join(column).split()) for column in zip(*lines, strict=True)]


@pytest.mark.parametrize(("package", "command"), [("typer", "--help"), ("numpy", "simulate")])
def test_ctrl_c_while_importing_is_one_word(package: str, command: str) -> None:
    script = f"""
import sys
class Stop:
    def find_spec(self, name, path, target=None):
        if name == "{package}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from tailproof.__main__ import main
main()
"""
    words = [sys.executable, "-c", script, command]
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"tailproof: stopped\n")


def test_the_version() -> None:
    assert run("--version") == f"tailproof {__version__}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--policy 'oful(noise_scale={[]:1})'", r"'\{\[\]: 1\}' is neither a value nor a known"),
        (f"--policy 'oful(bonus={'-' * 3000}1)'", "policy must be a name or a call"),
        (f"--policy '{'oful(' * 3000}'", "policy must be a name or a call"),
        (f"--horizon {'9' * 400}", r"horizon must be a whole number of .* at most 1e\+15, got 99"),
        (f"--horizon {10**19}", r"horizon must be a whole number of .* at most 1e\+15, got 10"),
        (f"--paths {10**11}", r"paths must be a whole number of .* at most 1e\+07, got 10"),
        ("--workers 100000", "workers must be a whole number of at least 0 and at most"),
        ("--workers -1", "workers must be a whole number of at least 0"),
        ("--engine spark", "engine must be one of serial, processes, dask, ray, compiled, cuda"),
        ("--environment 'neutral(fresh=0)'", "fresh must be true or false, got 0"),
        (f"--filter {'9' * 400}", "repeats must be"),
    ],
)
def test_absurd_input_gets_one_sentence(command: str, words: str, tmp_path: Path) -> None:
    output = run(f"simulate {command} --out {tmp_path / 'new'}", code=2)
    assert re.search(words, output)
    assert not tree(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        f"--max-pulls {10**19}",
        f"--max-pulls {'9' * 400} --block 41",
        f"--paths {10**11}",
        "--policy rage --environment 'k_armed(locations=())'",
        "--policy rage --environment 'k_armed(locations=(1,))'",
        f"--block {'9' * 400}",
    ],
)
def test_absurd_input_of_identify_gets_one_sentence(command: str) -> None:
    assert re.fullmatch(r"tailproof: \w+ must be .*\n", run(f"identify {command}", code=2))


def test_no_workers_means_all_cores_and_words_have_any_case() -> None:
    command = "simulate --policy oful --horizon 9 --paths 2 --environment "
    same = {run(f"{command} 'neutral({arms})'") for arms in ("fresh=False", "fresh=false")}
    same.add(run(f"{command} 'Neutral(fresh=FALSE)' --workers 0"))
    assert len(same) == 1


@pytest.fixture(scope="module")
def result() -> Result:
    bandit = environments.neutral(noise.Cauchy(), arms=4, dim=3)
    return simulate({"u": Uniform()}, bandit, horizon=4, paths=2)


def forged(header: Any, **arrays: Any) -> bytes:
    """A file whose members hold what the caller likes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in {"header": np.array(header), **arrays}.items():
            if isinstance(data, np.ndarray):
                member = io.BytesIO()
                np.save(member, data)
                data = member.getvalue()
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


def header_of_shape(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    fields = {"shape": shape, "fortran_order": False, "descr": "<f8"}
    np.lib.format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


def packed() -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, header=np.array("{}"), pulls=np.zeros(10**7))
    return stream.getvalue()


GOOD = {"format": "tailproof result 1", "policies": ["u"], "settings": {"paths": 2}}


@pytest.mark.parametrize(
    "data",
    [
        packed(),
        forged("[" * 100_000),
        forged(json.dumps(GOOD), pulls=header_of_shape((10**15,))),
        forged(json.dumps(GOOD), pulls=header_of_shape((2**62, 8))),
        forged(json.dumps(GOOD), pulls=b"\x93NUMPY\x01\x00\x08\x00{'a': (("),
        forged(json.dumps(GOOD), pulls=np.arange(3), regret0=np.ones((2, 4)), decisions0=b"[0]"),
        forged(
            json.dumps(GOOD),
            pulls=np.arange(3),
            regret0=np.ones((2, 4)),
            decisions0=np.arange(3),
        ),
        forged(json.dumps(GOOD | {"settings": {"paths": 10**400}}), pulls=np.arange(3)),
        forged(json.dumps(GOOD | {"policies": {"u": 1}}), pulls=np.arange(3)),
    ],
    ids=[
        "packed",
        "deep",
        "too large",
        "overflowing",
        "no header",
        "foreign member",
        "wrong shape",
        "large number",
        "no list",
    ],
)
@pytest.mark.parametrize("kind", [Result, Identification])
def test_odd_files_are_refused(kind: type[Result], data: Any, tmp_path: Path) -> None:
    file = tmp_path / "odd.npz"
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"path .* is not a '.*' file, or it is damaged"):
        kind.load(file)


def test_a_file_holds_no_more_than_its_size(tmp_path: Path) -> None:
    bandit = environments.k_armed(noise.Cauchy(), locations=(0.0, 0.0))
    flat = simulate({"u": Uniform()}, bandit, horizon=100, paths=100)
    file = flat.save(tmp_path / "flat.npz")
    assert file.stat().st_size > flat.curves["u"].regret.nbytes
    assert not Result.load(file).curves["u"].regret.any()


def test_entries_that_share_bytes_are_refused(result: Result, tmp_path: Path) -> None:
    """Entries inside one another unpack to far more than the size of the file."""

    def packed(array: Any) -> bytes:
        stream = io.BytesIO()
        np.save(stream, array)
        return stream.getvalue()

    file, small = result.save(tmp_path / "r.npz"), io.BytesIO()
    with zipfile.ZipFile(small, "w") as archive:
        archive.writestr("inside.npy", packed(np.zeros(1000)))
        inside = archive.getinfo("inside.npy")
    local = small.getvalue()[: archive.start_dir]  # without its directory
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("outside.npy", packed(np.frombuffer(local, np.uint8)))
        inside.header_offset = archive.start_dir - len(local)
        archive.filelist.append(inside)
    with pytest.raises(ValueError, match="or it is damaged"):
        Result.load(file)


def test_a_kill_while_saving_leaves_no_half_file(tmp_path: Path) -> None:
    def stopped() -> None:
        with whole_file(tmp_path / "r.npz") as file:
            file.write(b"half")
            file.flush()
            assert not (tmp_path / "r.npz").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not tree(tmp_path)


def test_titles_and_names_may_hold_dollars(result: Result) -> None:
    named = Result(
        pulls=result.pulls,
        curves={"cost in $ or $\\frac": result.curves["u"]},
        settings=result.settings,
    )
    regret_figure({"$ and $^": named}).savefig(io.BytesIO())
    found = {0.1: identification("a $_ b"), 0.2: identification("a $_ b")}
    pulls_figure({"$ and $^": found}).savefig(io.BytesIO())


def identification(name: str) -> Identification:
    from tailproof import Verdicts

    ones = np.ones(2, dtype=np.int64)
    verdicts = Verdicts(recommended=ones, correct=ones > 0, pulls=ones, decisions=ones)
    return Identification(verdicts={name: verdicts}, settings={"paths": 2})


def test_a_cell_that_is_a_folder_costs_one_sentence(tmp_path: Path) -> None:
    plan = environments.k_armed(noise.Cauchy(), locations=(0.0, 1.0))
    once: Callable[[], Result] = partial(
        simulate, {"u": Uniform()}, plan, horizon=5, paths=2, out=tmp_path
    )
    first = once()
    (cell,) = tmp_path.glob("*.cell")
    cell.unlink()
    (cell / "inside").mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="a finished cell could not be kept: .*Is a directory"):
        again = once()
    np.testing.assert_array_equal(first.curves["u"].regret, again.curves["u"].regret)


def test_the_largest_simulation_starts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(cell: Cell[Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Cell, "run", stop)
    bandit = environments.k_armed(noise.Cauchy(), locations=(0.0, 1.0))
    with pytest.raises(KeyboardInterrupt):
        simulate({"u": Uniform()}, bandit, horizon=10**15, paths=10**7, checkpoints=9)
