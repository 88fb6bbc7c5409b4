"""Nested attention of one layer on the GPUs of a host, next to the same attention without any exchange.

    torchrun --nproc-per-node 2 bench/attention_layer.py [--rounds 21] [--transports collective,peer-copy]
        [--serial] [--json FILE]
    NCCL_P2P_DISABLE=1 torchrun --nproc-per-node 2 bench/attention_layer.py --transports collective --serial

The mix on N GPUs: one sequence of 16K x N tokens and N of 4K x N tokens over all GPUs, and 8K tokens a GPU
in leaf sequences of 4K to 512; 32 query and 4 KV heads, head_dim 128, bf16. Each transport has a context of
its own and runs with all leaves before the level, with a part before and the rest behind it, and so with the
level in two waves, its short sequences first. "alone" launches the kernels of one wave (the level, all
leaves) on each level's heads and moves nothing; "alone, two waves" those of the last (leaves, short, long,
leaves). Rounds run all in turns between device events; the slowest rank counts; medians of the paired ratio.
Host: microseconds that a call keeps the host busy, with the queue full; "exchanges" is torch's
all_to_all_single alone, as many and as large as those of the whole level, "torch" its own attention (cuDNN)
in one launch. --serial: the level also by gather and by ring, whose exchanges are KV heads alone, and each
variant also with every exchange beside nothing; exposed over serial: what it takes beyond "alone", over the
same of its serial twin (for gather and ring too, whose chunks and merges no exchange explains).
"""

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from layers import Alone, Layer
from nsp._native import core
from timing import paired, start_ranks
from torch.nn.attention import SDPBackend, sdpa_kernel

import nsp

HEADS, KV_HEADS, HEAD_DIM = 32, 4, 128


def shape() -> dict:
    return {
        "name": "layer", "layers": 1, "hidden": 4096, "heads": HEADS, "kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM, "experts": 0, "top_k": 0, "intermediate": 4096, "vocabulary": 1024,
        "bytes_per_value": 2,
    }  # fmt: skip


def rows(tokens: int, heads: int) -> torch.Tensor:
    return torch.randn(tokens, heads, HEAD_DIM, device="cuda", dtype=torch.bfloat16)


LEAVES = [4096, 2048, 1024, 512, 512]  # of each GPU


@dataclass(frozen=True)
class Variant:
    """How the same placements are scheduled."""

    leaf_first: int = 0  # leaves before the level's attention, the rest behind it; 0: all before it
    waves: bool = False  # the level's sequences of 4K x N tokens as a wave of their own
    backend: str = "ulysses"  # of the level


VARIANTS = {
    "": Variant(),
    ", leaves around": Variant(leaf_first=1),
    ", leaves around, two waves": Variant(leaf_first=1, waves=True),
}


BY_KV_HEADS = {
    ", gather, leaves around, two waves": Variant(leaf_first=1, waves=True, backend="gather"),
    ", ring": Variant(backend="ring"),
    ", ring, leaves around, two waves": Variant(leaf_first=1, waves=True, backend="ring"),
}


def alone(context: nsp.Context, world: int) -> dict[str, Alone]:
    long, short = [16384 * world], [4096 * world] * world
    return {
        "alone": Alone(context, [(long + short, world), (LEAVES, 1)]),
        "alone, two waves": Alone(context, [(LEAVES[:1], 1), (short, world), (long, world), (LEAVES[1:], 1)]),
    }


class Nested(Layer):
    """The executor on the whole mix."""

    def __init__(self, context: nsp.Context, world: int, variant: Variant) -> None:
        way = (0, world, variant.backend, world if variant.backend == "ulysses" else 1)
        lengths: list[tuple] = [(16384 * world, *way)] + [(4096 * world, *way)] * world
        lengths += [(tokens, rank, 1, "local", 1) for rank in range(world) for tokens in LEAVES]
        placements = [(i, *rest) for i, rest in enumerate(lengths)]
        leaf_first = [[variant.leaf_first] * world] if variant.leaf_first else []
        cuts = [[(world, 4096 * world)]] if variant.waves else []
        plan = core().make_plan(world, world, world, 0, [placements], "given", leaf_first, cuts)
        super().__init__(context, plan)


