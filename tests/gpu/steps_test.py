"""Whole training steps on GPUs in which the host never waits for the device."""

import json
from pathlib import Path

import pytest
import torch
from nested_test import launch

GPUS = torch.cuda.device_count()


@pytest.mark.skipif(GPUS == 0, reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["dense", "moe"])
@pytest.mark.parametrize("world", [1, 2])
def test_the_host_never_waits(world: int, kind: str, tmp_path: Path) -> None:
    if world > GPUS:
        pytest.skip(f"needs {world} GPUs, has {GPUS}")
    launch(world, "steps_ranks.py", kind, str(tmp_path / "out.json"))
    assert json.loads((tmp_path / "out.json").read_text())["steps"] == 9
