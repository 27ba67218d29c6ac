"""How a vLLM server is started, as data: its command line and its environment.

Starting, watching and stopping the process is not done here.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from loopwright.contracts.failures import UserError

SERVED_MODEL = "policy"
"""Name under which the server lists its model."""

_LEAST_BATCHED_TOKENS = 2048
_KV_CACHE_BYTES = 256 * 2**20


def server_command(
    model: Path,
    *,
    port: int,
    max_model_len: int,
    max_num_seqs: int = 64,
    has_gpu: bool = False,
    kv_cache_bytes: int = _KV_CACHE_BYTES,
    python: str = sys.executable,
) -> list[str]:
    """Build the command of a server that takes and gives token ids, on 127.0.0.1.

    The entry point is the module and not ``vllm serve``, which needs a distribution of just that
    name: the one for CPUs has another.

    Args:
        model: Hugging Face model directory.
        port: a free port.
        max_model_len: most tokens of a prompt with its completion.
        max_num_seqs: completions sampled together.
        has_gpu: leave memory, precision and scheduling to vLLM's own choice for GPUs.
        kv_cache_bytes: memory for keys and values, on CPUs; taken at once.
        python: interpreter that has vLLM.
    """
    command = [
        python,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model)),
        *("--served-model-name", SERVED_MODEL),
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
        *("--max-model-len", str(max_model_len)),
        *("--max-num-seqs", str(max_num_seqs)),
        # Token ids in and out: the server needs no tokenizer.
        "--tokens-only",
        # The model directory's own sampling defaults must not touch what a request leaves out.
        *("--generation-config", "vllm"),
        # Behaviour logprobs are those of the distribution that was sampled from.
        *("--logprobs-mode", "processed_logprobs"),
        "--disable-uvicorn-access-log",
        "--disable-log-stats",
    ]
    if not has_gpu:
        command += _cpu_options(max_model_len, kv_cache_bytes)
    return command


def _cpu_options(max_model_len: int, kv_cache_bytes: int) -> list[str]:
    return [
        *("--dtype", "float32"),
        "--enforce-eager",
        # A second process for the model costs as much again as the sampling itself.
        *("--distributed-executor-backend", "uni"),
        # A seeded request whose prompt is split over two steps ends the engine: the generator of
        # a CPU cannot be rewound. Whole prompts must fit a step then.
        "--no-enable-chunked-prefill",
        *("--max-num-batched-tokens", str(max(_LEAST_BATCHED_TOKENS, max_model_len))),
        "--no-enable-prefix-caching",
        *("--kv-cache-memory-bytes", str(kv_cache_bytes)),
    ]


def server_environment(api_key: str, *, threads: int = 1) -> dict[str, str]:
    """Build the variables to add to the server's environment.

    The key is here and not in the command, which every user of the machine can read. It guards
    completions only; vLLM leaves the administrative endpoints open to whoever reaches the port.

    Args:
        api_key: what clients present as bearer token.
        threads: threads of one matrix product, on CPUs; a small model is slower with more.
    """
    return {
        "VLLM_API_KEY": api_key,
        # Opens pause, resume, reload and the version label.
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        # The model runs in the engine's process: see --distributed-executor-backend.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def check_installed() -> None:
    """Refuse early where there is no vLLM.

    Raises:
        UserError: with what to install.
    """
    if find_spec("vllm") is None:
        raise UserError(
            "vLLM is not installed in this environment; install requirements/engine-cpu.txt, "
            "or requirements/engine-gpu.txt on a host with GPUs"
        )
