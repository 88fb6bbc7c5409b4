"""One process of a launch: random plans of all backends through a small Qwen3-MoE, FSDP2 and checkpointing.

    torchrun --nproc-per-node 2 random_plans_ranks.py PLANS OUT.json

Writes the reserved and allocated device memory a quarter of the way and at the end, and seconds a step.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from nsp._native import core
from nsp.row_plan import RowPlan
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import nsp

TOKENS = 16384


def make_model(context_device: torch.device, world: int) -> torch.nn.Module:
    config = Qwen3MoeConfig(
        vocab_size=512, hidden_size=256, intermediate_size=512, moe_intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2, head_dim=128,
        num_experts=8, num_experts_per_tok=2,
        max_position_embeddings=TOKENS, use_cache=False, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, experts_implementation="grouped_mm")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    mesh = dist.device_mesh.init_device_mesh("cuda", (world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return nsp.shard(model.to(context_device).train(), mesh, mixed_precision=policy)


def random_plan(world: int, ways: list[tuple[int, str, int]], generator: random.Random) -> bytes:
    placements: list[tuple[int, int, int, int, str, int]] = []
    left = TOKENS
    while left > 0 and len(placements) < 64:
        tokens = min(left, int(2 ** generator.uniform(0, 13)))
        degree, backend, inner = generator.choice(ways)
        first = generator.randrange(world // degree) * degree
        placements.append((len(placements), tokens, first, degree, backend, inner))
        left -= tokens
    return core().make_plan(world, world, world, 0, [placements], "given")


def inputs(context: nsp.Context, plan: bytes) -> dict:
    segments = core().rank_row(plan, 0, context.rank)
    positions = torch.cat([torch.arange(b, e) for _, b, e in segments])
    ids = (positions * 31 + sum(s for s, _, _ in segments)) % 512
    tensors = {"input_ids": ids, "position_ids": positions, "labels": ids, "shift_labels": ids}
    row = {name: value[None].to(context.device) for name, value in tensors.items()}
    return row | {"nsp_plan": RowPlan(context, context.schedule(plan), 0, TOKENS), "use_cache": False}


def main(plans: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    device = torch.device("cuda", rank)
    model = make_model(device, world)
    context = nsp.init(None, model.config, sp_max=world, backends=("all",))
    nsp.attach(model, context)
    ways = context.settings.ways
    generator = random.Random(7)
    count, early, allocated, begin = int(plans), 0, 0, time.perf_counter()
    for i in range(count):
        loss = model(**inputs(context, random_plan(world, ways, generator))).loss
        loss.backward()
        assert torch.isfinite(loss.detach()), i
        model.zero_grad()
        if i == count // 4:
            torch.cuda.synchronize()
            early, allocated = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / count
    found = {
        "early_bytes": early, "last_bytes": torch.cuda.memory_reserved(), "step_seconds": seconds,
        "early_allocated": allocated, "last_allocated": torch.cuda.memory_allocated(),
    }  # fmt: skip
    if rank == 0:
        with Path(out).open("w") as file:
            json.dump(found, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
