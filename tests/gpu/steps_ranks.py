"""One process of a launch: whole training steps in which the host must never wait for the device.

    torchrun --nproc-per-node N steps_ranks.py dense|moe OUT.json

Loader, forward and backward with FSDP2 and checkpointing, gradient clipping, AdamW; a new plan every step.
After three steps any operation that makes the host wait raises (torch.cuda.set_sync_debug_mode). Writes how
many steps ran so.
"""

import json
import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

import nsp

STEPS, WARM = 12, 3
SIZES = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 2**16,
    "use_cache": False, "tie_word_embeddings": False,
}  # fmt: skip


class Tokens:
    """Long-tailed lengths; a token is its position."""

    def __init__(self, count: int) -> None:
        generator = random.Random(3)
        self.lengths = [int(2 ** generator.uniform(1, 13)) for _ in range(count)]

    def read(self, i: int, begin: int, end: int) -> torch.Tensor:
        return torch.arange(begin, end) % 512


def config(kind: str) -> Qwen3Config | Qwen3MoeConfig:
    if kind == "dense":
        return Qwen3Config(**SIZES)
    return Qwen3MoeConfig(**SIZES, moe_intermediate_size=128, num_experts=8, num_experts_per_tok=2)


def make_model(kind: str, device: torch.device, world: int) -> torch.nn.Module:
    torch.manual_seed(0)
    experts = {"experts_implementation": "grouped_mm"} if kind == "moe" else {}
    model = AutoModelForCausalLM.from_config(config(kind), dtype=torch.float32, **experts)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    mesh = dist.device_mesh.init_device_mesh("cuda", (world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return nsp.shard(model.to(device).train(), mesh, mixed_precision=policy)


def main(kind: str, out: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    model = make_model(kind, torch.device("cuda", rank), world)
    context = nsp.init(None, model.config, sp_max=world)
    nsp.attach(model, context)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    steps = nsp.PlannedSteps(Tokens(400), context, tokens_per_step=16384)
    losses, done = [], 0
    for step in nsp.loader(steps):
        for row in step.rounds:
            loss = model(**row.inputs).loss
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        done += 1
        if done == WARM:
            torch.cuda.set_sync_debug_mode("error")
        if done == STEPS:
            break
    torch.cuda.set_sync_debug_mode("default")
    assert all(torch.isfinite(loss) for loss in losses)
    if rank == 0:
        Path(out).write_text(json.dumps({"steps": done - WARM}))
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
