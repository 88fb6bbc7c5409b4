"""Device memory at automatic budgets: does anything run out, and is the predicted peak the measured one?

    torchrun --nproc-per-node 2 bench/memory.py [--batches 50] [--share 0.4] [--layers 2] [--json FILE]

Qwen3-MoE at the widths of 30B-A3B (random weights, small vocabulary), FSDP2, bf16, AdamW, every layer
checkpointed, token and byte budget `auto`. A tensor of no use takes all but a share of the device, so that
steps fill what is left in about a second each. Batches come from the three traces in turns, `--fill` of what
the devices could hold in one pass; longer sequences are left out. A batch is a whole training step. One
JSON line a batch: predicted and measured peak of the rank with the largest (bytes of torch's allocator, the
tensor of no use not counted), the moment predicted, tokens, rounds, bytes saved a layer. The
last line sums up; exit code 1 if memory ran out. On CPU (small sizes, --device-bytes) nothing is measured.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from batches import trace_lengths
from nsp.budgets import MOST_TOKENS, find_budgets
from nsp.peak_report import PeakWatch
from timing import start_ranks
from training import RandomTokens, make_model, train, with_states

import nsp

TRACES = ("wikipedia", "common_crawl", "github")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cuda = torch.cuda.is_available()
    parser.add_argument("--batches", type=int, default=50 if cuda else 6)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=2048 if cuda else 32)
    parser.add_argument("--experts", type=int, default=128 if cuda else 4)
    parser.add_argument("--vocabulary", type=int, default=8192 if cuda else 256)
    parser.add_argument("--share", type=float, default=0.4, help="of the device that steps may use")
    parser.add_argument("--device-bytes", default=None if cuda else "256MiB", help="instead of measuring")
    parser.add_argument("--fill", type=float, default=0.8, help="of what one pass could hold")
    parser.add_argument("--seconds", type=float, default=75, help="no batch begins later")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", default="")
    return parser.parse_args()


def fill_device(device: torch.device, share: float) -> torch.Tensor:
    """Takes what is free beyond the share."""
    free, total = torch.cuda.mem_get_info(device)
    return torch.empty(max(0, free - int(share * total)), dtype=torch.uint8, device=device)


def run(options: argparse.Namespace, context: nsp.Context, model: torch.nn.Module) -> list[dict]:
    began = time.perf_counter()
    most = find_budgets(context, MOST_TOKENS, []).token_budget  # of both `auto`: what fits
    tokens = int(options.fill * most * context.world_size / 1.2)
    traces = [
        RandomTokens([n for n in trace_lengths(name) if n <= tokens], options.vocabulary) for name in TRACES
    ]
    keywords = {"seed": options.seed, "drop_last": True}
    planned = [nsp.PlannedSteps(trace, context, tokens, **keywords) for trace in traces]
    loaders = [iter(nsp.loader(steps, prefetch=1)) for steps in planned]
    watch, lines = PeakWatch(context, model), []
    optimizer = with_states(model)
    watch.report()  # begins anew
    for batch in range(options.batches):
        late = torch.tensor(time.perf_counter() - began > options.seconds)
        dist.all_reduce(late, op=dist.ReduceOp.MAX)
        if late:
            break
        turn = batch % len(TRACES)
        step = next(loaders[turn])
        seconds, _ = train(model, optimizer, step)
        watch.add(step.plan)
        report = watch.report()
        assert report is not None
        lines.append({"trace": TRACES[turn], "batch": batch, **report.line()})
        lines[-1] |= {"tokens": step.plan.num_tokens, "tokens_max": step.plan.predicted.tokens_max}
        lines[-1] |= {"rounds": step.plan.num_rounds, "saved_bytes_a_layer": step.plan.predicted.bytes_max}
        lines[-1] |= {"seconds": seconds}
        del step
        if context.rank == 0:
            print(json.dumps(lines[-1]), flush=True)
    for loader in loaders:
        loader.close()
    summary = {"token_budget": planned[0].token_budget, "byte_budget": planned[0].byte_budget}
    summary |= {"largest_token_budget": most, "tokens_per_step": tokens, "capacity": context.capacity}
    return [*lines, summary]


def summed_up(options: argparse.Namespace, lines: list[dict], failure: str) -> dict:
    ratios = [line["ratio"] for line in lines if line.get("ratio")]
    line = {"batches": sum("batch" in line for line in lines), "out_of_memory": failure}
    if ratios:
        line |= {"lowest_ratio": min(ratios), "highest_ratio": max(ratios)}
        line |= {"mean_ratio": math.exp(sum(map(math.log, ratios)) / len(ratios))}
        stats = torch.cuda.memory_stats()
        line |= {"reserved_bytes": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"]}
        line |= {"device": torch.cuda.get_device_name()}
    return line | {name: getattr(options, name) for name in ("layers", "hidden", "experts", "share", "fill")}


def main() -> int:
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # lengths differ in every batch
    options = parse()
    options.checkpoint = True
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = start_ranks()
    cuda = device.type == "cuda"
    model = make_model(options, device, world)
    context = nsp.init(
        None, model.config, sp_max=world, token_budget="auto", byte_budget="auto",
        device_bytes=options.device_bytes, over_length="skip",
    )  # fmt: skip
    taken = fill_device(device, options.share) if cuda and options.device_bytes is None else None
    nsp.attach(model, context)
    lines, failure = [], ""
    try:
        lines = run(options, context, model)
    except torch.OutOfMemoryError as error:  # the others wait for this rank: say it and end
        failure = str(error).splitlines()[0]
        print(json.dumps({"rank": rank, "out_of_memory": failure}), flush=True)
        os._exit(1)
    if rank == 0:
        lines[-1] |= summed_up(options, lines, failure)
        print(json.dumps(lines[-1]), flush=True)
        if options.json:
            Path(options.json).write_text("".join(json.dumps(line) + "\n" for line in lines))
    del taken
    context.close()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
