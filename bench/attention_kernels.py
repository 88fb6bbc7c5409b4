"""Attention kernels on one GPU: TFLOP/s of ours (cuDNN ragged), FlashAttention-2 and cuDNN dense, in turns.

    python bench/attention_kernels.py [--rounds 15] [--json FILE]

Each round runs every kernel of a row once, in shuffled order, between device events; the median counts.
FLOPs: forward 2 L^2 heads head_dim a sequence (causal), backward 2.5 times that. "dense" is torch's
scaled_dot_product_attention with the cuDNN backend on the same lengths, one launch for equal lengths,
otherwise one a sequence (those of one token, which it does not take, left out).
"""

import argparse
import json
import math
import random
import statistics
from pathlib import Path

import torch
from nsp._native import execution
from torch.nn.attention import SDPBackend, sdpa_kernel

_exec = execution()

HEAD_DIM = 128
MIX = [16384, 8192, 4096, 2048, 1024, 512, 256, 256]
ODD = [12345, 9999, 5001, 4096, 777, 33, 1]
ROWS = [
    ("1 x 32K", [32768], 32, 4),
    ("8 x 4K", [4096] * 8, 32, 4),
    ("32 x 1K", [1024] * 32, 32, 4),
    ("128 x 256", [256] * 128, 32, 4),
    ("mix 16K..256", MIX, 32, 4),
    ("odd lengths", ODD, 32, 4),
    ("1 x 256K", [262144], 32, 4),
    ("1 x 64K, 4/1 heads", [65536], 4, 1),
]


def milliseconds(runs: dict, rounds: int) -> dict[str, list[float]]:
    """Times of each callable, interleaved in shuffled order; two warm-up rounds are not counted."""
    times = {name: [] for name in runs}
    order = random.Random(0)
    for i in range(rounds + 2):
        names = list(runs)
        order.shuffle(names)
        for name in names:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)  # the host gets ahead: no launch gap is timed
            begin.record()
            runs[name]()
            end.record()
            torch.cuda.synchronize()
            if i >= 2:
                times[name].append(begin.elapsed_time(end))
    return times


def dense_parts(lengths: list[int], q, k, v, dout):
    """One dense (batch, heads, L, head_dim) problem for equal lengths, else one a sequence."""
    if len(set(lengths)) == 1:
        lengths, batch = [lengths[0] * len(lengths)], len(lengths)
    else:
        batch = 1
    begin = 0
    for length in lengths:

        def part(x, begin=begin, length=length):
            x = x[begin : begin + length].view(batch, -1, *x.shape[1:]).transpose(1, 2)
            return x.detach().requires_grad_()

        yield part(q), part(k), part(v), part(dout).detach()
        begin += length


class Dense:
    def __init__(self, lengths, q, k, v, dout):
        self.parts = [part for part in dense_parts(lengths, q, k, v, dout) if part[0].shape[2] > 1]
        self.outs = []

    def forward(self):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            self.outs = [
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                for q, k, v, _ in self.parts
            ]

    def backward(self):
        for out, (q, k, v, dout) in zip(self.outs, self.parts, strict=True):
            torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)


def measure(lengths, heads, kv_heads, rounds):
    generator = torch.Generator("cuda").manual_seed(0)

    def rows(count):
        shape = (sum(lengths), count, HEAD_DIM)
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16)

    q, k, v, dout = rows(heads), rows(kv_heads), rows(kv_heads), rows(heads)
    scale = 1 / math.sqrt(HEAD_DIM)
    forward, backward = {}, {}
    for name in ("cudnn", "flash"):
        kernel = _exec.Kernel(name)
        sequences = _exec.Ragged(lengths)
        out, lse = kernel.forward(q, k, v, sequences, scale, 0)
        forward[name] = lambda kernel=kernel, s=sequences: kernel.forward(q, k, v, s, scale, 0)
        backward[name] = lambda kernel=kernel, s=sequences, out=out, lse=lse: kernel.backward(
            q, k, v, out, lse, dout, s, scale, 0
        )
    dense = Dense(lengths, q, k, v, dout)
    dense.forward()
    forward["dense"], backward["dense"] = dense.forward, dense.backward
    return milliseconds(forward, rounds), milliseconds(backward, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", default="")
    parser.add_argument("--rows", default="", help="only rows whose title contains this")
    options = parser.parse_args()
    lines = []
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
    )
    for title, lengths, heads, kv_heads in [row for row in ROWS if options.rows in row[0]]:
        flops = sum(2 * length**2 * heads * HEAD_DIM for length in lengths)
        for direction, times in zip(
            ("forward", "backward"), measure(lengths, heads, kv_heads, options.rounds), strict=True
        ):
            work = flops * (1 if direction == "forward" else 2.5)
            ms = {name: statistics.median(values) for name, values in times.items()}
            tflops = {name: work / value / 1e9 for name, value in ms.items()}
            ratio = {
                name: statistics.median(a / b for a, b in zip(times[name], times["cudnn"], strict=True))
                for name in ("flash", "dense")
            }
            line = {
                "row": title,
                "heads": heads,
                "kv_heads": kv_heads,
                "direction": direction,
                "ms": ms,
                "tflops": tflops,
            }
            line |= {"over_flash": ratio["flash"], "over_dense": ratio["dense"]}
            line["spread"] = (max(times["cudnn"]) - min(times["cudnn"])) / ms["cudnn"]
            lines.append(line)
            print(
                f"{title:20} {direction:8} ours {tflops['cudnn']:5.0f}  flash {tflops['flash']:5.0f}  dense "
                f"{tflops['dense']:5.0f} TFLOP/s   over flash {ratio['flash']:.2f}  "
                f"over dense {ratio['dense']:.2f}"
            )
    for direction in ("forward", "backward"):
        values = [line["over_flash"] for line in lines if line["direction"] == direction]
        print(
            f"geometric mean over flash, {direction}: {statistics.geometric_mean(values):.2f}, "
            f"worst {min(values):.2f}"
        )
    if options.json:
        with Path(options.json).open("w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    main()
