"""Several ranks against one process: loss and every gradient within 1e-10 in float64 (one launch per world
size).
"""

from __future__ import annotations

import pytest
from launch import value

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("torch", reason="torch is not installed")

from case_parity import PARITY  # noqa: E402

LIMIT = 1e-10


@pytest.mark.parametrize("name", PARITY)
def test_every_plan_gives_the_loss_and_gradients_of_one_process(name: str) -> None:
    for plan, found in value(PARITY[name].world, name).items():
        assert found["loss"] <= LIMIT, (plan, found)
        assert found["grads"] <= LIMIT, (plan, found)


@pytest.mark.parametrize("name", PARITY)
def test_each_level_exchanges_as_often_as_its_backends_ask_for(name: str) -> None:
    for plan, found in value(PARITY[name].world, name).items():
        counters = found["counters"]
        assert counters["attention_calls"] == found["calls"], (plan, found)
        assert counters["exchanges"] == found["exchanges"], (plan, found)


def test_all_levels_are_used_at_once() -> None:
    assert value(8, "one long, many short on 8")["mixed a"]["levels"] == [1, 2, 4, 8]


def test_a_wrong_boundary_is_seen() -> None:
    assert value(2, "planted boundary") > 1e-3
