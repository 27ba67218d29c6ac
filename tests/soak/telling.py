"""What a soak prints."""

from pathlib import Path


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def show_logs(folder: Path) -> None:
    """Print the end of every log."""
    for path in sorted(folder.glob("*.log")):
        lines = path.read_text(errors="replace").splitlines()[-15:]
        say("\n".join([f"--- {path.name}", *lines]))
