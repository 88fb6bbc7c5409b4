"""Cross entropy of a linear head in chunks of rows: never more than `rows` rows of logits exist.

Shapes: T tokens of a rank, H hidden width, V vocabulary. Gradients are made in the forward pass, chunk by
chunk.
"""

from __future__ import annotations

from typing import Any

import torch

IGNORE = -100
ROWS = 1024


def _logits(hidden_RH: torch.Tensor, weight_VH: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if hidden_RH.dtype == dtype:
        return hidden_RH @ weight_VH.T
    if hidden_RH.is_cuda:  # tensor cores accumulate in fp32: keep what they have instead of rounding it
        return torch.mm(hidden_RH, weight_VH.T, out_dtype=dtype)
    return hidden_RH.to(dtype) @ weight_VH.T.to(dtype)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_TH: torch.Tensor, weight_VH: torch.Tensor, target_T: torch.Tensor, rows: int
    ) -> torch.Tensor:
        wide = torch.promote_types(hidden_TH.dtype, torch.float32)
        need_hidden, need_weight = ctx.needs_input_grad[:2]
        loss = torch.zeros((), dtype=wide, device=hidden_TH.device)
        grad_hidden = torch.zeros_like(hidden_TH) if need_hidden else None
        grad_weight = torch.zeros_like(weight_VH, dtype=wide) if need_weight else None
        for begin in range(0, hidden_TH.shape[0], rows):
            hidden, target = hidden_TH[begin : begin + rows], target_T[begin : begin + rows]
            keep, index = (target != IGNORE)[:, None], target.clamp(min=0)[:, None]
            logits = _logits(hidden, weight_VH, wide)
            lse = logits.logsumexp(-1, keepdim=True)
            loss += torch.where(keep, lse - logits.gather(1, index), 0).sum()
            if grad_hidden is None and grad_weight is None:
                continue
            slope = (logits - lse).exp_().scatter_add_(1, index, -torch.ones_like(lse)).mul_(keep)
            slope = slope.to(hidden.dtype)
            if grad_hidden is not None:
                grad_hidden[begin : begin + rows] = slope @ weight_VH
            if grad_weight is not None:
                grad_weight += slope.T @ hidden
        ctx.save_for_backward(grad_hidden, grad_weight)  # gone with this node's turn, not with the loss
        ctx.weight_dtype = weight_VH.dtype
        return loss

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        if grad_hidden is not None:
            grad_hidden = grad_hidden * grad.to(grad_hidden.dtype)
        if grad_weight is not None:
            grad_weight = (grad_weight * grad).to(ctx.weight_dtype)
        return grad_hidden, grad_weight, None, None


def linear_cross_entropy(
    hidden_TH: torch.Tensor, weight_VH: torch.Tensor, target_T: torch.Tensor, rows: int = ROWS
) -> torch.Tensor:
    """Summed cross entropy of softmax(hidden · weightᵀ) over targets that are not -100: a scalar, fp32 or
    wider.

    Without any target the result is 0 and its gradients are zero (not None).
    """
    loss: torch.Tensor = _LinearCrossEntropy.apply(hidden_TH, weight_VH, target_T, rows)
    return loss
