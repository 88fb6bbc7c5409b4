"""Compiled decoder layers give the loss and gradients of one process, from one graph; compilers can trace the
operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from launch import value

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")
torch = pytest.importorskip("torch", reason="torch is not installed")

from nsp._native import core  # noqa: E402
from nsp.row_plan import RowPlan  # noqa: E402
from nsp.sharding import decoder_layers  # noqa: E402
from single_rank import one_rank  # noqa: E402
from small_model import LAYERS, config, make_model  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

import nsp  # noqa: E402


@pytest.mark.parametrize("how", ["plain", "checkpointed"])
def test_compiled_layers_equal_one_process(how: str) -> None:
    for batch in value(2, "compiled layers")[how]:
        assert batch["error"] <= 1e-10


def test_each_layer_attends_once_and_once_more_when_recomputed() -> None:
    found = value(2, "compiled layers")
    assert all(batch["calls"] == batch["rounds"] for batch in found["plain"])
    assert all(batch["calls"] == 2 * batch["rounds"] for batch in found["checkpointed"])


def test_checkpointing_enters_its_contexts_outside_of_graphs() -> None:
    found = value(2, "compiled layers")
    layers = LAYERS * sum(batch["rounds"] for batch in found["checkpointed"])
    assert found["entered"] == {"forward": layers, "recomputation": layers}


def test_all_plans_and_lengths_share_two_graphs_at_most() -> None:
    assert all(1 <= graphs <= 2 for graphs in value(2, "compiled layers")["graphs"])


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    with one_rank():
        made = nsp.init(None, config(), sp_max=1)
        yield made
        made.close()


def rows(requires_grad: bool = False) -> list[torch.Tensor]:
    return [torch.randn(9, heads, 8, dtype=torch.float64, requires_grad=requires_grad) for heads in (8, 2, 2)]


def schedule(context: Any) -> Any:
    return context.schedule(core().make_plan(1, 1, 1, 0, [[(0, 5, 0, 1), (1, 4, 0, 1)]], "given"))


def test_the_operator_passes_the_checks_of_torch(context: Any) -> None:
    made = schedule(context)
    torch.library.opcheck(torch.ops.nsp.attention.default, (*rows(True), made.handle, 0, 0.3, 0))
    torch.library.opcheck(torch.ops.nsp.attention_forward.default, (*rows(), made.handle, 0, 0.3, 0))


def test_a_copy_of_what_backward_needs_is_refused(context: Any) -> None:
    made, (q, k, v) = schedule(context), rows()
    out, kept = torch.ops.nsp.attention_forward(q, k, v, made.handle, 0, 0.3, 0)
    with pytest.raises(RuntimeError, match="copied between forward and backward"):
        torch.ops.nsp.attention_backward(out, q, k, v, out, kept.clone())


def test_calls_without_a_plan_stay_eager() -> None:
    model, plain = make_model(experts="batched_mm"), make_model(experts="batched_mm")
    nsp.compile_layers(model, backend="aot_eager")
    before, tokens = counters["stats"]["unique_graphs"], torch.arange(7)[None]
    assert torch.equal(model(input_ids=tokens).logits, plain(input_ids=tokens).logits)
    assert counters["stats"]["unique_graphs"] == before


def test_a_compiled_model_that_was_not_attached_is_refused(context: Any) -> None:
    model = make_model(experts="batched_mm")
    nsp.compile_layers(model, backend="eager")
    plan = RowPlan(context, schedule(context), 0, 1)
    hidden = torch.zeros(1, 9, 32, dtype=torch.float64)
    with pytest.raises(ValueError, match="not attached to the plan's context"):
        decoder_layers(model)[0](hidden, nsp_plan=plan)


def test_eager_experts_are_refused() -> None:
    with pytest.raises(ValueError, match="grouped_mm"):
        nsp.compile_layers(make_model())


def test_compiling_twice_is_refused() -> None:
    model = make_model(experts="batched_mm")
    nsp.compile_layers(model, backend="eager")
    with pytest.raises(ValueError, match="once a model"):
        nsp.compile_layers(model, backend="eager")
