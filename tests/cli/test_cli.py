"""The command line, as a user types it."""

import csv
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailproof import (
    OFUL,
    Filtered,
    Identification,
    MeanOfMedians,
    Result,
    Uniform,
    bestarm,
    environments,
    noise,
    recipes,
)
from tailproof.cli import app
from tailproof.research.paper import STUDIES

ROOT = Path(__file__).parents[2]
SMALL = "--horizon 60 --paths 3 --environment 'neutral(arms=4, dim=3)'"


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "120", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return done.output


def test_simulate_prints_a_table() -> None:
    output = run(f"simulate --policy oful --policy ucb1 {SMALL}")
    assert "Cumulative regret after 60 pulls, 3 paths" in output
    assert re.search(r"oful .* 60", output)
    assert re.search(r"ucb1 .* 60", output)


def test_simulate_writes_results(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    command = f"simulate --policy oful --filter 15 --block 5 --seed 3 --plot --out {out} {SMALL}"
    assert str(out) in run(command)
    assert sorted(path.name for path in out.iterdir()) == ["regret.png", "result.npz", "table.csv"]
    result = Result.load(out / "result.npz")
    filtered = Filtered(OFUL(), repeats=15, estimator=MeanOfMedians(block=5))
    assert result.settings["policies"] == {"oful": repr(OFUL()), "oful, filtered": repr(filtered)}
    assert result.settings["seed"] == 3
    with (out / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["policy"] for row in rows] == ["oful", "oful, filtered"]
    assert float(rows[0]["mean"]) == result.mean("oful")[-1]
    before = (out / "result.npz").read_bytes()
    assert "out must be a folder that does not exist yet" in run(command, code=2)
    assert (out / "result.npz").read_bytes() == before


def test_the_same_command_gives_the_same_numbers() -> None:
    assert run(f"simulate --policy oful {SMALL}") == run(f"simulate --policy oful {SMALL}")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "--policy nonsense",
            "policy must be one of .*, oful, .*, xy_allocation, got 'nonsense'",
        ),
        ("--policy 'oful('", r"policy must be a name or a call like name\(key=1\), got 'oful\('"),
        ("--policy '3'", "policy must be a name or a call"),
        (
            "--policy 'oful(wrong=1)'",
            r"oful\(wrong=1\): .*wrong.*; it takes noise_scale, norm_bound",
        ),
        ("--policy 'oful(ridge=-1)'", "ridge must be a finite number at least 1e-08, got -1"),
        ("--policy 'oful(ridge=x)'", "'x' is neither a value nor a known name"),
        (
            "--policy 'filtered(oful)'",
            r"filtered\(oful\): missing a required .*argument: 'repeats'",
        ),
        ("--policy oful --policy oful", "policy must be given only once, got 'oful'"),
        ("--filter 0", "repeats must be a whole number of at least 1.*, got 0"),
        ("--filter 5 --block 9", "block must be at most 5, the number of samples, got 9"),
        ("--block 9", "--block needs --filter"),
        ("--noise student_t", "student_t: missing a required .*argument: 'df'"),
        (
            "--noise 'student_t(df=0)'",
            "df must be a number at least 0.0001 and at most 1e.08, got 0",
        ),
        ("--noise weibull", "noise must be one of cauchy, changing"),
        (
            "--environment moon",
            "environment must be one of k_armed, near_tie, neutral, orthant, unit_ball, got 'moon'",
        ),
        (
            "--environment 'k_armed(locations=())'",
            "locations must be a sequence of at least two numbers",
        ),
        ("--environment 'k_armed(locations=5)'", "locations must be a sequence"),
        (
            "--environment \"k_armed(locations=('a',))\"",
            "locations must be an array of numbers",
        ),
        ("--environment 'neutral(fresh=1)'", "fresh must be true or false, got 1"),
        ("--horizon 0", "horizon must be a whole number of at least 1 .*, got 0"),
        ("--paths -3", "paths must be a whole number of at least 1 .*, got -3"),
        ("--seed -1", "seed"),
        ("--plot", "--plot needs --out"),
        ("--horizon many", "--horizon.*valid integer"),
    ],
)
def test_bad_input_gets_one_sentence(command: str, words: str, tmp_path: Path) -> None:
    out = "" if "--plot" in command else f"--out {tmp_path / 'new'}"
    output = run(f"simulate --horizon 10 --paths 1 {out} {command}", code=2)
    assert re.search(words, " ".join(output.replace("│", " ").split())), output
    assert "Traceback" not in output
    assert not (tmp_path / "new").exists()


