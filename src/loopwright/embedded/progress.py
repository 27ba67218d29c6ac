"""What has changed between two looks at the platform, in lines for people."""

from loopwright.embedded.info import ChildInfo, ChildState, StackInfo, StackState


def changes(before: StackInfo | None, after: StackInfo) -> list[str]:
    """Describe what happened to each child since ``before``."""
    lines: list[str] = []
    is_starting = after.state in (StackState.STARTING, StackState.RUNNING)
    children = list(after.children.items())
    for name, child in children if is_starting else reversed(children):
        known = before.children.get(name) if before else None
        if known is None or (known.state, known.pid) != (child.state, child.pid):
            lines += _line(name, child)
    is_new = before is None or before.state is not after.state
    if is_new and after.state is StackState.STOPPING:
        lines.insert(0, "stopping")
    return lines


def _line(name: str, child: ChildInfo) -> list[str]:
    match child.state:
        case ChildState.STARTING:
            return [f"{name}: starting (process {child.pid})"]
        case ChildState.HEALTHY:
            return [f"{name}: ready"]
        case ChildState.UNHEALTHY:
            return [f"{name}: does not answer"]
        case ChildState.BACKING_OFF:
            return [f"{name}: ended with {child.last_exit}, is started again; see {child.log}"]
        case ChildState.STOPPED:
            return [f"{name}: stopped"]
        case ChildState.WAITING:
            return []
