"""Nested sequence parallelism for PyTorch.

Planning needs no torch: `nsp.plan(...)`, `nsp.simulate(...)` and `nsp.Plan`. Training (`nsp.init`,
`nsp.attach`, `nsp.PlannedSteps`, `nsp.loader`, `nsp.shard`, `nsp.compile_layers`) imports torch at first
use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsp.checkpointing import checkpoint_contexts
    from nsp.compile import compile_layers
    from nsp.context import Context, init
    from nsp.data import Dataset, PlannedSteps
    from nsp.integrations.hugging_face import attach
    from nsp.loading import Loader, loader
    from nsp.planning import Plan, plan
    from nsp.sharding import shard
    from nsp.simulation import Breakdown, Simulated, simulate
    from nsp.step import Row, Step

__version__ = "0.1.0"

_HOME = {
    "Plan": "nsp.planning",
    "plan": "nsp.planning",
    "Context": "nsp.context",
    "init": "nsp.context",
    "checkpoint_contexts": "nsp.checkpointing",
    "compile_layers": "nsp.compile",
    "attach": "nsp.integrations.hugging_face",
    "Dataset": "nsp.data",
    "PlannedSteps": "nsp.data",
    "Row": "nsp.step",
    "Step": "nsp.step",
    "Loader": "nsp.loading",
    "loader": "nsp.loading",
    "shard": "nsp.sharding",
    "Breakdown": "nsp.simulation",
    "Simulated": "nsp.simulation",
    "simulate": "nsp.simulation",
}

__all__ = [
    "Breakdown",
    "Context",
    "Dataset",
    "Loader",
    "Plan",
    "PlannedSteps",
    "Row",
    "Simulated",
    "Step",
    "attach",
    "checkpoint_contexts",
    "compile_layers",
    "init",
    "loader",
    "plan",
    "shard",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nsp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
