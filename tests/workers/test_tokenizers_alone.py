"""Episode workers do without torch, and what they play does not have to."""

import subprocess
import sys

from loopwright.embedded.options import default_model
from loopwright.trajectories.rendering import Renderer

_SCRIPT = """
import importlib.util, sys
from loopwright.workers.tokenizers_alone import import_tokenizers_alone
import_tokenizers_alone()
import loopwright.workers.compose_episode
from loopwright.embedded.options import default_model
from loopwright.trajectories.rendering import Renderer
print(Renderer(default_model()).fingerprint)
print("torch" in sys.modules, importlib.util.find_spec("torch") is not None)
"""


def test_episode_worker_renders_alike_without_loading_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [Renderer(default_model()).fingerprint, "False", "True"]
    assert "PyTorch" not in done.stderr