def test_identify_prints_and_writes(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = f"identify --block 41 --delta 0.1 --paths 5 --seed 3 --out {out} "
    command += "--policy 'lin_gap_e(norm_bound=2, ridge=0.1)' --environment 'near_tie(angle=1)'"
    output = run(command)
    assert "Finding the best arm" in output
    assert str(out) in output
    found = Identification.load(out / "identification.npz")
    plain, filtered = found.settings["policies"].values()
    assert plain == repr(bestarm.LinGapE(norm_bound=2, ridge=0.1, delta=0.1))
    tame = bestarm.behind_filter(
        bestarm.LinGapE(norm_bound=2, ridge=0.1, delta=0.1),
        noise.Cauchy(),
        block=41,
        max_pulls=100_000,
    )
    assert filtered == repr(tame)
    assert found.settings["seed"] == 3
    assert "out must be a folder that does not exist yet" in run(command, code=2)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--policy oful", "names no best arm; the policies of tailproof.bestarm do"),
        ("--policy 'filtered(rage, repeats=3)' --delta 0.1", "--delta needs best-arm policies"),
        ("--policy rage --policy rage", "policy must be given only once, got 'rage'"),
        ("--delta 2", "delta must be a number above 0 and below 1, got 2"),
        ("--block 4", "block must be odd, got 4"),
        ("--environment neutral", "environment must be linear, with fixed arms"),
        (
            "--max-pulls 0",
            "max_pulls must be a whole number of at least 1 and at most 1e+15, got 0",
        ),
    ],
)
def test_identify_refuses_bad_input_in_one_sentence(command: str, words: str) -> None:
    assert words in " ".join(run(f"identify --paths 1 {command}", code=2).split())


def test_an_unwritable_folder_is_a_sentence() -> None:
    output = run("simulate --horizon 10 --paths 1 --out /dev/null/x", code=2)
    assert output.startswith("tailproof: ")


