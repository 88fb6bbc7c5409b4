"""One process of a launch over NCCL in which rank 1 dies, raises or hangs in mid-layer of its third step.

python failing_ranks.py kill|raise|hang      (with torchrun's environment)
"""

import os
import random
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from random_plans_ranks import inputs, make_model, random_plan

import nsp

LIMIT = timedelta(seconds=8)


def fail(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ArithmeticError("boom in a layer")
    time.sleep(600)


def main(how: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=120))
    model = make_model(torch.device("cuda", rank), world)
    context = nsp.init(None, model.config, sp_max=world, timeout=LIMIT)
    nsp.attach(model, context)
    now = -1

    def hook(*_: object) -> None:
        if rank == 1 and now == 2:
            fail(how)

    model.get_decoder().layers[1].self_attn.register_forward_pre_hook(hook)
    ways, generator = context.settings.ways, random.Random(7)
    for now in range(40):
        context.world.begin_step(now)
        model(**inputs(context, random_plan(world, ways, generator))).loss.backward()
        torch.cuda.synchronize()
        print(f"rank {rank} did step {now} at {time.time():.1f}", flush=True)
    raise AssertionError("rank 1 did not fail")


if __name__ == "__main__":
    main(*sys.argv[1:])
