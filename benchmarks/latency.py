"""How long one command takes, from asking for it to its result and files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Absent, Figure, Latency, Ratio
from benchmarks.peers import find_bubblewrap, plain_nsjail, run_plain
from benchmarks.timing import Case, median_seconds, timed
from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import PYTHON, CommandRequest, Workspace
from loopwright.core.protocols import Jail

TRUE = ("/bin/true",)
COLD_PYTHON = ("/usr/bin/python3", "-c", "pass")
WARM_PYTHON = (*PYTHON, "-c", "pass")
REPEATS = 40
PAUSE_SECONDS = 0.03
"""Time between runs, in which the next jail is made."""
LAUNCHERS = ("native", "nsjail")


def measure(folder: Path) -> Iterator[Figure]:
    """Measure jails that wait for their command, and their peers, in turns."""
    bubblewrap = find_bubblewrap()
    with ExitStack() as stack:
        nsjail = stack.enter_context(plain_nsjail(folder))
        cases: dict[str, Case] = {
            "plain true": timed(lambda: run_plain(TRUE)),
            "plain python": timed(lambda: run_plain(COLD_PYTHON)),
            "plain nsjail true": timed(lambda: nsjail(TRUE)),
            "plain nsjail python": timed(lambda: nsjail(COLD_PYTHON)),
        }
        if not isinstance(bubblewrap, str):
            cases["bubblewrap true"] = timed(lambda: run_plain((*bubblewrap, *TRUE)))
            cases["bubblewrap python"] = timed(lambda: run_plain((*bubblewrap, *COLD_PYTHON)))
        for name in LAUNCHERS:
            cold, warm = (stack.enter_context(_jail(folder, name)) for _ in range(2))
            cases |= _jailed(name, cold, warm)
        medians = median_seconds(cases, repeats=REPEATS, pause_seconds=PAUSE_SECONDS)
    yield from _figures(medians)
    if isinstance(bubblewrap, str):
        yield Absent("bubblewrap", bubblewrap)


def run_jailed(jail: Jail, argv: Sequence[str]) -> None:
    """Run a command in a jail; it must succeed."""
    done = jail.run(Workspace(), CommandRequest(argv=tuple(argv)))
    if done.result.exit_code != 0:
        raise RuntimeError(f"{argv[0]} ended with {done.result}")


def _jailed(name: str, cold: Jail, warm: Jail) -> dict[str, Case]:
    """Give the cases of one launcher; in ``warm`` an interpreter waits."""
    return {
        f"{name} true": timed(lambda: run_jailed(cold, TRUE)),
        f"{name} python": timed(lambda: run_jailed(cold, COLD_PYTHON)),
        f"{name} warm": timed(lambda: run_jailed(warm, WARM_PYTHON)),
    }


def _jail(folder: Path, launcher: str) -> LocalJail:
    return LocalJail(folder / "jails", num_slots=1, launcher=launcher)


def _figures(medians: Mapping[str, float]) -> Iterator[Figure]:
    true, python = medians["plain true"], medians["plain python"]
    for name in LAUNCHERS:
        yield Latency(f"/bin/true, {name} jail", medians[f"{name} true"], 4e-3, true)
        yield Latency(f"Python started before, {name} jail", medians[f"{name} warm"], 7e-3, true)
        started = medians[f"{name} warm"]
        yield Ratio(f"Python started before, {name} jail / plain Python", started, python)
        cold = medians[f"{name} python"]
        yield Ratio(f"Python, {name} jail / plain", cold, python, at_most=1.6)
    for name in ("bubblewrap", "plain nsjail"):
        if f"{name} true" in medians:
            yield Ratio(f"/bin/true, {name} / plain", medians[f"{name} true"], true)
            yield Ratio(f"Python, {name} / plain", medians[f"{name} python"], python)
