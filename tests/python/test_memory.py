"""Memory beside the model's, known before the first step."""

from __future__ import annotations

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

import torch  # noqa: E402
from nsp.memory import memory, memory_bound  # noqa: E402  torch is not everywhere
from single_rank import one_rank  # noqa: E402
from small_model import config  # noqa: E402

import nsp  # noqa: E402


def test_a_rank_alone_exchanges_nothing_and_stages_nothing() -> None:
    with one_rank():
        context = nsp.init(None, config(), sp_max=1)
        workspace, exchange, arena = memory_bound(context, 1000, 8)
        assert workspace > 0
        assert exchange == 0
        assert arena == 0
        context.close()


def test_what_is_saved_is_bounded_by_the_byte_budget() -> None:
    with one_rank():
        context = nsp.init(None, config(), sp_max=1, byte_budget=0.001)
        found = memory(context, 1000, torch.float64)
        assert found.saved > 0
        assert "saved attention output" in str(found)
        context.close()
