"""The two compiled modules, with one sentence when one is missing. `core` needs no torch; `execution` imports
it first.
"""

from __future__ import annotations

import importlib
from typing import Any


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"{name} is not built; install the package (pip install .) or run `make install`"
        ) from error


def core() -> Any:
    """`nsp._core`: plans, checks and predictions."""
    return _load("nsp._core")


def execution() -> Any:
    """`nsp._exec`: the executor; registers `torch.ops.nsp.attention`."""
    import torch  # noqa: F401  its libraries must be loaded before ours

    return _load("nsp._exec")
