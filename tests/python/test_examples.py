"""The examples run, and train alike on any number of processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import torchrun

pytest.importorskip("nsp._exec", reason="nsp._exec is not built")
pytest.importorskip("transformers", reason="transformers is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples"


def losses(world: int) -> list[str]:
    done = torchrun(world, str(EXAMPLES / "fsdp2_loop.py"), "--steps", "3")
    assert done.returncode == 0, done.stderr[-4000:]
    return [line for line in done.stdout.splitlines() if line.startswith("step ")]


def test_the_fsdp2_loop_prints_the_same_losses_on_one_and_two_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # CPU processes, however many GPUs there are
    alone = losses(1)
    assert len(alone) == 3
    assert losses(2) == alone
