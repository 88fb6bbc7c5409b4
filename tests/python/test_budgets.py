"""Budgets that are found: the largest that fits by formula; and steps that do not fit are refused before they
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

import torch  # noqa: E402  not everywhere
from launch import value  # noqa: E402
from nsp.budgets import find_budgets  # noqa: E402
from nsp.model_bytes import model_bytes  # noqa: E402
from nsp.settings import make_settings  # noqa: E402
from nsp.sizes import format_bytes  # noqa: E402
from nsp.step_memory import plan_peak  # noqa: E402
from single_rank import one_rank  # noqa: E402
from small_model import Samples, config, make_model  # noqa: E402

import nsp  # noqa: E402

LENGTHS = [300, 200, 150, 120, 100, 80, 60, 40, 20, 10]
MIB = 1 << 20


@contextmanager
def attached(checkpointing: bool = True, **keywords: Any) -> Iterator[nsp.Context]:
    """A context of one rank with a small model on it."""
    with one_rank():
        model = make_model(dtype=torch.float32)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        context = nsp.init(None, config(dtype=torch.float32), sp_max=1, self_check=False, **keywords)
        nsp.attach(model, context)
        yield context
        context.close()


def steps_of(context: nsp.Context, tokens_per_step: int = sum(LENGTHS)) -> nsp.PlannedSteps:
    return nsp.PlannedSteps(Samples(list(LENGTHS)), context, tokens_per_step)


def peak(steps: nsp.PlannedSteps) -> int:
    found = plan_peak(steps.context.step_memory(), steps.plan(0))
    assert found is not None
    return found.total


def test_more_memory_never_gives_less() -> None:
    found = []
    for mib in (2, 4, 8, 16):
        with attached(token_budget="auto", byte_budget="auto", device_bytes=f"{mib}MiB") as context:
            budgets = find_budgets(context, sum(LENGTHS), LENGTHS)
            found.append((budgets.token_budget, budgets.byte_budget))
    assert found == sorted(found)
    assert len(set(found)) > 2


def test_the_token_budget_is_the_largest_that_fits() -> None:
    with attached(token_budget="auto", device_bytes="3MiB", over_length="truncate") as context:
        steps = steps_of(context)
        assert 1 < steps.token_budget < sum(LENGTHS)
        full = nsp.plan([steps.token_budget], world=1, model=context.settings.model, profile="cpu-gloo")
        found = plan_peak(context.step_memory(), full)
        assert found is not None
        assert 0.8 * 3 * MIB < found.total <= 3 * MIB
        assert steps.plan(0).num_rounds > 1


def test_what_is_left_is_for_saved_attention() -> None:
    with attached(byte_budget="auto", device_bytes="16MiB") as context:
        steps = steps_of(context)
        everything = sum(LENGTHS) * context.step_memory().row["saved"]
        assert steps.plan(0).predicted.bytes_max == everything <= steps.byte_budget
    with attached(byte_budget="auto", device_bytes="6.5MiB") as context:
        steps = steps_of(context)
        assert 0 < steps.plan(0).predicted.bytes_max <= steps.byte_budget
        assert peak(steps) <= 6.5 * MIB
    with attached(byte_budget="auto", device_bytes="1MiB") as context:
        assert steps_of(context).byte_budget == 0


def test_given_budgets_stay() -> None:
    with attached(token_budget=700, byte_budget="1.5MiB", device_bytes="1GiB") as context:
        steps = steps_of(context)
        assert (steps.token_budget, steps.byte_budget) == (700, 3 << 19)


def test_steps_that_do_not_fit_say_so_before_they_run() -> None:
    with attached(token_budget=2000, byte_budget=1, device_bytes="4MiB") as context:
        steps = steps_of(context)
        with pytest.raises(RuntimeError) as caught:
            steps[0]
        text = str(caught.value)
        for part in (
            "step 0 does not fit: rank 0 holds 1080 tokens in round 0 and needs",
            "parameters and optimizer",
            "layer inputs",
            "saved attention output",
            "working set",
            "but 4 MiB are there; lower token_budget or byte_budget",
        ):
            assert part in text
        assert "\n" not in text
        assert context.world.counters()["attention_calls"] == 0


def test_a_loader_says_it_once() -> None:
    with (
        attached(token_budget=2000, device_bytes="4MiB") as context,
        pytest.raises(RuntimeError, match="step 0 does not fit: rank 0"),
    ):
        next(iter(nsp.loader(steps_of(context))))


def test_ranks_find_the_same_budgets_and_train_exactly() -> None:
    found = value(2, "budgets: auto")
    first, second = found["budgets"]
    assert first == second
    assert all(first)
    assert found["error"] <= 1e-10
    assert found["saved"] > 0
    assert "not measured on cpu" in found["report"]
    assert found["line"]["predicted"] > 0
    assert found["line"]["ratio"] is None


def test_ranks_are_told_the_same_of_a_step_that_does_not_fit() -> None:
    (first, calls), (second, others) = value(2, "budgets: refused")
    assert first == second
    assert first.startswith("on all ranks: RuntimeError: step 0 does not fit: rank 1 holds 147 tokens")
    assert calls == others == 0


@pytest.mark.parametrize("rows,moment", [("many rows", "its end"), ("few rows", "experts")])
def test_the_peak_of_a_sharded_step_is_as_predicted(rows: str, moment: str) -> None:
    found = value(2, "budgets: whole_step")[rows]
    assert moment in found["moment"]
    assert found["alive"] >= 0.97 * found["predicted"]
    # gloo's thread may still hold a gathered layer that the step has done with
    assert found["alive"] <= 1.03 * found["predicted"] + found["layer"]


def test_nothing_fits_is_a_sentence() -> None:
    with (
        attached(token_budget="auto", device_bytes="64KiB") as context,
        pytest.raises(ValueError, match="token_budget: 'auto' finds no room: one token needs .* KiB"),
    ):
        steps_of(context)


def test_auto_needs_checkpointing_a_model_and_memory_to_measure() -> None:
    with (
        attached(checkpointing=False, byte_budget="auto", device_bytes="1GiB") as context,
        pytest.raises(ValueError, match="byte_budget: 'auto' saves nothing without checkpointing"),
    ):
        steps_of(context)
    with one_rank():
        context = nsp.init(None, config(), sp_max=1, byte_budget="auto", device_bytes=1)
        with pytest.raises(ValueError, match="call nsp.attach"):
            steps_of(context)
        context.close()
    for name in ("token_budget", "byte_budget"):
        with pytest.raises(ValueError, match=f"{name}: 'auto' measures the memory of a GPU"):
            make_settings(2, config(), "cpu", sp_max=2, **{name: "auto"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="token_budget: 'many' is no number of tokens"):
        make_settings(2, config(), "cpu", sp_max=2, token_budget="many")


def test_model_state_is_counted_as_it_is_sharded() -> None:
    model = make_model(dtype=torch.float32)
    numbers = sum(p.numel() for p in model.parameters())
    alone = model_bytes(model, 1, 4)
    assert alone.gradients == 4 * numbers
    assert alone.optimizer == 8 * numbers
    assert alone.layer == 0
    shared = model_bytes(model, 2, 2)
    assert 4 * numbers < 2 * shared.gradients < 4.02 * numbers  # the first rank's part of 61 tokens is 31
    layer = sum(p.numel() for p in model.model.layers[0].parameters())
    assert (shared.layer, shared.scatter) == (2 * layer, 4 * layer)
    assert shared.root == 2 * (numbers - 2 * layer)
    for p in model.model.layers.parameters():
        p.requires_grad_(False)
    frozen = model_bytes(model, 2, 2)
    assert frozen.weights == frozen.scatter == frozen.layer_gradients == 0
    assert frozen.parameters == shared.parameters
    assert format_bytes(frozen.state) != format_bytes(shared.state)
