r"""Measures the profile of the default run (tiny model, ranks as processes that share this machine's cores).

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 4 tools/measure_cpu.py \\
        [--write nsp/cost/presets/tiny-cpu-gloo.json]

All ranks work at once, as in training; the mean over ranks of each rank's median counts. Attention is fitted
to the profile's law (nsp/cost/profile.h) by least squares on relative errors, exchanges to latency +
bytes/rate, the dense part to fixed + tokens x rate.
"""

import argparse
import json
import os
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from nsp.loss import linear_cross_entropy
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

from nsp import _exec

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, LAYERS, EXPERTS, VOCABULARY = 8, 2, 16, 128, 4, 8, 258
ATTENTION = [(128, 64, 8, 2), (256, 32, 8, 2), (1024, 8, 8, 2), (4096, 1, 8, 2), (8192, 1, 8, 2)]
ATTENTION += [(256, 32, 2, 1), (2048, 4, 2, 1), (8192, 1, 2, 1), (16384, 1, 2, 1)]
EXCHANGES = [1024, 65536, 1 << 20, 4 << 20]  # bytes a rank sends
TOKENS = [512, 2048, 6144]


def seconds(run, repeats: int = 5) -> float:
    """Mean over ranks of the median; ranks start together."""
    times = []
    for i in range(repeats + 1):
        dist.barrier()
        begin = time.perf_counter()
        run()
        if i:
            times.append(time.perf_counter() - begin)
    mine = torch.tensor(statistics.median(times), dtype=torch.float64)
    dist.all_reduce(mine)
    return float(mine) / dist.get_world_size()


def measure_attention() -> tuple[list, list]:
    kernel = _exec.Kernel("cpu")
    forward, backward = [], []
    for length, count, heads, kv_heads in ATTENTION:
        sequences = _exec.Ragged([length] * count)
        q, dout = (torch.randn(length * count, heads, HEAD_DIM) for _ in range(2))
        k, v = (torch.randn(length * count, kv_heads, HEAD_DIM) for _ in range(2))
        out, lse = kernel.forward(q, k, v, sequences, 0.25, 0)
        row = (length, count, heads)
        run = partial(kernel.forward, q, k, v, sequences, 0.25, 0)
        forward.append((row, seconds(run)))
        run = partial(kernel.backward, q, k, v, out, lse, dout, sequences, 0.25, 0)
        backward.append((row, seconds(run)))
    return forward, backward


