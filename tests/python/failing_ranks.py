"""One rank of a job in which rank 1 dies, raises or hangs inside the second layer of step 1.

    python failing_ranks.py HOW       (kill, raise, hang; with torchrun's environment)

Prints "rank R trains" before every step, and nothing of its own about the failure.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from small_model import Samples, config, make_model

import nsp

LIMIT = timedelta(seconds=4)


def fail(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ArithmeticError("boom in a layer")
    time.sleep(600)


def main(how: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    context = nsp.init(None, config(), sp_max=2, planner="static:2", timeout=LIMIT)
    model = nsp.shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (world,)))
    nsp.attach(model, context)
    now = -1

    def hook(*_: Any) -> None:
        if rank == 1 and now == 1:
            fail(how)

    model.get_decoder().layers[1].self_attn.register_forward_pre_hook(hook)
    steps = nsp.PlannedSteps(Samples([61, 40, 29, 33] * world), context, 48 * world)
    for step in nsp.loader(steps):
        now = step.index
        print(f"rank {rank} trains", flush=True)
        for row in step.rounds:
            model(**row.inputs).loss.backward()
    raise AssertionError("rank 1 did not fail")


if __name__ == "__main__":
    main(*sys.argv[1:])
