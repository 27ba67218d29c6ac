"""How far what is learned from may lag behind the policy that learns."""


def may_collect(*, num_open: int, max_staleness: int) -> bool:
    """Tell whether an iteration may begin to collect behind ``num_open`` unfinished ones.

    Each of those makes at most one version, so its tokens are at most ``num_open`` versions behind
    when their turn comes (admission by staleness, arXiv 2505.24298, in whole iterations).
    """
    return num_open <= max_staleness


def versions_left(
    oldest_version: int | None, *, trained_from: int, max_staleness: int
) -> int | None:
    """Give the publications that tokens still bear once ``trained_from`` has been learned from."""
    return None if oldest_version is None else max_staleness - (trained_from - oldest_version)


def is_too_old(oldest_version: int | None, *, trained_from: int, max_staleness: int) -> bool:
    """Tell whether a group's oldest token is too far behind the version trained from."""
    return oldest_version is not None and trained_from - oldest_version > max_staleness