def test_rewards_and_arms_are_different_columns(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,y\n1,a\n2,b\n")
    output = run(f"calibrate {tmp_path / 'r.csv'} --reward x --arm x", code=2)
    assert output == "tailproof: arm and reward name the same column, x\n"


def test_a_missing_file_is_named_without_its_error_number() -> None:
    output = run("serve no-such-file.toml", code=2)
    assert output == "tailproof: no-such-file.toml: No such file or directory\n"


def test_list_names_one_kind() -> None:
    output = run("list --kind aims")
    assert all(f" {name} " in output for name in recipes.names("aim"))
    assert " oful " not in output
    assert output == run("list --kind aim")
    assert " oful " in run("list --kind policies")
    assert "kind must be one of policy, guest, " in run("list --kind laws", code=2)


def test_list_finds_a_word() -> None:
    output = run("list CAUCHY")
    assert re.search("noise .* cauchy .*Student's t with one", output)
    assert "k3-ties" in output  # its description has the word
    assert " normal " not in output
    assert "k3-ties" not in run("list cauchy --kind noise")
    assert run("list zebra", code=2) == (
        "tailproof: no name or description contains 'zebra'; tailproof list shows all\n"
    )


def test_list_names_everything() -> None:
    words = set(re.findall(r"[\w.-]+", run("list")))
    assert words >= set(STUDIES)
    for kind in ("policy", "estimator", "noise", "environment"):
        assert words >= set(recipes.names(kind))


def test_help_starts_with_what_a_team_needs() -> None:
    places = [run("--help").index(f" {name} ") for name in ("calibrate", "serve", "demo", "log")]
    assert places == sorted(places)
    assert places[-1] < run("--help").index(" simulate ") < run("--help").index(" reproduce ")


def test_help_fills_the_line() -> None:
    output = run("calibrate --help")
    assert "Missing rewards are counted and left out." in output


def test_specs_are_python_calls_in_any_case() -> None:
    policy = recipes.build(
        "policy", "Filtered(OFUL(bonus=0), repeats=9, estimator=mean_of_medians(block=3))"
    )
    assert policy == Filtered(OFUL(bonus=0), repeats=9, estimator=MeanOfMedians(block=3))
    assert recipes.build("noise", "studentt(0.5, scale=2)") == noise.StudentT(0.5, scale=2)
    bandit = recipes.build("environment", "k_armed(locations=[0, -1.5])", noise.Cauchy())
    assert bandit == environments.k_armed(noise.Cauchy(), locations=(0, -1.5))


def test_a_name_with_two_meanings_is_of_the_kind_around_it() -> None:
    assert recipes.build("policy", "filtered(uniform, repeats=3)") == Filtered(Uniform(), repeats=3)
    mixture = noise.Mixture((noise.Uniform(), noise.Normal()), (0.5, 0.5))
    assert recipes.build("noise", "mixture((uniform, normal), (0.5, 0.5))") == mixture


def test_a_wrong_setting_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"^k_armed\(places=3\): .*; it takes locations, motion$"):
        recipes.build("environment", "k_armed(places=3)", noise.Cauchy())


def test_specs_run_no_code(tmp_path: Path) -> None:
    for text in (
        "__import__('os').getcwd()",
        "oful(bonus=open('x'))",
        "oful(**{})",
        "(oful)(1)(2)",
    ):
        with pytest.raises(ValueError, match=r"must|neither"):
            recipes.build("policy", text)


@pytest.mark.parametrize("command", [str(command.name) for command in app.registered_commands])
def test_every_command_has_help_and_is_in_the_readme(command: str) -> None:
    assert len(run(f"{command} --help").splitlines()) > 5
    assert f"tailproof {command}" in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_numbers_of_the_readme_are_true(tmp_path: Path) -> None:
    out = tmp_path / "r"
    run(f"reproduce overview --out {out}")
    readme = (ROOT / "README.md").read_text()
    for df in ("3", "1.02", "1", "0.5"):
        result = Result.load(out / "results" / "overview" / f"regret-df-{df}.npz")
        means = [round(row["mean"]) for row in result.summary().values()]
        line = next(line for line in readme.splitlines() if line.startswith(f"| df = {df} "))
        assert [int(cell) for cell in line.split("|")[2:5]] == means


@pytest.mark.slow
def test_the_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (ROOT / "README.md").read_text().splitlines()
    typed = [line.partition(" #")[0] for line in lines if line.startswith("tailproof ")]
    commands = [line.removeprefix("tailproof ") for line in typed]
    assert len(commands) >= 3
    for command in commands:
        run(command)
    assert (tmp_path / "trial" / "regret.png").exists()


@pytest.mark.slow
def test_the_papers_regrets_agree_with_the_reference() -> None:
    """Eighteen comparisons within three standard errors, as the table prints them.

    False alarms: both sides are means of 10 paths with estimated deviations, so a difference is
    Student-t with 9 to 18 degrees of freedom, beyond 3 with probability 0.015 to 0.008. For 18
    of them that is 13 to 24 % with a new seed; the seed is fixed, so the test alarms only when a
    change moves the results.
    """
    output = run("compare --paths 10")
    differences = [float(text) for text in re.findall(r"([+-]\d+\.\d) s\.e\.", output)]
    assert len(differences) == 18
    assert max(map(abs, differences)) <= 3
