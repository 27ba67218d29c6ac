"""Whether the same program on the same workspace does the same in every run, plain and strict."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.figures import Count, Figure
from benchmarks.peers import run_folder
from benchmarks.programs import FILES, Program, Reads, programs
from loopwright.adapters.local_jail import LocalJail
from loopwright.contracts.workspaces import CommandRequest, Limits, Strict, Workspace
from loopwright.core.protocols import Jail

REPEATS = 50
LIMITS = Limits(wall_seconds=120)
"""A clock that a busy host does not run out."""
MAX_NAMED = 5


def run() -> Iterator[Figure]:
    """Repeat every program, and count those whose runs were not all equal."""
    with (
        run_folder() as folder,
        LocalJail(folder / "jails", num_slots=os.cpu_count() or 1) as jail,
    ):
        for strict in (None, Strict(seed=1)):
            yield from _figures(differing(jail, REPEATS, strict), strict)


def differing(jail: Jail, repeats: int, strict: Strict | None) -> dict[Reads, list[Program]]:
    """Give the programs that did not do the same each time, by what they read."""
    every = programs()
    numbers = [number for _ in range(repeats) for number in range(len(every))]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        runs = threads.map(lambda number: outcome(jail, every[number], strict), numbers)
        outcomes: list[set[str]] = [set() for _ in every]
        for number, digest in zip(numbers, runs, strict=True):
            outcomes[number].add(digest)
    found = {reads: list[Program]() for reads in Reads}
    for program, different in zip(every, outcomes, strict=True):
        if len(different) > 1:
            found[program.reads].append(program)
    return found


def outcome(jail: Jail, program: Program, strict: Strict | None) -> str:
    """Digest how a program ended, what it wrote, and the workspace that it left."""
    request = CommandRequest(argv=program.argv, limits=LIMITS, strict=strict)
    done = jail.run(Workspace.of(FILES), request)
    result = done.result
    ended = (result.exit_code, result.signal, result.timed_out, result.oom, result.output_limit)
    parts = (ended, result.stdout, result.stderr, done.workspace.digest, done.skipped)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def must_be_equal(reads: Reads, strict: Strict | None) -> bool:
    """Tell whether programs that read this are promised to do the same."""
    return reads is Reads.NOTHING or (strict is not None and reads is not Reads.UNPINNED)


def _figures(found: dict[Reads, list[Program]], strict: Strict | None) -> Iterator[Figure]:
    every = programs()
    for reads in Reads:
        total = sum(program.reads is reads for program in every)
        name = f"programs that read {reads}, {'strict' if strict else 'plain'}: differing"
        has_target = must_be_equal(reads, strict)
        yield Count(name, len(found[reads]), total, _names(found[reads]), has_target)


def _names(found: Sequence[Program]) -> str:
    return ", ".join(program.name for program in found[:MAX_NAMED])
