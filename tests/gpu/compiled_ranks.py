"""One process of a launch: a small Qwen3-MoE with compiled decoder layers next to the same with eager ones.

    torchrun --nproc-per-node N compiled_ranks.py OUT.json [cuda|cpu]

Random nested plans of changing lengths under FSDP2 (bf16 parameters on GPUs), with and without checkpointing.
Writes for each case the losses, the gradients' distance and attention calls of both, and each rank's graphs:
without checkpointing, and further ones with it.
"""

import json
import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from nsp._native import core
from nsp.row_plan import RowPlan
from torch._dynamo.utils import counters
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import nsp

LAYERS, VOCABULARY = 2, 512


def make_model(context: nsp.Context, config: Qwen3MoeConfig) -> torch.nn.Module:
    cuda = context.device.type == "cuda"
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, experts_implementation="grouped_mm" if cuda else "batched_mm"
    )
    mesh = dist.device_mesh.init_device_mesh(context.device.type, (context.world_size,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if cuda else None
    nsp.shard(model.to(context.device).train(), mesh, mixed_precision=policy)
    nsp.attach(model, context)
    return model


def random_plan(world: int, tokens: int, generator: random.Random) -> bytes:
    placements: list[tuple[int, int, int, int]] = []
    while tokens > 0:
        length = min(tokens, int(2 ** generator.uniform(0, 11)))
        degree = generator.choice([d for d in (1, 2, 4, 8) if world % d == 0])
        first = generator.randrange(world // degree) * degree
        placements.append((len(placements), length, first, degree))
        tokens -= length
    return core().make_plan(world, world, world, 0, [placements], "given")


def inputs(context: nsp.Context, plan: bytes) -> dict:
    segments = core().rank_row(plan, 0, context.rank)
    positions = torch.cat([torch.arange(b, e) for _, b, e in segments])
    ids = (positions * 31 + sum(s for s, _, _ in segments)) % VOCABULARY
    tensors = {"input_ids": ids, "position_ids": positions, "labels": ids, "shift_labels": ids}
    row = {name: value[None].to(context.device) for name, value in tensors.items()}
    return row | {"nsp_plan": RowPlan(context, context.schedule(plan), 0, 1000), "use_cache": False}


def step(model: torch.nn.Module, context: nsp.Context, plan: bytes) -> tuple[float, list, int]:
    """Mean loss, whole gradients, attention calls."""
    model.zero_grad()
    before = context.world.counters()["attention_calls"]
    loss = model(**inputs(context, plan)).loss
    loss.backward()
    total = loss.detach().clone()
    dist.all_reduce(total)
    grads = [p.grad.full_tensor().float() for p in model.parameters()]
    calls = context.world.counters()["attention_calls"] - before
    return float(total) / context.world_size, grads, calls


def distance(found: list, expected: list) -> float:
    """Norm of the difference of all gradients over the norm of all gradients."""
    difference = sum((a - b).square().sum() for a, b in zip(found, expected, strict=True))
    return float((difference / sum(b.square().sum() for b in expected)).sqrt())


def compare(eager: torch.nn.Module, compiled: torch.nn.Module, context: nsp.Context, plans: list) -> list:
    cases = []
    for plan in plans:
        loss, grads, calls = step(compiled, context, plan)
        expected_loss, expected, expected_calls = step(eager, context, plan)
        cases.append(
            {"loss": loss, "expected_loss": expected_loss, "calls": calls, "expected_calls": expected_calls}
            | {"distance": distance(grads, expected)}
        )
    return cases


def main(out: str, device: str = "cuda") -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=512, moe_intermediate_size=128,
        num_hidden_layers=LAYERS, num_attention_heads=8, num_key_value_heads=2, head_dim=128,
        num_experts=8, num_experts_per_tok=2,
        max_position_embeddings=16384, use_cache=False, tie_word_embeddings=False,
    )  # fmt: skip
    context = nsp.init(None, config, sp_max=world)
    eager, compiled = make_model(context, config), make_model(context, config)
    nsp.compile_layers(compiled, backend="inductor" if device == "cuda" else "aot_eager")
    generator = random.Random(3)
    sizes = (4096, 1500, 7000, 2) if device == "cuda" else (100, 40, 2)
    plans = [random_plan(world, tokens, generator) for tokens in sizes]
    found = {"plain": compare(eager, compiled, context, plans)}
    plain = counters["stats"]["unique_graphs"]
    for model in (eager, compiled):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    found["checkpointed"] = compare(eager, compiled, context, plans)
    graphs: list[tuple[int, int]] = [(0, 0)] * world
    dist.all_gather_object(graphs, (plain, counters["stats"]["unique_graphs"] - plain))
    found["graphs"] = graphs
    if rank == 0:
        Path(out).write_text(json.dumps(found))
    context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
