"""The platform on one machine with scripted engines in the place of vLLM."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import benchmarks
from benchmarks.scripted.environment import install
from loopwright.contracts.base import Contract
from loopwright.contracts.queues import Pool
from loopwright.embedded.children import build_plan
from loopwright.embedded.credentials import load_credentials
from loopwright.embedded.options import StackOptions
from loopwright.embedded.plan import ChildSpec, HttpOk, Plan, ReadyFile
from loopwright.embedded.ports import ChosenPorts, Ports
from loopwright.embedded.stack import Stack
from loopwright.embedded.state_folder import StateFolder

_ROOT = Path(benchmarks.__file__).parent.parent


class ScriptedOptions(Contract):
    """What a benchmark chooses about its platform."""

    engines: tuple[str, ...] = ("main",)
    """Names of the engines; each has a worker of its own."""
    num_episode_workers: int = 1
    max_episodes: int = 256
    """Episode activities at once of each worker."""
    sandbox_slots: int = 2
    latency_seconds: float = 0.0
    """Time that a completion takes."""
    is_holding: bool = False
    """Whether completions wait until they are let go."""
    train_seconds: float | None = None
    """Time that an update takes at a trainer that only waits; None trains."""


def scripted_stack(
    state: Path,
    options: ScriptedOptions,
    *,
    change: Callable[[Plan], Plan] = lambda plan: plan,
) -> Stack:
    """Give the platform of a state folder; nothing is started yet.

    Args:
        state: its state folder.
        options: what it is made of.
        change: makes a last change to the plan.
    """
    folder = StateFolder(state.resolve())

    def make_plan() -> Plan:
        ports = ChosenPorts.choose(folder, Ports())
        plan = build_plan(folder, _stack_options(options), ports, load_credentials(folder))
        ports.remember(folder)
        return change(_scripted(plan, folder, options))

    return Stack(state, make_plan=make_plan)


def engine_urls(base_url: str, options: ScriptedOptions) -> dict[str, str]:
    """Give the URL of each engine by its name; the first has no path of its own."""
    first, *others = options.engines
    return {first: base_url} | {name: f"{base_url}/{name}" for name in others}


def calls_file(state: Path) -> Path:
    """Name the file that the engines write each turn asked for to."""
    return state.resolve() / "calls.txt"


def with_environment(child: ChildSpec, variables: Mapping[str, str]) -> ChildSpec:
    """Add variables to a child's environment."""
    return child.model_copy(update={"environment": {**child.environment, **variables}})


def python_path(*folders: Path) -> str:
    """Put folders and this repository before what the path has now."""
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, (*map(str, folders), str(_ROOT), before)))


def _stack_options(options: ScriptedOptions) -> StackOptions:
    return StackOptions(max_episodes=options.max_episodes, sandbox_slots=options.sandbox_slots)


def _scripted(plan: Plan, folder: StateFolder, options: ScriptedOptions) -> Plan:
    """Put the scripted engines in the place of vLLM, and multiply the workers."""
    urls = engine_urls(plan.connections.engine_url, options)
    variables = {
        "PYTHONPATH": python_path(install(folder.root / "packages")),
        "LOOPWRIGHT_ENGINE_URLS": ",".join(f"{name}={url}" for name, url in urls.items()),
    }
    children: list[ChildSpec] = []
    for child in plan.children:
        if child.name == "engine":
            children.append(_engine(plan, folder, options))
        elif child.stage == 0:
            children.append(child)
        else:
            children += _copies(with_environment(child, variables), folder, options)
    return plan.model_copy(update={"children": tuple(children)})


def _engine(plan: Plan, folder: StateFolder, options: ScriptedOptions) -> ChildSpec:
    url = plan.connections.engine_url
    command = [sys.executable, "-m", "benchmarks.scripted", "--port", url.rpartition(":")[2]]
    command += ["--engines", *options.engines[1:], "--latency", str(options.latency_seconds)]
    command += ["--calls", str(calls_file(folder.root)), *["--hold"] * options.is_holding]
    return ChildSpec(
        name="engine",
        command=tuple(command),
        environment={
            "VLLM_API_KEY": plan.connections.engine_api_key,
            "PYTHONPATH": python_path(),
            "PYTHONSAFEPATH": "1",
        },
        health=(HttpOk(url=f"{url}/health"),),
    )


def _copies(
    worker: ChildSpec, folder: StateFolder, options: ScriptedOptions
) -> Sequence[ChildSpec]:
    """Give a worker for each engine, as many for episodes as asked for, and one that trains."""
    if worker.name == f"{Pool.ENGINE}-worker":
        first, *others = options.engines
        named = {worker.name: first} | {f"{worker.name}-{name}": name for name in others}
        return [
            _copy(worker, folder, name, {"LOOPWRIGHT_ENGINE": engine})
            for name, engine in named.items()
        ]
    if worker.name == f"{Pool.TRAINER}-worker" and options.train_seconds is not None:
        command = (sys.executable, "-m", "benchmarks.scripted.trainer", str(options.train_seconds))
        return [worker.model_copy(update={"command": command})]
    if worker.name == f"{Pool.EPISODE}-worker":
        names = [f"{worker.name}-{i + 1}" for i in range(1, options.num_episode_workers)]
        return [_copy(worker, folder, name, {}) for name in (worker.name, *names)]
    return [worker]


def _copy(
    worker: ChildSpec, folder: StateFolder, name: str, variables: Mapping[str, str]
) -> ChildSpec:
    ready = folder.ready(name)
    copy = worker.model_copy(update={"name": name, "health": (ReadyFile(path=ready),)})
    return with_environment(copy, {**variables, "LOOPWRIGHT_READY_FILE": str(ready)})
