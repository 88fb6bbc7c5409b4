"""A rank that is killed, raises or hangs in mid-layer ends the other over NCCL, with one sentence of ours."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
GPUS = torch.cuda.device_count()
LIMIT = 8  # seconds, in failing_ranks.py


def run(how: str, folder: Path) -> tuple[list[tuple[int, str]], float]:
    """Exit code and output of each rank, and seconds from the last step that was done to the last end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    processes, logs = [], [folder / f"{rank}.txt" for rank in range(2)]
    for rank, name in enumerate(logs):
        with name.open("w") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, str(HERE / "failing_ranks.py"), how],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **common, "RANK": str(rank), "PYTHONPATH": path},
                )
            )
    try:
        codes = [process.wait(timeout=150) for process in processes]
    finally:
        for process in processes:
            process.kill()
    ended = time.time()
    texts = [log.read_text() for log in logs]
    steps = [float(line.split()[-1]) for line in texts[0].splitlines() if "did step" in line]
    assert steps, texts
    return list(zip(codes, texts, strict=True)), ended - steps[-1]


@pytest.mark.skipif(GPUS < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("how", ["kill", "raise", "hang"])
def test_a_failing_rank_ends_the_other(how: str, tmp_path: Path) -> None:
    found, seconds = run(how, tmp_path)
    print(f"{how}: all ended {seconds:.1f} s after the last step")
    for rank, (code, text) in enumerate(found):
        print("\n".join(line for line in text.splitlines() if line.startswith("nsp: ")))
        assert code == (-9 if how == "kill" and rank == 1 else 1), (rank, code, text[-3000:])
        if how != "kill" or rank == 0:
            assert "nsp: rank" in text, text[-3000:]
    assert seconds < 3 * LIMIT + 10, seconds