def fit_attention(rows: list) -> dict:
    """block, row and entry seconds; relative least squares, negative terms dropped."""
    n = np.array([-(-length // 128) for (length, _, _), _ in rows], dtype=float)
    count = np.array([c for (_, c, _), _ in rows], dtype=float)
    heads = np.array([h for (_, _, h), _ in rows], dtype=float)
    measured = np.array([s for _, s in rows])
    columns = {
        "block": count * heads * n * (n + 1) / 2,
        "row_seconds": count * heads * n,
        "entry_seconds": count,
    }
    names = list(columns)
    while True:
        matrix = np.stack([columns[name] / measured for name in names], axis=1)
        solution, *_ = np.linalg.lstsq(matrix, np.ones(len(rows)), rcond=None)
        if (solution >= 0).all():
            break
        names.pop(int(solution.argmin()))
    error = matrix @ solution - 1
    if dist.get_rank() == 0:
        for (row, value), e in zip(rows, error, strict=True):
            print(row, f"{value:.5f} s, fit {100 * e:+.0f} %")
    fit = dict.fromkeys(columns, 0.0) | dict(zip(names, solution.tolist(), strict=True))
    fit["block"] = [{"tokens": 65536, "seconds": fit["block"]}]
    return fit | {"relative_rms": float(np.sqrt((error**2).mean()))}


def line(xs: list, ys: list) -> tuple[float, float]:
    rate, fixed = np.polyfit(xs, ys, 1, w=1 / np.array(ys))
    return max(float(fixed), 0.0), float(rate)


def exchange(rows: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """What a level's phase does beside attention: pack, all-to-all into new memory, order rows, unpack."""
    packed = rows.unflatten(1, (dist.get_world_size(), -1)).transpose(0, 1).contiguous()
    received = torch.empty_like(packed)
    dist.all_to_all_single(received, packed)
    return received.flatten(0, 1).index_select(0, order).clone()


def measure_exchange() -> tuple[float, float]:
    world, width = dist.get_world_size(), HEADS * HEAD_DIM
    times = []
    for size in EXCHANGES:
        rows = torch.zeros(size // 4 // width, width)
        order = torch.randperm(len(rows) * world)
        times.append(seconds(partial(exchange, rows, order), 15))
    return line([size * (world - 1) / world for size in EXCHANGES], times)


def measure_dense() -> dict:
    """Seconds of one layer without attention, and of loss and head, a token."""

    def identity(module, query, key, value, mask, **keywords):
        return query.transpose(1, 2), None

    from transformers import AttentionInterface

    AttentionInterface.register("identity", identity)
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, moe_intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM, num_experts=EXPERTS,
        num_experts_per_tok=2, use_cache=False,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, experts_implementation="eager").train()
    model.set_attn_implementation("identity")
    forward, backward, head = [], [], []
    for tokens in TOKENS:
        ids = torch.randint(VOCABULARY, (1, tokens))
        hidden = torch.randn(tokens, HIDDEN, requires_grad=True)
        out = model.model(input_ids=ids).last_hidden_state
        forward.append(seconds(lambda ids=ids: model.model(input_ids=ids), 3) / LAYERS)
        backward.append(seconds(lambda out=out: out.sum().backward(retain_graph=True), 3) / LAYERS)
        weight = model.lm_head.weight
        head.append(seconds(lambda h=hidden, i=ids, w=weight: linear_cross_entropy(h, w, i[0]).backward(), 3))
    fits = {"dense_forward": line(TOKENS, forward), "dense_backward": line(TOKENS, backward)}
    # Not measured apart: the experts' share is that of the parameters that a token uses.
    experts = 3 * 2 * HIDDEN * HIDDEN
    share = experts / (experts + HIDDEN * 2 * (HEADS + KV_HEADS) * HEAD_DIM)
    result = {
        name: {"fixed_seconds": a, "token_seconds": b, "expert_token_seconds": b * share}
        for name, (a, b) in fits.items()
    }
    return result | {"lm_head_token_seconds": line(TOKENS, head)[1]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", default="", help="the preset to update; without it the numbers are printed"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    profile: dict = {"measured": True}
    for name, rows in zip(("attention_forward", "attention_backward"), measure_attention(), strict=True):
        profile[name] = fit_attention(rows)
        rms = profile[name].pop("relative_rms")
        profile["source"] = profile.get("source", "") + f"{name}: fit within {100 * rms:.0f} % rms; "
    latency, byte_seconds = measure_exchange()
    # Two digits: the cluster preset cpu-gloo (nsp/cluster/presets.cpp) holds the same numbers.
    link = {"bytes_per_second": float(f"{1 / byte_seconds:.1e}"), "latency_seconds": float(f"{latency:.1e}")}
    profile |= {"inside": link, "between": link} | measure_dense()
    profile["source"] += (
        f"tools/measure_cpu.py, {dist.get_world_size()} processes on {os.cpu_count()} cores, "
        f"torch {torch.__version__}; optimizer estimated."
    )
    if dist.get_rank() == 0:
        path = Path(options.write) if options.write else None
        old = json.loads(path.read_text()) if path else {}
        for name, value in profile.items():
            same = isinstance(value, dict) and isinstance(old.get(name), dict)
            old[name] = old[name] | value if same else value
        text = json.dumps(old, indent=2) + "\n"
        print(text) if path is None else path.write_text(text)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
