"""Attention kernels over chunks of queries with keys of their own, on a GPU: out and gradients against
float32, no worse than twice FlashAttention-2's own error; log-sum-exps of all kernels alike.
"""

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from nsp._native import execution
from reference import relative_error

_exec = execution()

QUERIES = [1024, 333, 333, 129, 7, 1]
KEYS = [1024, 1000, 4096, 130, 8, 1]
SCALE = 128**-0.5


def rows(lengths: list[int], heads: int, seed: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = (sum(lengths), heads, 128)
    return torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16)


def solve(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, causal: bool) -> list:
    """out, dq, dk, dv and the log-sum-exp (T, heads) in float32; causal ones are aligned at the last key."""
    q, k, v = (x.float().requires_grad_() for x in (q, k, v))
    outs, lses = [], []
    for qs, ks, vs in zip(q.split(QUERIES), k.split(KEYS), v.split(KEYS), strict=True):
        group = qs.shape[1] // ks.shape[1]
        scores = torch.einsum("qhd,khd->hqk", qs, ks.repeat_interleave(group, 1)) * SCALE
        if causal:
            hidden = torch.ones(scores.shape[1:], dtype=torch.bool, device="cuda")
            scores = scores.masked_fill(hidden.triu(1 + len(ks) - len(qs)), float("-inf"))
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), vs.repeat_interleave(group, 1)))
        lses.append(scores.logsumexp(-1).t())
    out = torch.cat(outs)
    grads = torch.autograd.grad(out, (q, k, v), dout.float())
    return [out.detach(), *grads, torch.cat(lses).detach()]


def run(name: str, q, k, v, dout, causal: bool, backward: bool) -> list:
    kernel = _exec.Kernel(name)
    lengths, keys = _exec.Ragged(QUERIES), _exec.Ragged(KEYS)
    out, lse = kernel.forward(q, k, v, lengths, SCALE, 0, keys, causal)
    grads = kernel.backward(q, k, v, out, lse, dout, lengths, SCALE, 0, keys, causal) if backward else ()
    return [out, *grads, lse]


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("heads,kv_heads", [(32, 4), (8, 1), (28, 4), (4, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_chunks(heads: int, kv_heads: int, causal: bool, strided: bool) -> None:
    """Causal chunks run forward only: their backward is a causal and a full part."""
    q, dout = rows(QUERIES, heads, 1), rows(QUERIES, heads, 2)
    packed = rows(KEYS, 2 * kv_heads, 3)  # as keys and values travel
    k, v = packed.split(kv_heads, dim=1)
    if not strided:
        k, v = k.contiguous(), v.contiguous()
    expected = solve(q, k, v, dout, causal)
    flash = run("flash", q, k, v, dout, causal, not causal)
    cudnn = run("cudnn", q, k, v, dout, causal, not causal)
    if causal:
        expected = [expected[0], expected[-1]]
    names = ("out", "lse") if causal else ("out", "dq", "dk", "dv", "lse")
    for name, value, other, reference in zip(names, cudnn, flash, expected, strict=True):
        error, limit = relative_error(value, reference), 2 * relative_error(other, reference)
        print(f"{heads}/{kv_heads} causal {causal} {name}: cudnn {error:.2e}, flash {limit / 2:.2e}")
        if name == "lse":
            assert value.shape == other.shape == reference.shape
            assert error < 1e-3
        else:
            assert error <= limit, name
        assert limit < 0.02, name


@pytest.mark.parametrize("kernel", ["flash", "cudnn"])
def test_gradients_of_parts_add_up(kernel: str) -> None:
    """The keys in two parts, each with the log-sum-exp and output over both: dk and dv of the parts side by
    side and the sum of both dq are the whole's.
    """
    lengths, keys, heads, kv_heads = [333, 1024], [700, 2000], 8, 2
    q, dout = rows(lengths, heads, 1), rows(lengths, heads, 2)
    k, v = rows(keys, kv_heads, 3), rows(keys, kv_heads, 4)
    made = _exec.Kernel(kernel)
    ragged, all_keys = _exec.Ragged(lengths), _exec.Ragged(keys)
    out, lse = made.forward(q, k, v, ragged, SCALE, 0, all_keys, False)
    whole = made.backward(q, k, v, out, lse, dout, ragged, SCALE, 0, all_keys, False)
    halves = [torch.arange(0, 350), torch.arange(350, 700)]
    halves = [torch.cat([half, 700 + i * 1000 + torch.arange(1000)]).cuda() for i, half in enumerate(halves)]
    half_keys = _exec.Ragged([350, 1000])
    dq = torch.zeros_like(whole[0], dtype=torch.float32)
    for half in halves:
        part = made.backward(q, k[half], v[half], out, lse, dout, ragged, SCALE, 0, half_keys, False)
        dq += part[0].float()
        for found, expected in zip(part[1:], whole[1:], strict=True):
            assert relative_error(found, expected[half].float()) < 5e-3
    assert relative_error(dq, whole[0].float()) < 1e-2
