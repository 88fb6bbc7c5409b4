"""Causal attention over ragged sequences in float32 matrix products, in query blocks: the tests' oracle.

Shapes: q, out, dout (T, heads, head_dim); k, v (T, kv_heads, head_dim).
"""

import torch

BLOCK = 2048


def _scores(q_hqd: torch.Tensor, k_hkd: torch.Tensor, first: int, scale: float, window: int) -> torch.Tensor:
    scores = q_hqd @ k_hkd.transpose(-1, -2) * scale
    rows = torch.arange(first, first + q_hqd.shape[1], device=q_hqd.device)[:, None]
    columns = torch.arange(k_hkd.shape[1], device=q_hqd.device)[None]
    hidden = columns > rows
    if window:
        hidden |= columns <= rows - window
    return scores.masked_fill_(hidden, float("-inf"))


def attention(q, k, v, dout, lengths, scale, window=0):
    """out, dq, dk, dv in float32; one KV head at a time, so memory stays at BLOCK x longest x group."""
    assert not torch.backends.cuda.matmul.allow_tf32
    q, k, v, dout = (x.float() for x in (q, k, v, dout))
    group = q.shape[1] // k.shape[1]
    out, dq, dk, dv = (torch.zeros_like(x) for x in (q, q, k, v))
    begin = 0
    for length in lengths:
        rows = slice(begin, begin + length)
        begin += length
        for head in range(k.shape[1]):
            heads = slice(head * group, (head + 1) * group)
            kh, vh = k[rows, head], v[rows, head]
            for first in range(0, length, BLOCK):
                last = min(first + BLOCK, length)
                part = slice(rows.start + first, rows.start + last)
                qb, gb = q[part, heads].transpose(0, 1), dout[part, heads].transpose(0, 1)
                seen_k, seen_v = kh[None, :last], vh[None, :last]
                p = _scores(qb, seen_k, first, scale, window).softmax(-1)
                ob = p @ seen_v
                ds = p * (gb @ seen_v.transpose(-1, -2) - (gb * ob).sum(-1, keepdim=True)) * scale
                out[part, heads] = ob.transpose(0, 1)
                dq[part, heads] = (ds @ seen_k).transpose(0, 1)
                keys = slice(rows.start, rows.start + last)
                dk[keys, head] += (ds.transpose(-1, -2) @ qb).sum(0)
                dv[keys, head] += (p.transpose(-1, -2) @ gb).sum(0)
    return out, dq, dk, dv


def relative_error(value: torch.Tensor, reference: torch.Tensor) -> float:
    """Frobenius norm of the difference over that of the reference, or of values around 0.01 where that is
    smaller: a sequence of one token has no gradient of q and k.
    """
    floor = 0.01 * reference.numel() ** 0.5
    return float((value.float() - reference).norm() / reference.norm().clamp_min(floor))
