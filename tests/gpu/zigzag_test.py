"""Gather, ring and usp on GPUs: errors within twice FlashAttention-2's for every way alone and mixed, NCCL
and staged gloo.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from nested_test import GPUS, launch


@pytest.mark.skipif(GPUS == 0, reason="needs a CUDA device")
@pytest.mark.parametrize("backend,world", [("nccl", 1), ("nccl", 2), ("gloo", 4), ("gloo", 8)])
def test_parity(backend: str, world: int, tmp_path: Path) -> None:
    if backend == "nccl" and world > GPUS:
        pytest.skip(f"needs {world} GPUs, has {GPUS}")
    launch(world, "zigzag_ranks.py", backend, str(tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text())
    worst: dict[str, float] = defaultdict(float)
    for result in found["results"]:
        for name, ratio in result["over_flash"].items():
            assert ratio <= 2, (result["heads"], result["kv_heads"], result["ways"], name, ratio)
            worst[result["ways"]] = max(worst[result["ways"]], ratio)
    for ways, ratio in worst.items():
        print(f"{backend} x {world}, kernel {found['kernel']}, {ways}: over FlashAttention-2's {ratio:.2f}")
