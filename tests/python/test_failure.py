"""A rank that is killed, raises or hangs in mid-layer ends all others, each with one sentence of ours."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from launch import HERE, search_path, torchrun

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

from single_rank import one_rank  # noqa: E402
from small_model import config  # noqa: E402

import nsp  # noqa: E402
from nsp import failure  # noqa: E402  torch is not everywhere

SCRIPT = str(HERE / "failing_ranks.py")
PLACE = r"step 1, round 0, attention call \d+, forward \w+ of level 2"


def run(how: str, world: int, folder: Path) -> list[tuple[int, str]]:
    """Exit code and stderr of each rank, without a launcher that would end the others itself."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
    processes, logs = [], [folder / f"{rank}.txt" for rank in range(world)]
    for rank in range(world):
        environment = {**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = search_path()
        with logs[rank].open("w") as log:
            processes.append(
                subprocess.Popen([sys.executable, SCRIPT, how], stdout=log, stderr=log, env=environment)
            )
    try:
        codes = [process.wait(timeout=180) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(code, log.read_text()) for code, log in zip(codes, logs, strict=True)]


def sentences(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("nsp: ")]


def test_a_killed_rank_ends_the_others_with_its_place(tmp_path: Path) -> None:
    for rank, (code, text) in enumerate(run("kill", 2, tmp_path)):
        if rank == 1:
            assert code == -9
            continue
        assert code == 1, text
        assert re.search(rf"nsp: rank {rank} of 2 failed in {PLACE}", sentences(text)[-1]), text
        assert re.search(rf"rank {rank} of 2: the exchange .* failed in {PLACE}", text), text


def test_an_exception_reaches_the_others_with_its_text(tmp_path: Path) -> None:
    for rank, (code, text) in enumerate(run("raise", 2, tmp_path)):
        assert code == 1, text
        last = sentences(text)[-1]
        assert "rank 1 of 2 failed in step 1" in last, text
        assert "ArithmeticError: boom in a layer" in last, text
        assert re.search(rf"nsp: rank 0 of 2 ends in {PLACE}, because" if rank == 0 else "nsp: rank 1", last)


def test_a_rank_that_never_comes_is_named_after_the_limit(tmp_path: Path) -> None:
    found = run("hang", 4, tmp_path)
    assert all(code == 1 for code, _ in found), found
    waited = rf"rank \d of 4 has waited \d+ s in {PLACE}: .*rank 1 was last seen in step 1, outside attention"
    for rank, (_, text) in enumerate(found):
        first = sentences(text)[0]
        assert first.startswith(f"nsp: rank {rank} of 4"), text
        assert re.search(waited, first), text


def test_torchruns_report_shows_the_sentence() -> None:
    done = torchrun(2, SCRIPT, "raise", timeout=180)
    assert done.returncode != 0
    report = done.stderr[done.stderr.index("Root Cause") :]
    assert "rank 1 of 2 failed in step 1" in report, report
    assert "ArithmeticError: boom in a layer" in report, report


@pytest.mark.parametrize(
    ("error", "fails"),
    [
        (SystemExit(), False),
        (SystemExit(0), False),
        (SystemExit(3), True),
        (KeyboardInterrupt(), True),
        (ValueError("boom"), True),
    ],
)
def test_a_context_closed_by_an_exception_fails_unless_the_program_ends_well(
    error: BaseException, fails: bool
) -> None:
    try:
        raise error
    except BaseException:
        assert failure.on_its_way() is (error if fails else None)


def test_a_context_may_be_closed_twice() -> None:
    with one_rank():
        context = nsp.init(None, config(), sp_max=1)
        context.close()
        context.close()
        with pytest.raises(ValueError, match="it is closed"):
            context.schedule(b"")
