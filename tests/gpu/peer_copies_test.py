"""Peer copies on GPUs of one host: the same bits as NCCL, under delays too, and an end when a rank dies."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from nested_test import HERE, launch

GPUS = torch.cuda.device_count()
WORLDS = [2, 4, 8]

pytestmark = pytest.mark.skipif(GPUS < 2, reason="needs two CUDA devices")


def found(world: int, mode: str, folder: Path) -> list[dict]:
    if world > GPUS:
        pytest.skip(f"needs {world} GPUs, has {GPUS}")
    launch(world, "peer_copies_ranks.py", mode, str(folder / "out.json"))
    return json.loads((folder / "out.json").read_text())


@pytest.mark.parametrize("world", WORLDS)
def test_every_plan_gives_the_same_bits(world: int, tmp_path: Path) -> None:
    for rank, result in enumerate(found(world, "parity", tmp_path)):
        assert result["wrong"] == [], rank
        assert result["bytes"] > 0
        print(f"rank {rank}: {result}")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("connections", ["1", "8"])
def test_no_layer_is_wrong_when_ranks_are_late(
    world: int, connections: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections)
    for rank, result in enumerate(found(world, "delays", tmp_path)):
        assert result["wrong"] == 0, (rank, result)
        print(f"rank {rank}: {result}")


def test_a_killed_rank_ends_the_other(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "peer_copies_ranks.py"), "kill", str(tmp_path / "out.json")]
    logs = [tmp_path / f"{rank}.txt" for rank in range(2)]
    begin, processes = time.monotonic(), []
    for rank, name in enumerate(logs):
        environment = {**os.environ, **common, "PYTHONPATH": path, "RANK": str(rank)}
        with name.open("w") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
    try:
        codes = [process.wait(timeout=150) for process in processes]
    finally:
        for process in processes:
            process.kill()
    text = logs[0].read_text()
    assert codes == [1, -9], text[-3000:] + logs[1].read_text()[-3000:]
    sentences = [line for line in text.splitlines() if line.startswith("nsp: ")]
    assert "rank 0 of 2" in sentences[-1], text[-3000:]
    print(f"ended {time.monotonic() - begin:.0f} s after the start: {sentences[-1]}")
