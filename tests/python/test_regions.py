"""Regions that a user checkpoints, also those that end with attention: nothing is held after backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")
torch = pytest.importorskip("torch", reason="torch is not installed")

from nsp._native import core  # noqa: E402
from single_rank import one_rank  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import nsp  # noqa: E402

HEADS, KV_HEADS, HEAD_DIM, LENGTHS = 8, 2, 8, (40, 20)
SHAPE = {
    "name": "region", "layers": 1, "hidden": 64, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM,
    "experts": 0, "top_k": 0, "intermediate": 64, "vocabulary": 64, "bytes_per_value": 4,
}  # fmt: skip
REGIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "ends with attention": lambda out: out,
    "saves nothing behind it": lambda out: out * 3,
    "saves its output": lambda out: out.sin(),
}


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("mark", ["recompute", "save"])
def test_a_region_of_the_users_own_holds_nothing_after_backward(region: str, mark: str) -> None:
    with one_rank():
        context = nsp.init(None, SHAPE, sp_max=1)
        placements = [(i, tokens, 0, 1) for i, tokens in enumerate(LENGTHS)]
        plan = core().make_plan(1, 1, 1, 0, [placements], "given")
        schedule = context.schedule(core().with_marks(plan, [[mark] * len(LENGTHS)]))

        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return REGIONS[region](torch.ops.nsp.attention(q, k, v, schedule.handle, 0, 1.0, 0))

        inputs = [
            torch.randn(sum(LENGTHS), n, HEAD_DIM, requires_grad=True) for n in (HEADS, KV_HEADS, KV_HEADS)
        ]
        out = checkpoint(run, *inputs, use_reentrant=False, context_fn=nsp.checkpoint_contexts)
        assert (context.world.counters()["stash_bytes"] > 0) == (mark == "save")
        found = torch.autograd.grad(out, inputs, torch.ones_like(out))
        assert context.world.counters()["stash_bytes"] == 0
        plain = run(*inputs)
        expected = torch.autograd.grad(plain, inputs, torch.ones_like(plain))
        for a, b in zip((out, *found), (plain, *expected), strict=True):
            assert torch.equal(a, b)
        context.close()
