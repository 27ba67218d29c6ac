"""How a vLLM server is started, as data: its command line and its environment.

Starting, watching and stopping the process is not done here.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from loopwright.contracts.failures import UserError

SERVED_MODEL = "policy"
"""Name under which the server lists its model."""


def server_command(
    model: Path,
    *,
    port: int,
    max_model_len: int,
    max_num_seqs: int = 64,
    dtype: str = "float32",
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
        dtype: ``float32`` on CPUs; ``auto`` takes the model's own.
        python: interpreter that has vLLM.
    """
    return [
        python,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model)),
        *("--served-model-name", SERVED_MODEL),
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
        *("--dtype", dtype),
        *("--max-model-len", str(max_model_len)),
        *("--max-num-seqs", str(max_num_seqs)),
        # The model directory's own sampling defaults must not touch what a request leaves out.
        *("--generation-config", "vllm"),
        # Behaviour logprobs are those of the distribution that was sampled from.
        *("--logprobs-mode", "processed_logprobs"),
        "--enable-scale-out",
        "--enforce-eager",
        "--disable-uvicorn-access-log",
        "--disable-log-stats",
    ]


def server_environment(api_key: str, *, kv_cache_gib: int = 1, threads: int = 1) -> dict[str, str]:
    """Build the variables to add to the server's environment.

    The key is here and not in the command, which every user of the machine can read. It guards
    completions only; vLLM leaves the administrative endpoints open to whoever reaches the port.

    Args:
        api_key: what clients present as bearer token.
        kv_cache_gib: memory for keys and values, on CPUs.
        threads: threads of one matrix product, on CPUs.
    """
    return {
        "VLLM_API_KEY": api_key,
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib),
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
