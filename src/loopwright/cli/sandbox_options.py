"""The options of ``loopwright sandbox run``."""

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli import options


def folder_or_digest(text: str) -> str:
    """Read what names a workspace; nothing is refused, for it would be the current folder."""
    return _given(text, "a path or digest")


def name_or_digest(text: str) -> str:
    """Read what names a root or a package folder."""
    return _given(text, "a name or digest")


def _given(text: str, expected: str) -> str:
    if not text:
        raise typer.BadParameter(f"expected {expected}, got nothing")
    return text


Command = Annotated[list[str], typer.Argument(metavar="CMD...", help="Program and arguments.")]
Limits = Annotated[
    str,
    typer.Option(
        metavar="NAME=VALUE,...",
        help="wall, cpu in seconds; memory, output, drain, disk in bytes (K, M, G); pids.",
    ),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|DIGEST",
        parser=folder_or_digest,
        help="Folder to copy in as /workspace, which stays as it is; or the digest of a "
        "workspace that the platform has.",
    ),
]
Stdin = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=options.path,
        help="Standard input of the command; by default empty.",
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|DIGEST",
        parser=name_or_digest,
        help="Root file system, from `sandbox root import`; by default /usr of this machine.",
    ),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|DIGEST",
        parser=name_or_digest,
        help="Folder of Python packages, from `sandbox root import --packages`; may be given "
        "several times, the first goes before the others.",
    ),
]
StrictSeed = Annotated[
    int | None,
    typer.Option(
        "--strict",
        metavar="SEED",
        min=0,
        max=(1 << 64) - 1,
        help="Entropy from this seed and a wall clock that stands still: runs are equal.",
    ),
]
Loopback = Annotated[
    bool, typer.Option("--loopback", help="Give the jail a loopback interface of its own.")
]
Degraded = Annotated[
    bool,
    typer.Option(
        "--degraded",
        help="Run without root or control groups, with memory and CPU limited by process only.",
    ),
]
