"""`torchrun --nproc-per-node N -m nsp.train`: trains a small Qwen3-MoE with nested sequence parallelism.

Bytes are tokens; the corpus is a folder's text files or Python's own library. Every step gets a line, and a
JSON line in runs/<name>/metrics.jsonl. gloo and fp32 on CPUs, NCCL and bf16 where CUDA is there: the same
code. Exit code 2: bad options (torchrun itself then ends with 1).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy

import nsp
from nsp.context import Context
from nsp.corpus import VOCABULARY, Corpus, load_corpus
from nsp.memory import memory
from nsp.metrics import Metrics, format_lengths
from nsp.peak_report import PeakReport, PeakWatch
from nsp.settings import check_settings, make_settings
from nsp.trace import StepTrace
from nsp.train_options import default_budget, default_sp_max, options


def model_config(args: argparse.Namespace) -> Any:
    from transformers import Qwen3MoeConfig

    fields: dict[str, Any] = dict(
        vocab_size=VOCABULARY,
        hidden_size=args.hidden,
        intermediate_size=2 * args.hidden,
        moe_intermediate_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        num_key_value_heads=args.kv_heads,
        head_dim=args.head_dim,
        num_experts=args.experts,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        max_position_embeddings=max(32768, args.max_length),
        tie_word_embeddings=False,
        use_cache=False,
        dtype=torch.bfloat16 if torch.cuda.is_available() else torch.float32,
    )
    return Qwen3MoeConfig(**fields)


def make_model(args: argparse.Namespace, config: Any, context: Context) -> Any:
    """Same weights on every rank (one seed), then sharded; attached to the context; layers compiled if asked
    for.
    """
    from transformers import AutoModelForCausalLM

    torch.manual_seed(args.seed)
    cuda = context.device.type == "cuda"
    compiled = compiles(args, context)
    experts = "grouped_mm" if cuda else "batched_mm" if compiled else "eager"  # eager ones cannot be compiled
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, experts_implementation=experts)
    mesh = dist.device_mesh.init_device_mesh(context.device.type, (context.world_size,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if cuda else None
    nsp.shard(model.to(context.device).train(), mesh, mixed_precision=policy)
    if args.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    nsp.attach(model, context)
    if compiled:
        nsp.compile_layers(model)
    return model


def compiles(args: argparse.Namespace, context: Context) -> bool:
    """Whether decoder layers are compiled: as asked for, else on GPUs only."""
    return context.device.type == "cuda" if args.compile is None else bool(args.compile)


def train(
    args: argparse.Namespace, context: Context, model: Any, steps: nsp.PlannedSteps, metrics: Metrics
) -> PeakReport | None:
    """What was predicted and measured of memory."""
    watch = PeakWatch(context, model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    warm = max(1, args.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm))
    trace = StepTrace(args.trace, *args.trace_steps)
    done, epoch = 0, 0
    while done < args.steps:
        steps.set_epoch(epoch)
        if len(steps) == 0:
            raise ValueError("--corpus: no sample fits a step; raise --tokens-per-step or --token-budget")
        for step in islice(nsp.loader(steps), args.steps - done):
            trace.before(done)
            begin = time.perf_counter()
            loss = torch.zeros((), dtype=torch.float64, device=context.device)
            for row in step.rounds:
                row_loss = model(**row.inputs).loss
                row_loss.backward()
                loss += row_loss.detach()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            watch.add(step.plan)
            dist.all_reduce(loss, group=context.group)
            metrics.write(done, float(loss) / context.world_size, step, time.perf_counter() - begin, steps)
            trace.after(done, last=args.steps - 1)
            done += 1
        epoch += 1
    return watch.report()


def describe(args: argparse.Namespace, context: Context, corpus: Corpus, steps: nsp.PlannedSteps) -> str:
    attention_type = torch.bfloat16 if context.device.type == "cuda" else torch.float32
    cut = f"{corpus.cut} cut at {args.max_length}, {corpus.lost} tokens lost"
    return (
        f"corpus: {len(corpus.lengths)} samples, {corpus.tokens} tokens "
        f"({format_lengths(corpus.lengths)}; {cut})\n"
        f"world: {context.world_size} ranks on {context.device.type}, attention kernel {context.kernel}, "
        f"sp_max {context.settings.sp_max}, "
        f"{args.tokens_per_step} tokens a step, at most {steps.token_budget} a rank, planner "
        f"{steps.planner}, "
        f"{len(steps)} steps an epoch\n"
        f"{memory(context, steps.token_budget, attention_type, steps.byte_budget)}\n"
        f"decoder layers: {'compiled at the first step' if compiles(args, context) else 'eager'}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0: trained. 2: an option is wrong (one sentence on stderr, before any rank waits for another)."""
    rank, local, world = (
        int(os.environ.get(*name)) for name in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1))
    )
    cuda = torch.cuda.is_available()
    try:
        args = options(arguments)
        config = model_config(args)
        keywords = {
            "sp_max": args.sp_max or default_sp_max(world, args.heads, args.backends),
            "planner": args.planner,
            "backends": args.backends,
            "profile": args.profile,
            "token_budget": default_budget(args, world),
            "over_length": "truncate",
            "byte_budget": args.byte_budget,
            "host_budget": args.host_budget,
            "device_bytes": args.device_bytes,
            "streaming": args.streaming,
        }
        check_settings(make_settings(world, config, "cuda" if cuda else "cpu", **keywords))
        corpus = load_corpus(args.corpus, args.max_length)
    except ValueError as error:
        if rank == 0:
            print(f"nsp.train: {error}", file=sys.stderr, flush=True)
        else:
            time.sleep(5)  # the launcher ends all ranks when one ends: let rank 0 speak first
        return 2
    if args.check_only:
        return 0
    start_ranks(cuda, rank, local, world)
    try:
        context = nsp.init(None, config, **keywords)
        model = make_model(args, config, context)
        steps = nsp.PlannedSteps(corpus, context, args.tokens_per_step, seed=args.seed)
        if rank == 0:
            print(describe(args, context, corpus, steps), flush=True)
        report = train(args, context, model, steps, Metrics(args.name if rank == 0 else None))
        if rank == 0 and report is not None:
            print(report, json.dumps({"memory": report.line()}), sep="\n", flush=True)
        context.close()
    finally:
        dist.destroy_process_group()
    return 0


def start_ranks(cuda: bool, rank: int, local: int, world: int) -> None:
    """The job's process group. One thread a rank when ranks share the cores."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks_here))
    if cuda:
        torch.cuda.set_device(local)
    if "MASTER_ADDR" in os.environ:  # torchrun's
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo")
    else:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if cuda else "gloo", store=dist.HashStore(), rank=0, world_size=1
        )


if __name__ == "__main__":
    sys.exit(main())
