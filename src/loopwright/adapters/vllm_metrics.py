"""What a vLLM server says of its load, in the text of its metrics."""

import re
from collections import defaultdict
from collections.abc import Iterator

from loopwright.core.concurrency import EngineLoad

_LINE = re.compile(r"^(vllm:\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_CAPACITY = re.compile(r'(?:^|,)kv_cache_size_tokens="(\d+)"')
_BLOCKS = re.compile(r'(?:^|,)num_gpu_blocks="(\d+)"')
_BLOCK_SIZE = re.compile(r'(?:^|,)block_size="(\d+)"')


def engine_load(text: str) -> EngineLoad | None:
    """Read the load of all ranks of a server; None where it keeps no statistics of itself."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for name, labels, value in _lines(text):
        if name == "vllm:cache_config_info":
            values["capacity"].append(_capacity_tokens(labels))
        elif name != "vllm:num_requests_waiting_by_reason" or 'reason="capacity"' in labels:
            values[name].append(float(value))
    if not values["vllm:kv_cache_usage_perc"]:
        return None
    waiting = values["vllm:num_requests_waiting_by_reason"] or values["vllm:num_requests_waiting"]
    return EngineLoad(
        usage=max(values["vllm:kv_cache_usage_perc"]),
        num_running=int(sum(values["vllm:num_requests_running"])),
        num_waiting=int(sum(waiting)),
        num_preemptions=int(sum(values["vllm:num_preemptions_total"])),
        capacity_tokens=int(sum(values["capacity"])) or None,
    )


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Give name, labels and value of each metric."""
    for found in _LINE.finditer(text):
        name, labels, value = found.groups(default="")
        yield name, labels, value


def _capacity_tokens(labels: str) -> float:
    """Give the tokens that one rank has room for; 0 where it does not say."""
    if said := _CAPACITY.search(labels):
        return int(said[1])
    blocks, size = _BLOCKS.search(labels), _BLOCK_SIZE.search(labels)
    return int(blocks[1]) * int(size[1]) if blocks and size else 0
