"""The platform on this machine, as text and as JSON; its keys are left out."""

from typing import Any

from loopwright.embedded.info import StackInfo

_KEYS = {"s3_access_key", "s3_secret_key", "engine_api_key"}


def as_json(info: StackInfo) -> dict[str, Any]:
    """Give the status without the keys."""
    content = info.model_dump(mode="json", exclude=_KEYS)
    for name, child in info.children.items():
        content["children"][name]["pid"] = child.pid
    return {**content, "is_healthy": info.is_healthy}


def summary(info: StackInfo) -> str:
    """Write a line for each process and each address."""
    width = max((len(name) for name in info.children), default=0)
    lines = [f"platform {info.state}  (supervisor: process {info.supervisor.pid})"]
    for name, child in info.children.items():
        line = f"  {name:{width}}  {child.state:11}"
        line += f"  process {child.pid}" if child.pid else ""
        if child.restarts:
            line += f"  {child.restarts} restarts, the last after {child.last_exit}"
        lines.append(line.rstrip())
    lines += [
        f"Temporal  {info.temporal_address}",
        f"Web UI    {info.ui_url}",
        f"S3        {info.s3_endpoint}, bucket {info.s3_bucket}",
        f"engine    {info.engine_url}",
        f"state     {info.state_dir}",
    ]
    return "\n".join(lines)
