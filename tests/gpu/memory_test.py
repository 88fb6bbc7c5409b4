"""Device memory against the formulas: attention kernels' workspace, and a nested layer's buffers."""

import json
from pathlib import Path

import pytest
import torch
from nested_test import GPUS, launch
from nsp._native import execution

LENGTHS = [8192, 4096, 1000, 33, 7]


def most_beyond(action: object) -> tuple[int, object]:
    """Bytes allocated at once beyond what was there and what is left, by a second call."""
    action()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = action()
    torch.cuda.synchronize()
    left = torch.cuda.memory_allocated() - before
    return torch.cuda.max_memory_allocated() - before - left, result


@pytest.mark.skipif(GPUS == 0, reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["flash", "cudnn"])
@pytest.mark.parametrize("heads,kv_heads", [(32, 4), (8, 8)])
def test_workspace(name: str, heads: int, kv_heads: int) -> None:
    if name == "cudnn" and execution().default_kernel("cuda") != "cudnn":
        pytest.skip("cuDNN attention needs a GPU of compute capability 9.0 or newer")
    kernel, sequences = execution().Kernel(name), execution().Ragged(LENGTHS)
    q, k, v, dout = (
        torch.randn(sum(LENGTHS), n, 128, device="cuda", dtype=torch.bfloat16)
        for n in (heads, kv_heads, kv_heads, heads)
    )
    forward, (out, lse) = most_beyond(lambda: kernel.forward(q, k, v, sequences, 0.1, 0))
    backward, _ = most_beyond(lambda: kernel.backward(q, k, v, out, lse, dout, sequences, 0.1, 0))
    for found, is_backward in ((forward, False), (backward, True)):
        formula = kernel.workspace_bytes(LENGTHS, heads, kv_heads, 128, 2, is_backward)
        print(f"{name} {heads}/{kv_heads} backward {is_backward}: {found} bytes, formula {formula}")
        assert found <= 1.02 * formula + (1 << 20)
        assert found >= 0.6 * formula - (1 << 20)


@pytest.mark.skipif(GPUS < 2, reason="needs two CUDA devices")
def test_a_layer(tmp_path: Path) -> None:
    launch(2, "memory_ranks.py", str(tmp_path / "out.json"))
    for line in json.loads((tmp_path / "out.json").read_text()):
        print(line)
        assert line["bytes"] <= 1.02 * line["formula"] + (1 << 20), line
