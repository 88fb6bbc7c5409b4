"""Gradients are equal to the last bit whatever a plan marks, and the launches are those of the marks."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from nested_test import launch

GPUS = torch.cuda.device_count()


@pytest.mark.skipif(GPUS == 0, reason="needs a CUDA device")
@pytest.mark.parametrize("world", [1, 2])
def test_marks_change_no_bit(world: int, tmp_path: Path) -> None:
    if world > GPUS:
        pytest.skip(f"needs {world} GPUs, has {GPUS}")
    launch(world, "marks_ranks.py", str(tmp_path / "out.json"))
    for rank, found in enumerate(json.loads((tmp_path / "out.json").read_text())):
        assert found["wrong"] == [], rank
        assert sum(found["launches"]["unlimited"]) == 0, "what is saved is not run again"
        assert sum(found["launches"]["0"]) > 0
        assert sum(found["held"]["0"]) == 0
        assert sum(found["held"]["unlimited"]) > sum(found["held"]["half"]) > 0
        assert sum(found["held"]["on the host"]) == sum(found["held"]["unlimited"])
        print(f"rank {rank}: {found['cases']} cases, launches {found['launches']}")
        check_offload(found["layers"])


def check_offload(found: dict[str, Any]) -> None:
    """Four layers: all that is saved stays on the device, or all but one layer's output goes to the host."""
    assert found["equal"]
    saved, offloaded, bytes_a_layer = found["unlimited"], found["on the host"], found["offloaded"]
    assert bytes_a_layer > 0
    assert saved["held"] - offloaded["held"] > 2.9 * bytes_a_layer
    assert saved["most"] - offloaded["most"] >= 2 * bytes_a_layer
    assert found["host"][:4] == [0] * 4
    assert len(set(found["host"][4:])) == 1 and found["host"][4] >= 4 * bytes_a_layer
    assert found["counters"] == [[0, 0]] * 8
    print(f"offloaded: {found}")
