"""What the training benchmarks run: Qwen3-MoE at the widths of 30B-A3B, random tokens, one optimizer step."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist
from nsp._native import core
from nsp.row_plan import RowPlan
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import nsp

LEAF = [8192, 4096, 2048, 2048]


def add_sizes(parser: argparse.ArgumentParser, layers: int, tokens: int, vocabulary: int) -> None:
    """The options that make_model reads, and a rank's tokens, with these defaults."""
    parser.add_argument("--layers", type=int, default=layers)
    parser.add_argument("--tokens", type=int, default=tokens, help="of a rank")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--experts", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=vocabulary)


def bare_model(options: argparse.Namespace, device: torch.device) -> torch.nn.Module:
    """In float32, not sharded."""
    config = Qwen3MoeConfig(
        vocab_size=options.vocabulary, hidden_size=options.hidden, intermediate_size=3 * options.hidden,
        moe_intermediate_size=3 * options.hidden // 8, num_hidden_layers=options.layers,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128,
        num_experts=options.experts, num_experts_per_tok=min(8, options.experts), norm_topk_prob=True,
        max_position_embeddings=2**20, use_cache=False, tie_word_embeddings=False,
    )  # fmt: skip
    experts = "grouped_mm" if device.type == "cuda" else "batched_mm"
    torch.manual_seed(0)
    with device:
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, experts_implementation=experts)
    if options.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def make_model(options: argparse.Namespace, device: torch.device, world: int) -> torch.nn.Module:
    """Under FSDP2: bf16 beside float32 masters."""
    mesh = dist.device_mesh.init_device_mesh(device.type, (world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return nsp.shard(bare_model(options, device), mesh, mixed_precision=policy)


def placements(world: int, tokens: int, long: int) -> list[tuple[int, int, int, int]]:
    """One sequence of `long` tokens over all ranks (0: none), the rest of each rank's in leaves up to 8K."""
    found = [(0, long, 0, world)] if long else []
    for rank in range(world):
        left = tokens - long // world
        while left > 0:
            length = min(left, LEAF[len(found) % len(LEAF)])
            found.append((len(found), length, rank, 1))
            left -= length
    return found


def random_row(context: nsp.Context, plan: bytes, vocabulary: int) -> dict:
    """This rank's inputs of the plan's first round, random tokens."""
    segments = core().rank_row(plan, 0, context.rank)
    positions = torch.cat([torch.arange(begin, end) for _, begin, end in segments])
    ids = torch.randint(vocabulary, positions.shape, generator=torch.Generator().manual_seed(context.rank))
    row = {"input_ids": ids, "position_ids": positions, "labels": ids, "shift_labels": ids}
    moved = {name: value[None].to(context.device) for name, value in row.items()}
    total = context.world_size * len(ids)
    return moved | {"nsp_plan": RowPlan(context, context.schedule(plan), 0, total), "use_cache": False}


class RandomTokens:
    """A dataset of these lengths: a sample's tokens depend on its index."""

    def __init__(self, lengths: Sequence[int], vocabulary: int) -> None:
        self.lengths, self.vocabulary = lengths, vocabulary

    def read(self, i: int, begin: int, end: int) -> torch.Tensor:
        dice = torch.Generator().manual_seed(i)
        return torch.randint(self.vocabulary, (end - begin,), generator=dice)


def with_states(model: torch.nn.Module) -> torch.optim.Optimizer:
    """An AdamW that holds its states from the first step on."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: nsp.Step) -> tuple[float, float]:
    """Seconds of one step, and this rank's part of its loss."""
    begin = time.perf_counter()
    losses = []
    for row in step.rounds:
        loss = model(**row.inputs).loss
        loss.backward()
        losses.append(loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    loss = float(sum(losses))  # waits for the device
    if losses[0].is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begin, loss
