"""One process of a launch: peak device memory of nested attention layers beside the formula's.

torchrun --nproc-per-node 2 memory_ranks.py OUT.json
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from nested_ranks import shape
from nsp._native import core, execution

import nsp

HEADS, KV_HEADS, HEAD_DIM = 32, 4, 128
PLANS = {
    "one level": [(0, 16384, 0, 2)],
    "two sequences on one level": [(0, 9000, 0, 2), (1, 7001, 0, 2)],
    "level and leaves": [(0, 16384, 0, 2), (1, 6000, 0, 1), (2, 5000, 1, 1)],
}


def measure(context: nsp.Context, placements: list) -> dict:
    plan = core().make_plan(2, 2, 2, 0, [placements], "given")
    schedule = context.schedule(plan)
    tokens = schedule.tokens(0)
    q, k, v, dout = (
        torch.randn(tokens, n, HEAD_DIM, device=context.device, dtype=torch.bfloat16, requires_grad=True)
        for n in (HEADS, KV_HEADS, KV_HEADS, HEADS)
    )

    def layer() -> None:
        out = torch.ops.nsp.attention(q, k, v, schedule.handle, 0, 0.1, 0)
        torch.autograd.grad(out, (q, k, v), dout.detach())

    layer()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    layer()
    torch.cuda.synchronize()
    value = HEAD_DIM * 2
    exchange = max(
        schedule.exchange_bytes(0, HEAD_DIM, 2, False),
        # backward holds what forward kept: q, k, v and out in head layout
        schedule.exchange_bytes(0, HEAD_DIM, 2, True)
        + sum(n * (HEADS + KV_HEADS) * value for _, n, _, degree in placements if degree > 1),
    )
    launches = {
        2: [n for _, n, _, degree in placements if degree == 2],
        1: [n for _, n, first, degree in placements if degree == 1 and first == context.rank],
    }
    kernel = execution().Kernel(context.kernel)
    workspace = max(
        kernel.workspace_bytes(lengths, HEADS // degree, KV_HEADS // degree, HEAD_DIM, 2, True)
        for degree, lengths in launches.items()
        if lengths
    )
    results = tokens * (2 * HEADS + 2 * KV_HEADS) * value + 4 * HEADS * tokens  # out, dq, dk, dv; lse
    return {
        "bytes": torch.cuda.max_memory_allocated() - before,
        "formula": exchange + workspace + results,
        "exchange": exchange,
        "workspace": workspace,
    }


def main(out: str) -> None:
    torch.cuda.set_device(int(os.environ["RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    context = nsp.init(None, shape(HEADS, KV_HEADS), sp_max=2)
    lines = [{"plan": name, **measure(context, plan)} for name, plan in PLANS.items()]
    found: list = [None, None]
    dist.all_gather_object(found, lines)
    if dist.get_rank() == 0:
        Path(out).write_text(json.dumps(found[0] + found[1]))
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
