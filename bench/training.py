"""What the training benchmarks run: Qwen3-MoE at the widths of 30B-A3B, random tokens, one optimizer step."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import nsp


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
