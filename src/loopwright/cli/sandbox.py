"""``loopwright sandbox run``: one command in a fresh jail, its result as one record."""

from typing import TYPE_CHECKING

import typer

from loopwright.cli import options, sandbox_options, sandbox_root, sandbox_verify

if TYPE_CHECKING:
    from loopwright.contracts.workspaces import CommandResult, WorkspaceFile
    from loopwright.core.protocols import JailRun

app = typer.Typer(no_args_is_help=True, help="Commands in the sandbox.")
app.add_typer(sandbox_root.app, name="root")
app.command("verify")(sandbox_verify.verify)


@app.callback()
def sandbox() -> None:
    """Commands in the sandbox."""


@app.command("run")
def run(
    command: sandbox_options.Command,
    limits: sandbox_options.Limits = "",
    workspace: sandbox_options.Workspace = None,
    stdin: sandbox_options.Stdin = None,
    root: sandbox_options.Root = None,
    packages: sandbox_options.Packages = None,
    strict: sandbox_options.StrictSeed = None,
    has_loopback: sandbox_options.Loopback = False,
    is_degraded: sandbox_options.Degraded = False,
    state: options.State = options.STATE,
    is_json: options.Json = False,
) -> None:
    """Run one command in a fresh jail; exit 0 when the jail did its work, whatever the command did.

    The command sees /usr of this machine or another root, its workspace and no network. A limit it
    exceeds ends it. Where a platform runs, it keeps the workspace afterwards, for its digest to be
    used again.

    Example: loopwright sandbox run --limits wall=5,memory=256M -- python3 -c 'print(6 * 7)'
    """
    from loopwright.adapters.jail_roots import jails_of_commands
    from loopwright.adapters.local_jail import LocalJail
    from loopwright.cli.output import print_json
    from loopwright.cli.sandbox_input import read_request
    from loopwright.cli.sandbox_mounts import with_mounts
    from loopwright.cli.sandbox_workspaces import SandboxWorkspaces
    from loopwright.contracts.workspaces import Strict

    request = read_request(command, limits=limits, workspace=workspace, stdin=stdin)
    roots = sandbox_root.open_roots()
    request = with_mounts(request, roots, root=root, packages=packages or ())
    seed = None if strict is None else Strict(seed=strict)
    request = request.model_copy(update={"strict": seed, "has_loopback": has_loopback})
    workspaces = SandboxWorkspaces(state)
    given = workspaces.read(workspace)
    with LocalJail(
        jails_of_commands(),
        num_slots=1,
        may_be_degraded=is_degraded,
        blobs=workspaces.blobs,
        roots=roots,
    ) as jail:
        done = jail.run(given, request)
    is_kept = workspaces.keep(done.workspace)
    if is_json:
        print_json(_record(done, is_kept=is_kept))
    else:
        _show(done.result)
        if is_kept:
            typer.echo(f"workspace {done.workspace.digest}", err=True)


def _record(done: "JailRun", *, is_kept: bool) -> dict[str, object]:
    """Give the result with text for bytes, and the digest of what it left."""
    record: dict[str, object] = done.result.model_dump(exclude={"stdout", "stderr"})
    return record | {
        "stdout": done.result.stdout.decode("utf-8", "replace"),
        "stderr": done.result.stderr.decode("utf-8", "replace"),
        "workspace": {
            "digest": done.workspace.digest,
            "files": [_listed(file) for file in done.workspace.files],
            "skipped": [
                {"path": _printable(skip.path), "reason": _printable(skip.reason)}
                for skip in done.skipped
            ],
            "is_kept": is_kept,
        },
    }


def _listed(file: "WorkspaceFile") -> str:
    return _printable(f"{file.path}/" if file.kind == "folder" else file.path)


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _show(result: "CommandResult") -> None:
    """Pass the output on, and say on stderr how the command ended."""
    typer.echo(result.stdout, nl=False)
    typer.echo(result.stderr, nl=False, err=True)
    typer.echo(
        f"{_ending(result)}; {result.wall_seconds:.3f} s, CPU {result.cpu_seconds:.3f} s, "
        f"memory {result.peak_memory_bytes >> 20} MiB{_killed(result)}",
        err=True,
    )


def _killed(result: "CommandResult") -> str:
    if not result.num_oom_kills:
        return ""
    return f", which ran out: processes killed: {result.num_oom_kills}"


def _ending(result: "CommandResult") -> str:
    for name in ("timed_out", "oom", "output_limit"):
        if getattr(result, name):
            return f"ended by a limit: {name}"
    if result.signal is not None:
        return f"ended by signal {result.signal}"
    return f"exit code {result.exit_code}"
