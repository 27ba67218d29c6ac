"""Tokenizers without models: their library loads torch, too, wherever that is installed.

Ten seconds and 350 MB of every worker process that renders conversations and trains nothing.
"""

import os
import sys
from importlib import import_module


def import_tokenizers_alone() -> None:
    """Import the tokenizers' library as a host without torch does; others may still import torch.

    Nothing happens where it has been imported already.
    """
    if "torch" in sys.modules:
        return
    # It says that there will be no models, which is what is wanted.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    sys.modules["torch"] = None  # type: ignore[assignment]  # Python's way to say: not installed
    try:
        _ = import_module("transformers").AutoTokenizer
    finally:
        del sys.modules["torch"]
