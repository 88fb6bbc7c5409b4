"""Chunked cross entropy against torch's."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
F = torch.nn.functional

from allocations import Allocations  # noqa: E402  needs torch
from nsp.loss import linear_cross_entropy  # noqa: E402


def inputs(
    rows: int = 103, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    target = torch.randint(0, 50, (rows,))
    target[::7] = -100
    hidden, weight = torch.randn(rows, 16, dtype=dtype), torch.randn(50, 16, dtype=dtype)
    return hidden.requires_grad_(), weight.requires_grad_(), target


@pytest.mark.parametrize("rows", [1, 32, 103, 1024])
def test_equals_torch_for_any_chunk(rows: int) -> None:
    hidden, weight, target = inputs()
    expected = F.cross_entropy(hidden @ weight.T, target, reduction="sum", ignore_index=-100)
    found = linear_cross_entropy(hidden, weight, target, rows)
    assert abs(found - expected) <= 1e-12 * expected
    wanted = torch.autograd.grad(expected, (hidden, weight))
    for a, b in zip(torch.autograd.grad(found, (hidden, weight)), wanted, strict=True):
        assert (a - b).abs().max() <= 1e-12 * b.abs().max()


def test_no_target_gives_zero_and_zero_gradients() -> None:
    hidden, weight, target = inputs()
    loss = linear_cross_entropy(hidden, weight, torch.full_like(target, -100))
    loss.backward()
    assert loss.item() == 0
    assert not hidden.grad.any()
    assert not weight.grad.any()


def test_uniform_logits_give_log_vocabulary() -> None:
    hidden, _, target = inputs()
    loss = linear_cross_entropy(hidden, torch.zeros(50, 16, dtype=torch.float64), target)
    assert abs(loss / (target >= 0).sum() - math.log(50)) <= 1e-12


def test_bf16_logits_are_not_rounded() -> None:
    hidden, weight, target = inputs(dtype=torch.bfloat16)
    loss = linear_cross_entropy(hidden, weight, target)
    exact = F.cross_entropy(hidden.double() @ weight.double().T, target, reduction="sum", ignore_index=-100)
    assert loss.dtype == torch.float32
    assert abs(loss - exact) <= 1e-5 * exact


def test_a_frozen_head_gets_no_gradient() -> None:
    hidden, weight, target = inputs()
    loss = linear_cross_entropy(hidden, weight.detach(), target)
    loss.backward()
    assert hidden.grad is not None


def test_gradients_are_held_until_backward_and_no_longer_than_the_graph() -> None:
    hidden, weight, target = inputs()
    with Allocations([hidden, weight, target]) as alive:
        loss = linear_cross_entropy(hidden, weight, target)
        held = alive.live
        loss.backward(retain_graph=True)
        loss.backward()  # the loss itself stays
    assert held >= hidden.nbytes + weight.nbytes
    assert alive.live <= hidden.grad.nbytes + weight.grad.nbytes + 64
    once = linear_cross_entropy(hidden, weight, target)
    for a, b in zip(torch.autograd.grad(once, (hidden, weight)), (hidden.grad, weight.grad), strict=True):
        assert torch.equal(2 * a, b)
