"""Compiled decoder layers on GPUs: the loss and gradients of eager ones, from two graphs at most (two more
where checkpointing is switched on later).
"""

import json
from pathlib import Path

import pytest
import torch
from nested_test import launch

GPUS = torch.cuda.device_count()


@pytest.mark.skipif(GPUS == 0, reason="needs a CUDA device")
@pytest.mark.parametrize("world", [1, 2])
def test_compiled_layers_train_as_eager_ones(world: int, tmp_path: Path) -> None:
    if world > GPUS:
        pytest.skip(f"needs {world} GPUs, has {GPUS}")
    launch(world, "compiled_ranks.py", str(tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text())
    print(f"NCCL x {world}: {found}")
    for plain, checkpointed in found["graphs"]:
        assert 1 <= plain <= 2, found["graphs"]
        assert checkpointed <= 2, found["graphs"]
    for case in found["plain"] + found["checkpointed"]:
        assert case["calls"] == case["expected_calls"], case
        assert abs(case["loss"] - case["expected_loss"]) <= 5e-3 * abs(case["expected_loss"]), case
        assert case["distance"] <= 0.05, case  # bf16: elementwise parts round less often when they are fused
