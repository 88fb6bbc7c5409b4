"""One layer's attention under every planner's plan of the same batches, on the GPUs of a host.

How to run (make finds the GPUs, installs first where needed, and writes OUT/attention.jsonl):

    make bench-attention OUT=results                                # all GPUs of this host
    make bench-attention GPUS=2 OUT=results ARGS="--settings github --batches 8"
    torchrun --nproc-per-node 8 bench/attention.py --json results/attention.jsonl
    NSP_TRANSPORT=collective make bench-attention OUT=results       # NCCL instead of peer copies
    NCCL_P2P_DISABLE=1 make bench-attention ARGS="--inside 23"      # through host memory; plans cost it so
    make bench-attention ARGS="--hosts 2 --between 3"               # NCCL_HOSTID parts the host into two

Settings, all causal, head_dim 128: *documents*, 64 query and 8 KV heads, 8K tokens a GPU of lengths drawn
from MagiAttention's histogram, none above a quarter of the batch, planned for attention alone; and
*common_crawl*, *github*, *wikipedia*, consecutive sequences of the three traces, 32 query and 4 KV heads, 32K
tokens a GPU, sequences longer than the batch cut, planned as layers of Qwen3-MoE 30B-A3B.

Variants: static ulysses, ring, gather and usp are all sequences at the largest degree (usp: ulysses inside
each half of the ranks, a ring between the halves); static best is the best degree of ulysses; megatron-dcp
ring has that planner's groups run by ring. What cannot run says why in its batch's line. Nsp serial is nsp's
plan with every exchange beside nothing. Plans are made before anything is timed. Variants run in turns; a
time is the slowest rank's; all rounds of a plan count; a plan that several planners make runs once.

Lines: a batch's plans; for each variant and direction the median ms, TFLOP/s a GPU (2 L^2 heads head_dim a
sequence forward, 2.5 times that backward) and the median paired ratio over nsp; for both kinds of nsp
exposed_ms, what they take beyond the launches of the plan alone, which move nothing. At the end, or when
--seconds are over, summaries: medians over the batches, and streaming's exposed time over serial's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from batches import TRACES, document_batches, trace_batches
from layers import Alone, Layer, launches
from lines import Lines, hosts_for_nccl, median_ratio, place, some_of
from timing import any_rank, paired, start_ranks
from variants import MINE, SERIAL, VARIANTS, Topology, described, first_alike, profile_of, shared

import nsp

HEAD_DIM = 128
FLOPS = {"forward": 1.0, "backward": 2.5, "both": 3.5}  # times 2 L^2 heads head_dim
Plans = dict[str, nsp.Plan | str]  # by variant; a sentence: why there is none


@dataclass(frozen=True)
class Setting:
    heads: int
    kv_heads: int
    model: str  # that plans are made for
    batches: list[list[int]]

    @property
    def shape(self) -> dict[str, Any]:
        return attention_shape(self.heads, self.kv_heads)

    def tflops(self, lengths: list[int], direction: str) -> float:
        flops = 2 * self.heads * HEAD_DIM * sum(length**2 for length in lengths)
        return FLOPS[direction] * flops / 1e12


def attention_shape(heads: int, kv_heads: int) -> dict[str, Any]:
    """A layer of next to nothing but attention."""
    return {
        "name": "attention", "layers": 1, "hidden": 1, "heads": heads, "kv_heads": kv_heads,
        "head_dim": HEAD_DIM, "experts": 0, "top_k": 0, "intermediate": 1, "vocabulary": 1024,
        "bytes_per_value": 2,
    }  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, cuda = parser.add_argument, torch.cuda.is_available()
    add("--settings", type=some_of(["documents", *TRACES]), default=["documents", *TRACES])
    add("--variants", type=some_of(VARIANTS), default=list(VARIANTS), help="besides nsp and nsp serial (all)")
    add("--batches", type=int, default=4, help="of each setting (4)")
    add("--rounds", type=int, default=7, help="timed turns of a batch (7)")
    add("--tokens", type=int, default=32768, help="of a GPU, traces (32768)")
    add("--document-tokens", type=int, default=8192, help="of a GPU, documents (8192)")
    add("--seed", type=int, default=0, help="of the documents (0)")
    add("--seconds", type=float, default=240, help="since the start; no batch begins later (240)")
    add("--hosts", type=int, default=1, help="that NCCL and the planners see (1)")
    add("--profile", default="h200" if cuda else "cpu-gloo", help="cost profile of the plans")
    add("--inside", type=float, help="GB/s a GPU inside a host, instead of the profile's (h200: 280)")
    add("--between", type=float, help="GB/s a GPU between hosts, instead of the profile's (h200: 42)")
    add("--json", default="", metavar="FILE")
    return parser.parse_args()


def settings_of(options: argparse.Namespace, world: int) -> dict[str, Setting]:
    found = {}
    for name in options.settings:
        if name == "documents":
            batches = document_batches(options.document_tokens * world, options.batches, options.seed)
            found[name] = Setting(64, 8, json.dumps(attention_shape(64, 8)), batches)
        else:
            batches = trace_batches(name, options.tokens * world, options.batches)
            found[name] = Setting(32, 4, "qwen3-30b-a3b", batches)
    return found


def planned(settings: dict[str, Setting], names: list[str], topology: Topology) -> dict[Any, Plans]:
    """Plans by (setting, batch), every rank a share of them. Collective."""
    jobs = [(s, i, v) for s in settings for i in range(len(settings[s].batches)) for v in names]

    def make(job: tuple[str, int, str]) -> nsp.Plan:
        setting, index, variant = job
        return VARIANTS[variant].plan(settings[setting].batches[index], topology, settings[setting].model)

    plans: dict[Any, Plans] = {}
    for (setting, index, variant), plan in shared(jobs, make).items():
        plans.setdefault((setting, index), {})[variant] = plan
    return plans


def contexts(settings: dict[str, Setting], topology: Topology) -> dict[Any, nsp.Context]:
    """By (heads, streaming)."""
    made: dict[Any, nsp.Context] = {}
    for setting in settings.values():
        for streaming in (True, False):
            if (setting.heads, streaming) not in made:
                made[setting.heads, streaming] = nsp.init(
                    None, setting.shape, sp_max=topology.largest, backends=("all",), streaming=streaming,
                    ranks_per_host=topology.ranks_per_host,
                )  # fmt: skip
    return made


def measure(made: dict[Any, nsp.Context], setting: Setting, plans: Plans, rounds: int) -> dict[str, Any]:
    """Milliseconds by direction and variant, "alone" among them; the same plan runs once."""
    context, mine = made[setting.heads, True], plans[MINE]
    assert isinstance(mine, nsp.Plan), mine
    good = {name: plan for name, plan in plans.items() if isinstance(plan, nsp.Plan)}
    alike = first_alike({name: plan for name, plan in good.items() if VARIANTS[name].streaming})
    alike |= {SERIAL: SERIAL, "alone": "alone"}
    runs: dict[str, Layer | Alone] = {
        name: Layer(made[setting.heads, VARIANTS[name].streaming], good[name].json)
        for name in dict.fromkeys(alike.values())
        if name != "alone"
    }
    runs["alone"] = Alone(context, launches(mine.json, context.rank) or [])
    for run in runs.values():
        run.forward()
        run.backward()
    found = {}
    for direction in ("forward", "backward"):
        times = paired({name: getattr(run, direction) for name, run in runs.items()}, rounds, warm=1)
        found[direction] = {name: times[first] for name, first in alike.items()}
    found["both"] = {
        name: [a + b for a, b in zip(found["forward"][name], found["backward"][name], strict=True)]
        for name in alike
    }
    return found


def batch_lines(times: dict[str, Any], tflops: dict[str, float]) -> list[dict[str, Any]]:
    lines = []
    for direction, by_variant in times.items():
        alone = by_variant["alone"]
        for name, values in by_variant.items():
            ms = statistics.median(values)
            line = {"variant": name, "direction": direction, "ms": ms}
            line |= {"tflops_per_gpu": 1e3 * tflops[direction] / ms}
            line |= {"over_nsp": median_ratio(values, by_variant[MINE])}
            if name in (MINE, SERIAL):
                spent = [a - b for a, b in zip(values, alone, strict=True)]
                line |= {"exposed_ms": statistics.median(spent)}
            lines.append(line)
    return lines


def summary(lines: list[dict[str, Any]], setting: str, direction: str) -> dict[str, Any]:
    """Of the batch lines of one setting and direction."""
    mine = [line for line in lines if line["setting"] == setting and line["direction"] == direction]
    found: dict[str, Any] = {"summary": setting, "direction": direction}
    found["batches"] = len({line["batch"] for line in mine})
    for field in ("over_nsp", "tflops_per_gpu"):
        names = dict.fromkeys(line["variant"] for line in mine)
        found[field] = {
            name: statistics.median(line[field] for line in mine if line["variant"] == name) for name in names
        }
    exposed = {
        name: sum(line["exposed_ms"] for line in mine if line["variant"] == name) for name in (MINE, SERIAL)
    }
    found["exposed_ms"] = exposed
    found["exposed_over_serial"] = exposed[MINE] / exposed[SERIAL] if exposed[SERIAL] else None
    return found


def main() -> None:
    began, options = time.monotonic(), parse()
    ranks_per_host = hosts_for_nccl(options.hosts)
    device = start_ranks()
    world, lines = dist.get_world_size(), Lines(options.json)
    profile = profile_of(options.profile, options.inside, options.between)
    topology = Topology(world, ranks_per_host, profile)
    settings = settings_of(options, world)
    names = [name for name in VARIANTS if name in (*options.variants, MINE, SERIAL)]
    plans = planned(settings, names, topology)
    made = contexts(settings, topology)
    lines.write({**place(next(iter(made.values())), profile), "options": vars(options)})
    measured: list[dict[str, Any]] = []
    for index in range(options.batches):
        for name, setting in settings.items():
            if any_rank(time.monotonic() - began > options.seconds) or index >= len(setting.batches):
                continue
            batch, here = setting.batches[index], {"setting": name, "batch": index}
            facts = {"sequences": len(batch), "longest": max(batch), "tokens": sum(batch)}
            lines.write({**here, **facts, "plans": described(plans[name, index])})
            times = measure(made, setting, plans[name, index], options.rounds)
            tflops = {direction: setting.tflops(batch, direction) / world for direction in FLOPS}
            for line in batch_lines(times, tflops):
                measured.append(here | line)
                lines.write(measured[-1])
    for name in dict.fromkeys(line["setting"] for line in measured):
        for direction in FLOPS:
            lines.write(summary(measured, name, direction))
    lines.write({"seconds": time.monotonic() - began, "device": str(device)})
    for context in made.values():
        context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
