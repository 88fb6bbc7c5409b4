"""A nested probe batch through the executor on the real group, against plain attention on one rank.

Every level of the tree holds work at once, lengths leave remainders, and gradients are checked too. Each rank
computes the reference only of sequences it owns tokens of, so the cost does not grow with the world. Shapes:
T tokens of a rank, L tokens of a sequence, H query heads, K KV heads, D head_dim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.nn.functional as F

from nsp._native import core

if TYPE_CHECKING:
    from nsp.context import Context
    from nsp.settings import Settings

Tensors = tuple[torch.Tensor, ...]
TOLERANCE = {torch.float32: 2e-4, torch.bfloat16: 4e-2, torch.float64: 1e-10}


def probe_plan(settings: Settings) -> bytes:
    """One sequence on every node of the forest in every way: all levels at once, no length a multiple of its
    degree but leaves.
    """
    placements: list[tuple[int, int, int, int, str, int]] = []
    for degree, backend, inner in settings.ways:
        for first in range(0, settings.world, degree):
            tokens = 2 * degree + 1 + (first // degree) % 3
            placements.append((len(placements), tokens, first, degree, backend, inner))
    made: bytes = core().make_plan(
        settings.world, settings.sp_max, settings.ranks_per_host, 0, [placements], "given"
    )
    return made


def run(context: Context) -> None:
    """RuntimeError on all ranks when any rank's output or gradient differs from plain attention."""
    settings = context.settings
    plan = probe_plan(settings)
    dtype = torch.float32 if context.device.type == "cpu" else torch.bfloat16
    lengths = {p["sequence"]: p["tokens"] for p in _placements(plan)}
    rows = core().rank_row(plan, 0, context.rank)
    whole = {s: _sequence(s, lengths[s], settings.shape, dtype, context.device) for s, _, _ in rows}
    found = _executed(context, plan, rows, whole)
    expected = _reference(rows, whole)
    error = max(_relative(a, b) for a, b in zip(found, expected, strict=True))
    errors = [torch.zeros(1, device=context.device) for _ in range(settings.world)]
    dist.all_gather(errors, torch.tensor([error], device=context.device), group=context.group)
    limit = TOLERANCE[dtype]
    bad = {rank: round(float(e), 6) for rank, e in enumerate(errors) if not float(e) <= limit}
    context.world.reset_counters()
    if bad:
        raise RuntimeError(
            f"self-check: nested attention differs from plain attention on ranks {sorted(bad)} "
            f"(relative error {bad}, "
            f"allowed {limit}); do not train with this installation, rebuild it against the installed torch"
        )


def _placements(plan: bytes) -> list[dict[str, Any]]:
    import json

    placements: list[dict[str, Any]] = json.loads(plan)["rounds"][0]["placements"]
    return placements


def _sequence(
    index: int, length: int, shape: dict[str, Any], dtype: torch.dtype, device: torch.device
) -> Tensors:
    """q, k, v of one whole sequence and the weight of its output; equal on all ranks."""
    generator = torch.Generator().manual_seed(index)
    heads, kv_heads, dim = shape["heads"], shape["kv_heads"], shape["head_dim"]
    sizes = [(length, heads, dim), (length, kv_heads, dim), (length, kv_heads, dim), (length, heads, dim)]
    return tuple(torch.randn(size, generator=generator).to(device, dtype) for size in sizes)


def _executed(
    context: Context, plan: bytes, rows: list[tuple[int, int, int]], whole: dict[int, Tensors]
) -> Tensors:
    schedule = context.schedule(plan)
    q_THD, k_TKD, v_TKD, weight_THD = (torch.cat([whole[s][i][b:e] for s, b, e in rows]) for i in range(4))
    for tensor in (q_THD, k_TKD, v_TKD):
        tensor.requires_grad_()
    out_THD = torch.ops.nsp.attention(q_THD, k_TKD, v_TKD, schedule.handle, 0, q_THD.shape[-1] ** -0.5, 0)
    grads = torch.autograd.grad(out_THD, (q_THD, k_TKD, v_TKD), weight_THD)
    return (out_THD.detach(), *grads)


def _reference(rows: list[tuple[int, int, int]], whole: dict[int, Tensors]) -> Tensors:
    parts = []
    for sequence, begin, end in rows:
        q, k, v, weight = (t.float().transpose(0, 1)[None] for t in whole[sequence])
        for tensor in (q, k, v):
            tensor.requires_grad_()
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        grads = torch.autograd.grad(out, (q, k, v), weight)
        parts.append([t[0].transpose(0, 1)[begin:end] for t in (out.detach(), *grads)])
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def _relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    scale = expected.abs().max().clamp(min=1e-6)
    return float((found.float() - expected).abs().max() / scale)
