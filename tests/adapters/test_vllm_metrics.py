"""The load of an engine is read from the text that vLLM gives."""

import pytest

from loopwright.adapters.vllm_metrics import engine_load
from loopwright.core.concurrency import EngineLoad

ONE_RANK = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="policy"} 12.0
vllm:num_requests_waiting{engine="0",model_name="policy"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="policy",reason="capacity"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="policy",reason="deferred"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="policy"} 0.25
vllm:num_preemptions_total{engine="0",model_name="policy"} 1.2e+03
vllm:num_preemptions_created{engine="0",model_name="policy"} 1.79e+09
vllm:cache_config_info{_block_size_resolved="True",block_size="128",cache_dtype="auto",engine="0",\
hash_block_size="None",kv_cache_size_tokens="174720",num_gpu_blocks="1365",\
num_gpu_blocks_override="None"} 1.0
vllm:inter_token_latency_seconds_bucket{engine="0",le="0.01",model_name="policy"} 7.0
python_info{implementation="CPython",major="3"} 1.0
"""


def test_load_of_one_rank_is_read() -> None:
    assert engine_load(ONE_RANK) == EngineLoad(0.25, 12, 3, 1200, capacity_tokens=174_720)


def test_ranks_add_up_and_the_fullest_counts() -> None:
    second = ONE_RANK.replace('engine="0"', 'engine="1"').replace(" 0.25", " 0.75")
    assert engine_load(ONE_RANK + second) == EngineLoad(0.75, 24, 6, 2400, capacity_tokens=349_440)


def test_older_servers_are_understood() -> None:
    text = "\n".join(line for line in ONE_RANK.splitlines() if "by_reason" not in line)
    text = text.replace('kv_cache_size_tokens="174720",', "")
    assert engine_load(text) == EngineLoad(0.25, 12, 5, 1200, capacity_tokens=1365 * 128)


@pytest.mark.parametrize(
    "text", ["", 'python_info{implementation="CPython"} 1.0\n', "<html>not metrics</html>"]
)
def test_server_without_statistics_says_nothing(text: str) -> None:
    assert engine_load(text) is None
