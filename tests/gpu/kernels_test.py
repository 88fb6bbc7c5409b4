"""Attention kernels on a GPU against float32: no worse than twice FlashAttention-2's own error."""

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from nsp._native import execution
from reference import attention, relative_error

_exec = execution()

HEADS = [(32, 4), (64, 4), (28, 4), (8, 1), (4, 4)]
MIXED = [4096, 1000, 333, 33, 7, 1]
LONG = [65537, 1000, 33, 7, 1]


def inputs(lengths, heads, kv_heads, head_dim, strided):
    """q, k, v and dout; strided: q, k and v are columns of one packed tensor, as after an exchange."""
    generator = torch.Generator("cuda").manual_seed(sum(lengths) + heads)

    def random(count):
        shape = (sum(lengths), count, head_dim)
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16)

    if strided:
        packed = random(heads + 2 * kv_heads)
        q, k, v = packed.split([heads, kv_heads, kv_heads], dim=1)
    else:
        q, k, v = random(heads), random(kv_heads), random(kv_heads)
    return q, k, v, random(heads)


KERNELS: dict = {}


def run(name, q, k, v, dout, lengths, scale, window=0):
    kernel = KERNELS.setdefault(name, _exec.Kernel(name))
    sequences = _exec.Ragged(lengths)
    out, lse = kernel.forward(q, k, v, sequences, scale, window)
    return (out, *kernel.backward(q, k, v, out, lse, dout, sequences, scale, window))


def check(lengths, heads, kv_heads, head_dim, strided=True, window=0):
    q, k, v, dout = inputs(lengths, heads, kv_heads, head_dim, strided)
    scale = head_dim**-0.5
    expected = attention(q, k, v, dout, lengths, scale, window)
    flash = run("flash", q, k, v, dout, lengths, scale, window)
    cudnn = run("cudnn", q, k, v, dout, lengths, scale, window)
    for name, value, other, reference in zip(("out", "dq", "dk", "dv"), cudnn, flash, expected, strict=True):
        error, limit = relative_error(value, reference), 2 * relative_error(other, reference)
        print(
            f"{heads}/{kv_heads} x {head_dim} window {window} {name}: "
            f"cudnn {error:.2e}, flash {limit / 2:.2e}"
        )
        assert error <= limit, name
        assert limit < 0.02, name


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("heads,kv_heads", HEADS)
def test_mixed_lengths(heads, kv_heads, head_dim, strided):
    check(MIXED, heads, kv_heads, head_dim, strided)


@pytest.mark.parametrize("heads,kv_heads", [(8, 1)])
def test_a_long_sequence(heads, kv_heads):
    check(LONG, heads, kv_heads, 128)


@pytest.mark.parametrize("window", [1, 100, 512])
def test_sliding_window(window):
    check(MIXED, 8, 2, 128, window=window)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("window", [0, 300])
@pytest.mark.parametrize("lengths", [[256], [4096], [1024] * 3, [256] * 16])
def test_equal_lengths_that_have_a_graph_of_their_own(lengths, window, strided):
    check(lengths, 8, 2, 128, strided, window)


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [2], [128], [129]])
def test_short_sequences(lengths):
    check(lengths, 8, 1, 128)


def test_host_never_waits():
    """After a first call that builds graphs, launches neither copy from pageable memory nor synchronise."""
    q, k, v, dout = inputs(MIXED, 8, 1, 128, True)
    run("cudnn", q, k, v, dout, MIXED, 0.1)
    torch.cuda.set_sync_debug_mode("error")
    try:
        run("cudnn", q, k, v, dout, MIXED, 0.1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
