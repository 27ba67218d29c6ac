"""The commands that start, watch and operate loops, as processes."""

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from tests.cli.conftest import Command, run_command
from tests.fakes import FakeActivities

CONFIG = """
iteration: {num_tasks: 3, group_size: 4}
train: {num_minibatches: 1}
evaluation: {at_start: false, at_end: false}
num_iterations: 2
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "loop.yaml").write_text(CONFIG)
    return "loop.yaml"


async def held(fakes: FakeActivities) -> asyncio.Event:
    """Let the loop stand still in its first update; give what lets it go on."""
    return fakes.hold.setdefault("trainer.train_step", asyncio.Event())


async def test_started_loop_is_shown_until_its_end(loopwright: Command, config: str) -> None:
    done = await loopwright("start", config, "--id", "first", "--watch")
    assert done.status == 0, done.err
    assert "started loop first" in done.out
    assert "iteration 2: first answer 50.0 %" in done.out


async def test_json_is_all_that_is_on_stdout(loopwright: Command, config: str) -> None:
    done = await loopwright("start", config, "--id", "first", "--watch", "--json")
    assert done.json["loop_id"] == "first"
    assert done.json["result"]["num_iterations"] == 2
    assert "started loop first" in done.err


async def test_second_start_finds_the_same_loop_running(
    loopwright: Command, config: str, fakes: FakeActivities, tmp_path: Path
) -> None:
    go_on = await held(fakes)
    await loopwright("start", config, "--id", "first")
    again = await loopwright("start", config, "--id", "first", "--json")
    assert (again.status, again.json["is_new"]) == (0, False)
    (tmp_path / "loop.yaml").write_text(CONFIG + "seed: 5\n")
    other = await loopwright("start", config, "--id", "first")
    assert other.status == 2
    assert "seed 0 -> 5" in other.err
    go_on.set()


async def test_bad_configuration_starts_nothing(loopwright: Command, tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("sede: 1\nseed: -1\n")
    done = await loopwright("start", "loop.yaml", "--id", "first")
    assert done.status == 2
    assert "loop.yaml:1: sede: unknown key; did you mean seed?" in done.err
    assert "loop.yaml:2: seed: expected an integer" in done.err
    assert (await loopwright("list", "--json")).json == {"loops": []}


async def test_running_loop_is_operated(
    loopwright: Command, config: str, fakes: FakeActivities
) -> None:
    go_on = await held(fakes)
    await loopwright("start", config, "--id", "first")
    for words in (["pause", "first"], ["resume", "first"], ["stop", "first"]):
        done = await loopwright(*words, "--json")
        assert (done.status, done.json["loop_id"]) == (0, "first"), done.err
    go_on.set()
    watched = await loopwright("watch", "first", "--json")
    assert watched.status == 0
    assert '"outcome": "stopped"' in watched.out.splitlines()[-1]


async def test_running_loop_is_set_and_described_as_it_stands(
    loopwright: Command, config: str, fakes: FakeActivities
) -> None:
    go_on = await held(fakes)
    await loopwright("start", config, "--id", "first")
    done = await loopwright("set", "first", "train.learning_rate=1e-6", "num_iterations=1")
    assert done.status == 0, done.err
    assert done.out == "loop first goes on with the new train.learning_rate, num_iterations\n"
    go_on.set()
    await loopwright("watch", "first")
    described = (await loopwright("describe", "first", "--json")).json
    assert described["config"]["train"]["learning_rate"] == 1e-6
    assert len(described["progress"]["results"]) == 1


async def test_episodes_of_a_running_loop_are_requeued_and_cancelled(
    loopwright: Command, config: str, fakes: FakeActivities
) -> None:
    fakes.hold["episode.take_turns"] = asyncio.Event()
    await loopwright("start", config, "--id", "first")
    while fakes.counts()["episode.take_turns"] < 12:
        await asyncio.sleep(0.02)
    for index, verb in enumerate(("requeue", "cancel")):
        episode = f"loop/first/iteration/000001/task/program_steps.t0/episode/{index}"
        done = await loopwright(verb, episode, "--json")
        assert (done.status, done.json) == (0, {"loop_id": "first", "episode": episode}), done.err
    refused = await loopwright("cancel", "first")
    assert (refused.status, refused.out) == (2, "")
    assert "episode: expected its workflow id" in refused.err
    fakes.hold["episode.take_turns"].set()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("train.learning_rate", "expected KEY=VALUE, got 'train.learning_rate'"),
        ("=1", "expected KEY=VALUE, got '=1'"),
        ("train.learning_rate=[1", "train.learning_rate: not YAML"),
        ("seed=1", "loop first refuses: seed: cannot change while a loop runs"),
        ("train.learning_rate=fast", "train.learning_rate: expected a valid number, got 'fast'"),
    ],
)
async def test_change_that_a_loop_cannot_take_is_refused(
    loopwright: Command, config: str, fakes: FakeActivities, word: str, expected: str
) -> None:
    go_on = await held(fakes)
    await loopwright("start", config, "--id", "first")
    done = await loopwright("set", "first", word)
    assert (done.status, done.out) == (2, "")
    assert expected in done.err
    go_on.set()


async def test_described_loop_shows_iterations_and_configuration(
    loopwright: Command, config: str
) -> None:
    await loopwright("start", config, "--id", "first", "--watch")
    done = await loopwright("describe", "first")
    assert "loop first: completed" in done.out
    assert "iteration 1: first answer 50.0 %" in done.out
    assert "num_iterations: 2" in done.out
    described = (await loopwright("describe", "first", "--json")).json
    assert described["config"]["num_iterations"] == 2
    assert len(described["progress"]["results"]) == 2


async def test_stopped_loop_is_shown_as_stopped_by_every_command(
    loopwright: Command, config: str, fakes: FakeActivities
) -> None:
    go_on = await held(fakes)
    await loopwright("start", config, "--id", "first")
    while not fakes.counts()["trainer.train_step"]:
        await asyncio.sleep(0.02)
    await loopwright("stop", "first", "--now")
    watched = await loopwright("watch", "first")
    go_on.set()
    assert watched.out.splitlines()[-1] == "loop first stopped (12 episodes)"
    assert "loop first: stopped" in (await loopwright("describe", "first")).out
    while (shown := await loopwright("list", "--json")).json["loops"][0]["status"] == "stopping":
        await asyncio.sleep(0.05)
    assert shown.json["loops"][0]["status"] == "stopped"
    assert "first " in (listed := (await loopwright("list")).out)
    assert "stopped" in listed


async def test_evaluations_between_iterations_are_described_and_reported(
    loopwright: Command, tmp_path: Path
) -> None:
    evaluation = "evaluation: {at_start: false, at_end: false, every: 1, num_tasks: 2, samples: 1}"
    text = CONFIG.replace("evaluation: {at_start: false, at_end: false}", evaluation)
    (tmp_path / "loop.yaml").write_text(text)
    watched = await loopwright("start", "loop.yaml", "--id", "first", "--watch")
    described = await loopwright("describe", "first")
    for number in (1, 2):
        line = f"policy after iteration {number} (version {number}): first answer"
        assert line in watched.out
        assert line in described.out
    await loopwright("report", "first", "--output", "first.html")
    assert "after iteration 2" in (tmp_path / "first.html").read_text()


async def test_failed_loop_fails_whoever_watches(
    loopwright: Command, config: str, fakes: FakeActivities
) -> None:
    fakes.failures["trainer.train_step"] = [
        ApplicationError("loss is nan", type="TrainingDiverged", non_retryable=True)
    ]
    done = await loopwright("start", config, "--id", "first", "--watch")
    assert done.status == 1
    assert "loopwright: loop first failed: iteration 1 failed: " in done.err


async def test_report_is_written_where_it_is_asked_for(
    loopwright: Command, config: str, tmp_path: Path
) -> None:
    await loopwright("start", config, "--id", "first", "--watch")
    done = await loopwright("report", "first", "--output", "out/first.html", "--json")
    assert done.status == 0, done.err
    assert done.json["report"] == "out/first.html"
    assert "the object store cannot be reached" in done.err
    assert "<svg" in (tmp_path / "out/first.html").read_text()


@pytest.mark.parametrize("command", ["watch", "describe", "pause", "resume", "stop", "report"])
async def test_unknown_loop_is_named(loopwright: Command, command: str) -> None:
    done = await loopwright(command, "nothing")
    assert (done.status, done.out) == (2, "")
    assert "there is no loop 'nothing'" in done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["list"], "no platform runs in .loopwright: start one with `loopwright up`"),
        (["start", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file"),
        (["config", "check", "."], "expected a YAML file, got a directory"),
        (["worker", "cook"], "pool 'cook' does not exist; there are control"),
        (["policy", "build", "no/such/place"], "has no parent directory"),
        (["policy", "build", "/proc/policy"], "/proc/policy cannot be made: No such file"),
        (["policy", "build", "p" * 300], "cannot be made: File name too long"),
        (["policy", "build", "out", "--seed", str(2**64)], "'--seed'"),
        (["demo", "--iterations", "0"], "greater than or equal to 1"),
        (["strat"], "No such command 'strat'"),
        (["list", "--limit", "x"], "'--limit': expected a valid integer, got 'x'"),
        (["list", "--state", ""], "'--state': expected a path, got nothing"),
        (["report", "first", "--output", ""], "'--output': expected a path, got nothing"),
    ],
)
async def test_bad_usage_is_said_in_words(words: list[str], expected: str, tmp_path: Path) -> None:
    done = await run_command(*words, folder=tmp_path, environment={})
    assert (done.status, done.out) == (2, "")
    assert expected in done.err


async def test_configuration_without_problems_is_shown_as_resolved(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("train: {learning_rate: 1e-6}\n")
    check = ("config", "check", "loop.yaml")
    done = await run_command(*check, "--json", folder=tmp_path, environment={})
    assert done.json["config"]["train"]["learning_rate"] == 1e-6
    assert done.json["problems"] == []


async def test_problems_of_a_configuration_are_json_too(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").write_text("sede: 1\n")
    check = ("config", "check", "loop.yaml")
    done = await run_command(*check, "--json", folder=tmp_path, environment={})
    assert done.status == 2
    assert done.json["problems"] == ["loop.yaml:1: sede: unknown key; did you mean seed?"]


async def test_version_is_said(tmp_path: Path) -> None:
    done = await run_command("--version", folder=tmp_path, environment={})
    assert (done.status, done.out) == (0, f"loopwright {version('loopwright')}\n")


async def test_command_that_is_interrupted_while_it_loads_says_no_more(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # else a shell may ignore it\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from loopwright.cli.__main__ import main\n"
        "main()\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"loopwright: interrupted\n")
