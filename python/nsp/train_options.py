"""The options of `nsp.train`, and what they may not be: one sentence each, before any rank waits for
another.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from typing import NoReturn

from nsp.settings import AUTO
from nsp.sizes import parse_bytes
from nsp.transport import wanted


class _Parser(argparse.ArgumentParser):
    """One sentence for a wrong option, said where the others are."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see --help")


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = _Parser(
        prog="nsp.train", description="Train a small Qwen3-MoE with nested sequence parallelism."
    )
    add = parser.add_argument
    add("--corpus", metavar="DIR", help="folder of text files (default: Python's standard library)")
    add("--steps", type=int, default=20, help="optimizer steps (20)")
    add("--tokens-per-step", type=int, default=24576, help="tokens of one optimizer step, all ranks (24576)")
    add("--max-length", type=int, default=16384, help="longest sample, tokens; longer ones are cut (16384)")
    add(
        "--sp-max",
        type=int,
        default=None,
        help="largest degree (4, or the largest below that divides ranks and heads)",
    )
    add(
        "--token-budget",
        type=_tokens,
        default=None,
        help="most tokens a rank holds (1.2 x tokens a step / ranks; static:K at least 1.2 x longest / K), "
        "or auto: the most that fits the device",
    )
    add(
        "--planner",
        default="nsp",
        help="nsp, algorithm1, static[:K], static-tokens[:K], nsp-2l, megatron-dcp, flexsp (nsp)",
    )
    add(
        "--backends",
        type=lambda text: tuple(text.split(",")),
        default=("ulysses",),
        metavar="A,B",
        help="what planner nsp may use: ulysses, gather, ring, usp-ring, usp-gather, usp, all (ulysses)",
    )
    add(
        "--streaming",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="exchanges beside attention; --no-streaming: a level after the other, for comparison",
    )
    add("--profile", default=None, help="preset or file of the cost profile (cpu-gloo on CPUs, h200 on GPUs)")
    add("--name", default="train", help="results go to runs/NAME (train)")
    add("--seed", type=int, default=0, help="of weights and order (0)")
    add("--lr", type=float, default=3e-3, help="peak learning rate of AdamW (3e-3)")
    add("--layers", type=int, default=4, help="decoder layers (4)")
    add("--hidden", type=int, default=128, help="width of the model (128)")
    add("--heads", type=int, default=8, help="query heads (8)")
    add("--kv-heads", type=int, default=2, help="key and value heads (2)")
    add("--head-dim", type=int, default=16, help="width of a head (16)")
    add("--experts", type=int, default=8, help="experts a layer, two of them used by a token (8)")
    add("--trace", metavar="DIR", help="write a profiler trace of all ranks to DIR/trace.json.gz (Perfetto)")
    add(
        "--trace-steps",
        type=_steps,
        default=(1, 3),
        metavar="A:B",
        help="the steps that --trace records, B not included (1:3)",
    )
    add(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="compile the decoder layers (on GPUs; not on CPUs, where compiling takes minutes)",
    )
    add(
        "--checkpointing",
        action="store_true",
        help="recompute decoder layers in backward instead of keeping what they hold",
    )
    add(
        "--byte-budget",
        default="0",
        metavar="SIZE",
        help="with --checkpointing: attention output that a rank saves of a layer, GiB or e.g. 512MiB (0: "
        "recompute all), or auto: what the device has left",
    )
    add(
        "--host-budget",
        default="0",
        metavar="SIZE",
        help="with --checkpointing: of the rest, what a rank keeps of a layer in memory of its host where "
        "copies hide behind computation, GiB or e.g. 512MiB (0: nothing)",
    )
    add(
        "--device-bytes",
        default=None,
        metavar="SIZE",
        help="with a budget that is auto: what a rank may use of its device, e.g. 80GiB (measured)",
    )
    add("--check-only", action="store_true", help="say whether the options work, and stop")
    return check_options(parser.parse_args(arguments))


def _tokens(text: str) -> int | str:
    return AUTO if text == AUTO else int(text)


def _steps(text: str) -> tuple[int, int]:
    first, _, end = text.partition(":")
    if not (first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B with A < B")
    return int(first), int(end)


def check_options(args: argparse.Namespace) -> argparse.Namespace:
    """ValueError, one sentence, for an option that cannot work."""
    counts = (
        "steps",
        "tokens_per_step",
        "max_length",
        "layers",
        "hidden",
        "heads",
        "kv_heads",
        "head_dim",
        "experts",
    )
    for name in counts:
        if getattr(args, name) < 1:
            raise ValueError(
                f"--{name.replace('_', '-')}: {getattr(args, name)} is not positive; give a number from 1"
            )
    if not 0 < args.lr < math.inf:
        raise ValueError(f"--lr: {args.lr} is not a positive number; give a learning rate such as 3e-3")
    if not 0 <= args.seed < 2**63:
        raise ValueError(f"--seed: {args.seed} is not in range; give a number from 0 to 2^63 - 1")
    if args.head_dim % 2:
        raise ValueError(f"--head-dim: {args.head_dim} is odd, rotary positions need an even number")
    if args.tokens_per_step > 2**39:
        raise ValueError(f"--tokens-per-step: {args.tokens_per_step} is too many; give at most 2^39")
    if args.heads % args.kv_heads:
        raise ValueError(f"--kv-heads: {args.kv_heads} does not divide the {args.heads} heads; use a divisor")
    if args.experts < 2:
        raise ValueError(f"--experts: {args.experts} is too few, a token uses two; use at least 2")
    if args.max_length > args.tokens_per_step:
        raise ValueError(
            f"--max-length: {args.max_length} is more than the {args.tokens_per_step} tokens of a "
            f"step; lower it"
        )
    wanted()  # NSP_TRANSPORT
    if args.backends != ("ulysses",) and args.planner != "nsp":
        raise ValueError(
            f"--backends: planner {args.planner} chooses its own; leave --backends out, or use --planner nsp"
        )
    for name, budget in (("--byte-budget", args.byte_budget), ("--host-budget", args.host_budget)):
        saves = budget == AUTO or parse_bytes(name, budget) > 0
        if saves and not args.checkpointing:
            raise ValueError(f"{name}: {budget} saves nothing without recomputation; add --checkpointing")
    if args.trace is not None and args.trace_steps[0] >= args.steps:
        raise ValueError(
            f"--trace-steps: {args.trace_steps[0]} is not reached in {args.steps} steps; start earlier"
        )
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", args.name):
        raise ValueError(f"--name: {args.name!r} is not a folder's name; use up to 100 letters and digits")
    return args


def default_sp_max(world: int, heads: int, backends: tuple[str, ...] = ("ulysses",)) -> int:
    """4, or the largest smaller degree that the world allows, and the heads if only they are split."""
    splits = backends == ("ulysses",)
    return max(d for d in (1, 2, 4) if world % d == 0 and (heads % d == 0 or not splits))


def default_budget(args: argparse.Namespace, world: int) -> int | str | None:
    """One degree for all needs room for the longest sample on its ranks beside its share of the rest."""
    name, given, degree = args.planner.partition(":")
    budget: int | str | None = args.token_budget
    if budget is not None or name not in ("static", "static-tokens") or not given:
        return budget
    if not degree.isdigit() or int(degree) < 1:
        raise ValueError(f"--planner: {args.planner!r} names no degree; use static:K with K = 1, 2, 4, ...")
    share = -(-12 * args.tokens_per_step // (10 * world))
    return int(max(share, -(-12 * args.max_length // (10 * int(degree)))))
