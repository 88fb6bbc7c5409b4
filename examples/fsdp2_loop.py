"""A training loop of your own: Hugging Face Qwen3-MoE, plain FSDP2, and nested sequence parallelism.

    python -m torch.distributed.run --standalone --nproc-per-node 2 examples/fsdp2_loop.py [--steps 8]

Trains a small model on made-up, long-tailed text; on GPUs over NCCL in bf16, else on CPUs.
The lines that make it nested are marked `nsp:`.
"""

import argparse
import os
import random

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import nsp

VOCABULARY = 256


class Text:
    """A dataset for nsp: `lengths`, and `read` of a part of one sample."""

    def __init__(self, samples: int) -> None:
        dice = random.Random(0)
        self.lengths = [min(int(dice.paretovariate(0.9) * 24), 2048) for _ in range(samples)]

    def read(self, i: int, begin: int, end: int) -> torch.Tensor:
        return (torch.arange(begin, end) * (1 + i % 7) + i) % VOCABULARY


def make_model() -> torch.nn.Module:
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, moe_intermediate_size=64,
        num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2, head_dim=64,
        num_experts=4, num_experts_per_tok=2, use_cache=False,
    )  # fmt: skip
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    mesh = dist.device_mesh.init_device_mesh("cuda" if cuda else "cpu", (dist.get_world_size(),))

    model = make_model().to("cuda" if cuda else "cpu").train()
    bf16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    ctx = nsp.init(mesh, model.config, sp_max=dist.get_world_size())  # nsp: checks itself on a small batch
    model = nsp.shard(model, mesh, mixed_precision=bf16 if cuda else None)  # nsp: fully_shard of every layer
    nsp.attach(model, ctx)  # nsp: this model only
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    steps = nsp.PlannedSteps(Text(400), ctx, tokens_per_step=4096, seed=0)  # nsp: item k is global batch k
    for number, step in enumerate(nsp.loader(steps)):  # nsp: plans and reads ahead
        if number == options.steps:
            break
        loss = torch.zeros((), device=ctx.device)
        for row in step.rounds:
            part = model(**row.inputs).loss  # this rank's part: the mean over ranks is the step's loss
            part.backward()
            loss += part.detach()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss)
        if dist.get_rank() == 0:
            print(f"step {number}: loss {loss.item() / dist.get_world_size():.4f}", flush=True)
    ctx.close()  # nsp: nobody waits for this rank any more
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