class Torch:
    """Torch's own attention of one layer, a cuDNN launch over as many tokens: its host time."""

    def __init__(self, world: int) -> None:
        tokens = 24576 + 4096 * world
        self.q, self.k, self.v, self.dout = (
            rows(tokens, h).transpose(0, 1)[None].requires_grad_() for h in (HEADS, KV_HEADS, KV_HEADS, HEADS)
        )
        self.out = torch.empty(0)

    def forward(self) -> None:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            self.out = torch.nn.functional.scaled_dot_product_attention(
                self.q, self.k, self.v, is_causal=True, enable_gqa=True
            )

    def backward(self) -> None:
        torch.autograd.grad(self.out, (self.q, self.k, self.v), self.dout, retain_graph=True)


class Exchanges:
    """Torch's own all-to-all on the executor's group: the two of a pass of the level, parts of equal size."""

    def __init__(self, context: nsp.Context, world: int) -> None:
        self.group = context.group
        tokens = 16384 + 4096 * world  # of a rank at the level
        heads, kv_heads = HEADS // world, max(1, KV_HEADS // world)

        def buffers(heads: int) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
            shape = (world * tokens, heads * HEAD_DIM)
            return *(torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for _ in "ab"), [tokens] * world

        self.packed, self.single = buffers(heads + 2 * kv_heads), buffers(heads)

    def forward(self) -> None:
        for received, sent, counts in (self.packed, self.single):
            dist.all_to_all_single(received, sent, counts, counts, group=self.group)

    backward = forward


def host_seconds(run, repeats: int = 20) -> float:
    """Median seconds that one call takes on the host while the device is kept busy."""
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return statistics.median(times)


def make_context(transport: str, world: int, streaming: bool = True) -> nsp.Context:
    os.environ["NSP_TRANSPORT"] = transport
    return nsp.init(None, shape(), sp_max=world, backends=("all",), streaming=streaming)


SERIAL = ", serial"


def exposed_over_serial(times: dict[str, list[float]]) -> dict[str, float]:
    def median_beyond_alone(name: str) -> float:
        return statistics.median(a - b for a, b in zip(times[name], times["alone"], strict=True))

    twins = [name for name in times if name + SERIAL in times]
    return {name: median_beyond_alone(name) / median_beyond_alone(name + SERIAL) for name in twins}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--transports", default="collective,peer-copy")
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    start_ranks()
    transports = options.transports.split(",")
    contexts = {name: make_context(name, world) for name in transports}
    context = contexts[transports[0]]
    if options.serial:
        contexts |= {name + SERIAL: make_context(name, world, False) for name in transports}
    nested = {
        name.removesuffix(SERIAL) + how + (SERIAL if name.endswith(SERIAL) else ""): Nested(
            made, world, variant
        )
        for name, made in contexts.items()
        for how, variant in (VARIANTS | BY_KV_HEADS if options.serial else VARIANTS).items()
    }
    kernels = alone(context, world)
    passes = {**nested, **kernels}
    exchanges, own = Exchanges(context, world), Torch(world)
    own.forward()
    for one in passes.values():
        one.forward()
    lines = []
    for direction in ("forward", "backward"):
        runs = {name: getattr(one, direction) for name, one in passes.items()}
        times = paired(runs, options.rounds)
        line = {"direction": direction, "gpus": world, "kernel": context.kernel}
        for over in kernels:
            line[f"over_{over}".replace(", ", "_").replace(" ", "_")] = {
                name: statistics.median(a / b for a, b in zip(times[name], times[over], strict=True))
                for name in passes
                if name != over
            }
        line["exposed_over_serial"] = exposed_over_serial(times)
        line["ms"] = {name: statistics.median(values) for name, values in times.items()}
        runs |= {"exchanges": getattr(exchanges, direction), "torch": getattr(own, direction)}
        line["host_us"] = {name: 1e6 * host_seconds(run) for name, run in runs.items()}
        lines.append(line)
        if rank == 0:
            print(json.dumps(line))
    if rank == 0 and options.json:
        Path(options.json).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for context in contexts.values():
        context.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
