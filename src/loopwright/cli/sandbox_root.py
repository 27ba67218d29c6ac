"""``loopwright sandbox root``: root file systems and package folders that jails can have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopwright.cli import options

if TYPE_CHECKING:
    from loopwright.adapters.root_store import Root
    from loopwright.adapters.roots import Roots

app = typer.Typer(no_args_is_help=True, help="Root file systems and package folders for jails.")

_TOLD = 10
"""Entries that were left out and are named to a person."""


@app.command("import")
def import_root(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name to use it by.")],
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            parser=options.path,
            help="Directory of files, or an OCI image layout: its directory or a tar of it.",
        ),
    ],
    is_packages: Annotated[
        bool, typer.Option("--packages", help="PATH was filled by `pip install --target`.")
    ] = False,
    tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Which image of a layout, where it has several."),
    ] = None,
    is_json: options.Json = False,
) -> None:
    """Import a root file system, or a folder of Python packages, for jails of this host.

    It is kept under a digest of its files: importing equal files again changes nothing. Devices,
    pipes, owners, set-id bits and times are not kept. Roots stand in LOOPWRIGHT_ROOTS_DIR.

    Example: loopwright sandbox root import debian debian.oci.tar
    """
    from loopwright.cli.output import print_json, say
    from loopwright.contracts.failures import UserError

    is_layout = path.is_file() or (path / "index.json").is_file() or (path / "oci-layout").is_file()
    if is_packages and (is_layout or tag is not None):
        raise UserError(f"--packages: expected a folder that pip filled, and {path} is an image")
    if tag is not None and not is_layout:
        raise UserError(f"--tag: expected an OCI image layout, and {path} is none")
    roots = open_roots()
    if is_packages:
        root = roots.import_packages(path, name)
    elif is_layout:
        root = roots.import_oci_layout(path, name, tag)
    else:
        root = roots.import_folder(path, name)
    say(_line(root), is_json=is_json)
    for line in _left_out(root):
        say(line, is_json=is_json)
    if is_json:
        print_json(_record(root))


@app.command("list")
def list_roots(is_json: options.Json = False) -> None:
    """List the root file systems and package folders of this host.

    Example: loopwright sandbox root list
    """
    from loopwright.cli.output import print_json, say

    roots = open_roots()
    found = roots.list_roots()
    for root in found:
        say(_line(root), is_json=is_json)
    if not found:
        say(f"no roots in {roots.folder}", is_json=is_json)
    if is_json:
        print_json([_record(root) for root in found])


@app.command("remove")
def remove_root(
    name: Annotated[str, typer.Argument(metavar="NAME|DIGEST", help="As `list` shows it.")],
    is_json: options.Json = False,
) -> None:
    """Remove a name, and what it names with the last one; a digest goes with all its names.

    Example: loopwright sandbox root remove debian
    """
    from loopwright.cli.output import print_json, say
    from loopwright.contracts.failures import RootMissing, UserError

    try:
        root = open_roots().remove(name)
    except RootMissing as error:
        raise UserError(str(error)) from error
    say(f"removed {name}", is_json=is_json)
    if is_json:
        print_json({"removed": name, "digest": root.digest})


def open_roots() -> "Roots":
    """Open the roots of this host, where the settings have them."""
    from loopwright.adapters.roots import Roots
    from loopwright.workers.settings import Settings

    return Roots(Settings.from_environment().roots_dir)


def _line(root: "Root") -> str:
    size = f"{root.record.num_entries} entries, {root.record.num_bytes / (1 << 20):.1f} MiB"
    return f"{root.digest}  {root.kind:8}  {size}  {' '.join(root.names)}"


def _left_out(root: "Root") -> list[str]:
    record = root.record
    lines = [f"left out: {entry.path} ({entry.reason})" for entry in record.skipped[:_TOLD]]
    rest = record.num_skipped - len(lines)
    return [*lines, f"left out: {rest} more, see --json"] if rest else lines


def _record(root: "Root") -> dict[str, object]:
    described = root.record.model_dump(mode="json", exclude={"schema_version"})
    return {
        "digest": root.digest,
        "names": list(root.names),
        "folder": str(root.folder),
    } | described
