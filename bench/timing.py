"""How benchmarks start their ranks, and how they time variants: in turns, the slowest rank counts.

GPUs are timed between device events, behind a barrier and a wait on the device that lets the host run ahead;
CPUs by the host clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist

Run = Callable[[], object]


def start_ranks() -> torch.device:
    """torchrun's process group, and this rank's device."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    return device


def milliseconds(run: Run) -> float:
    """Of the slowest rank. Collective."""
    spent = _on_device(run) if torch.cuda.is_available() else _on_host(run)
    slowest = torch.tensor(spent, device="cuda" if torch.cuda.is_available() else "cpu")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest)


def paired(
    runs: Mapping[str, Run], rounds: int, warm: int = 2, late: Callable[[], bool] = lambda: False
) -> dict[str, list[float]]:
    """Milliseconds of the slowest rank, a round of all in turns; warm-up rounds are not counted. No round but
    the first counted one begins once it is late (on some rank).
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(rounds + warm):
        if i > warm and any_rank(late()):
            break
        for name in sorted(runs, reverse=bool(i % 2)):
            spent = milliseconds(runs[name])
            if i >= warm:
                times[name].append(spent)
    return times


def any_rank(fact: bool) -> bool:
    """Whether it holds on some rank: what all of them may branch on. Collective."""
    told = torch.tensor(int(fact))
    dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told)


def _on_device(run: Run) -> float:
    torch.cuda.synchronize()
    dist.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def _on_host(run: Run) -> float:
    dist.barrier()
    begin = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - begin)
