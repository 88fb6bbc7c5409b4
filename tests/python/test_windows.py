"""Sliding windows: as Hugging Face's masks to the token, and equal to one process under every plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

from case_windows import KINDS, WINDOW  # noqa: E402
from launch import value  # noqa: E402
from nsp.integrations.config_check import layer_window  # noqa: E402
from nsp.integrations.hugging_face import attention  # noqa: E402
from single_rank import one_rank  # noqa: E402
from small_model import Samples, make_windowed  # noqa: E402

import nsp  # noqa: E402

TOKENS = 12


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_windowed_models_equal_one_process(kind: str, world: int) -> None:
    for plan, found in value(world, f"windows of {kind}")["plans"].items():
        assert found["error"] <= 1e-10, (plan, found)
        assert (found["exchanges"] > 0) or plan in ("degree 1", "own"), (plan, found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_window_is_seen(kind: str) -> None:
    planted = value(2, f"windows of {kind}")["planted"]
    assert len(planted) == 2
    assert min(planted.values()) > 1e-3, planted


@pytest.fixture(scope="module")
def context() -> Iterator[nsp.Context]:
    with one_rank():
        made = nsp.init(None, make_windowed("mistral", WINDOW).config, sp_max=1)
        yield made
        made.close()


def masks(implementation: str, window: int) -> Any:
    """(TOKENS, TOKENS): what the model itself lets a token see."""
    model = make_windowed("mistral", window).eval()
    model.set_attn_implementation(implementation)
    seen: list[Any] = []
    layer = model.model.layers[0].self_attn
    layer.register_forward_pre_hook(lambda *call: seen.append(call[2]["attention_mask"]), with_kwargs=True)
    with torch.no_grad():
        model(input_ids=torch.arange(TOKENS)[None])
    mask = seen[0][0, 0]
    return mask if mask.dtype == torch.bool else mask == 0


def operator(context: nsp.Context, window: int) -> Any:
    """(TOKENS, TOKENS): what nsp::attention lets a token see. Equal scores, one value a token: a row of the
    output is spread over the tokens that it sees.
    """
    steps = nsp.PlannedSteps(Samples([TOKENS]), context, 64)
    row = steps[0].rounds[0].plan
    q_THD = torch.zeros(TOKENS, 8, 16, dtype=torch.float64)
    v_TKD = torch.eye(TOKENS, 16, dtype=torch.float64)[:, None].expand(TOKENS, 2, 16).contiguous()
    out_THD = torch.ops.nsp.attention(q_THD, q_THD[:, :2], v_TKD, row.schedule.handle, 0, 1.0, window)
    return out_THD[:, 0, :TOKENS] > 0


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("window", [1, 2, WINDOW, TOKENS - 1])
def test_a_window_is_that_of_the_models_own_mask(
    context: nsp.Context, implementation: str, window: int
) -> None:
    expected = masks(implementation, window)
    assert torch.equal(operator(context, window), expected)
    assert int(expected[-1].sum()) == window


@pytest.mark.parametrize("window", [0, TOKENS, TOKENS + 1])
def test_a_window_that_holds_the_sequence_is_causal_attention(context: nsp.Context, window: int) -> None:
    everything = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    assert torch.equal(operator(context, window), everything)


def test_layers_have_the_window_that_their_type_says() -> None:
    assert [layer_window(make_windowed("mistral", 9).config, i) for i in range(3)] == [9, 9, 9]
    assert [layer_window(make_windowed("gemma3_text", 9).config, i) for i in range(3)] == [9, 0, 9]


def test_a_window_that_the_config_does_not_have_is_refused(context: nsp.Context) -> None:
    model = make_windowed("mistral", WINDOW)
    nsp.attach(model, context)
    row = nsp.PlannedSteps(Samples([9, 4]), context, 64)[0].rounds[0].inputs
    model.config.sliding_window = WINDOW + 1
    with pytest.raises(ValueError, match="asks for 6 tokens but its config says 5"):
        model(**row)


def test_without_a_plan_an_attached_model_slides_as_before(context: nsp.Context) -> None:
    plain, attached = make_windowed("mistral", WINDOW).eval(), make_windowed("mistral", WINDOW).eval()
    nsp.attach(attached, context)
    ids = torch.randint(1, 61, (1, 11), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = (model(input_ids=ids).logits for model in (plain, attached))
        tokens = [
            m.generate(ids, max_new_tokens=4, do_sample=False, use_cache=True) for m in (plain, attached)
        ]
    assert torch.allclose(expected, found, atol=1e-12, rtol=0)
    assert torch.equal(*tokens)


def test_rows_without_a_plan_see_their_window() -> None:
    layer = make_windowed("mistral", WINDOW).model.layers[0].self_attn
    zeros = torch.zeros(1, 2, TOKENS, 16, dtype=torch.float64)
    values = torch.eye(TOKENS, 16, dtype=torch.float64).expand(1, 2, TOKENS, 16)
    out, _ = attention(layer, zeros.repeat(1, 4, 1, 1), zeros, values, None, sliding_window=WINDOW)
    assert torch.equal(out[0, :, 0, :TOKENS] > 0, masks("sdpa", WINDOW))
