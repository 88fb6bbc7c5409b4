"""What training refuses: one sentence with field, value and remedy, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

from nsp.integrations.hugging_face import attention  # noqa: E402
from nsp.settings import check_settings, make_settings  # noqa: E402
from nsp.train import main  # noqa: E402
from single_rank import one_rank  # noqa: E402
from small_model import Samples, config, make_model  # noqa: E402

import nsp  # noqa: E402


@pytest.mark.parametrize(
    ("world", "sp_max", "heads", "words"),
    [
        (8, 3, 8, "sp_max: 3 is not a power of two"),
        (8, 0, 8, "sp_max: 0 is not a power of two"),
        (6, 4, 8, "sp_max: 4 does not divide the world of 6 ranks; use one of [1, 2]"),
        (8, 8, 4, "sp_max: 8 does not divide the model's 4 heads; allowed degrees are [1, 2, 4]"),
    ],
)
def test_tree_and_heads(world: int, sp_max: int, heads: int, words: str) -> None:
    with pytest.raises(ValueError, match=".") as caught:
        check_settings(make_settings(world, config(heads, heads), "cpu", sp_max=sp_max))
    assert words in str(caught.value)


@pytest.mark.parametrize("here", [8, 4])
def test_hosts_of_8_and_4_ranks_agree(here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(here))
    settings = make_settings(12, config(4, 4), "cpu", sp_max=4)
    assert settings.ranks_per_host == 4
    check_settings(settings)


def test_heads_do_not_limit_the_degree_of_rings() -> None:
    check_settings(make_settings(8, config(4, 4), "cpu", sp_max=8, backends=("ulysses", "ring")))
    with pytest.raises(ValueError, match="backends 'rings': must be one of"):
        check_settings(make_settings(8, config(4, 4), "cpu", sp_max=8, backends=("rings",)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "dynamic"),
        ({"attention_dropout": 0.1}, "attention_dropout: 0.1"),
        ({"use_sliding_window": True, "sliding_window": 0}, "sliding_window: 0 is no window of layer 0"),
    ],
)
def test_configs(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_settings(2, config(**changes), "cpu", sp_max=2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attn_logit_softcapping", 30.0),
        ("final_logit_softcapping", 50.0),
        ("layer_types", ["linear_attention"] * 2),
        ("layer_types", ["chunked_attention"] * 2),
        ("attention_chunk_size", 64),
        ("use_bidirectional_attention", True),
        ("model_type", "gpt_oss"),
    ],
)
def test_fields_of_other_models(name: str, value: Any) -> None:
    changed = config()
    setattr(changed, name, value)
    with pytest.raises(ValueError, match=name):
        make_settings(2, changed, "cpu", sp_max=2)


def test_longrope() -> None:
    changed = config()
    changed.rope_parameters = {"rope_type": "longrope"}
    with pytest.raises(ValueError, match="rope type 'longrope'"):
        make_settings(2, changed, "cpu", sp_max=2)


@pytest.fixture(scope="module")
def context() -> Iterator[nsp.Context]:
    with one_rank():
        made = nsp.init(None, config(), sp_max=1)
        yield made
        made.close()


def inputs(context: nsp.Context) -> dict[str, Any]:
    return nsp.PlannedSteps(Samples([9, 4]), context, 64)[0].rounds[0].inputs


def test_attach_twice(context: nsp.Context) -> None:
    model = make_model()
    nsp.attach(model, context)
    with pytest.raises(ValueError, match="attached already"):
        nsp.attach(model, context)


def test_a_model_of_another_config(context: nsp.Context) -> None:
    with pytest.raises(ValueError, match="kv_heads is 4 but the context was made for 2"):
        nsp.attach(make_model(kv_heads=4), context)


def test_a_model_that_was_not_attached(context: nsp.Context) -> None:
    model = make_model()
    model.set_attn_implementation("nsp")
    with pytest.raises(ValueError, match=r"call nsp.attach\(model, ctx\)"):
        model(**inputs(context))


@pytest.mark.parametrize("shape", [(1, 1, 13, 13), (1, 13)])
def test_a_mask_in_a_planned_row(context: nsp.Context, shape: tuple[int, ...]) -> None:
    model = make_model()
    nsp.attach(model, context)
    row = inputs(context)
    mask = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError, match="attention_mask"):
        model(**row, attention_mask=mask)
    ids = row.pop("input_ids")
    with pytest.raises(ValueError, match="attention_mask"):
        model(ids, mask, **row)
    assert model(ids, **row).loss.isfinite()


def test_a_planned_row_under_another_attention(context: nsp.Context) -> None:
    model = make_model()
    nsp.attach(model, context)
    model.set_attn_implementation("sdpa")
    with pytest.raises(ValueError, match="attn_implementation: 'sdpa' would ignore the plan"):
        model(**inputs(context))


@pytest.mark.parametrize(
    ("targets", "words"),
    [([9, 9], "cannot have 9 labelled"), ([-1, 2], "cannot have -1"), ([1], "1 counts for 2 samples")],
)
def test_targets_that_cannot_be(context: nsp.Context, targets: list[int], words: str) -> None:
    samples = Samples([5, 6])
    samples.targets = targets
    with pytest.raises(ValueError, match=words):
        nsp.PlannedSteps(samples, context, 64)


@pytest.mark.parametrize("length", [1.5, "12a"])
def test_lengths_that_are_no_integers(length: Any) -> None:
    with pytest.raises(ValueError, match=r"lengths\[1\]: .* is not an integer"):
        nsp.plan([4, length], world=2, sp_max=2, model="tiny", profile="cpu-gloo")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"world": "8"}, "world: '8' is not an integer"),
        ({"world": 2**40}, "world: 1099511627776 is too large"),
        ({"token_budget": 2**70}, "token_budget: 1180591620717411303424 is too large"),
        ({"byte_budget": 1.5}, "byte_budget: 1.5 is not an integer"),
        ({"byte_budget": "much"}, "byte_budget: 'much' is not a size"),
        ({"byte_budget": "8"}, "byte_budget: '8' is not a size; give bytes"),
        ({"effort": None}, "effort: None is not text"),
        ({"lengths": 5}, "lengths: 5 is not a list"),
        ({"backends": None}, "backends: None is not a list"),
        ({"backends": [b"ring"]}, "backends: b'ring' is not text"),
        ({"lengths": [2**70]}, r"lengths\[0\]: 1180591620717411303424 is too large"),
    ],
)
def test_arguments_of_a_plan(arguments: dict[str, Any], words: str) -> None:
    known = {"lengths": [4], "world": 2, "sp_max": 2, "model": "tiny", "profile": "cpu-gloo"}
    with pytest.raises(ValueError, match=words):
        nsp.plan(**(known | arguments))


def test_backends_may_come_from_an_iterator() -> None:
    known: dict[str, Any] = {"world": 2, "sp_max": 2, "model": "tiny", "profile": "cpu-gloo"}
    found = [nsp.plan([9000, 5], backends=names, **known).hash for names in (["ring"], iter(["ring"]))]
    assert found[0] == found[1]


def test_a_budget_of_bytes_as_text() -> None:
    known: dict[str, Any] = {"world": 2, "sp_max": 2, "model": "tiny", "profile": "cpu-gloo"}
    found = [nsp.plan([900, 5], byte_budget=size, **known).hash for size in (1 << 20, "1MiB", 0)]
    assert found[0] == found[1] != found[2]


def test_a_closed_context(context: nsp.Context) -> None:
    closed = nsp.init(None, config(), sp_max=1, self_check=False)
    steps = nsp.PlannedSteps(Samples([5, 6]), closed, 64)
    closed.close()
    with pytest.raises(ValueError, match="context: it is closed"):
        steps[0]


@pytest.mark.parametrize(
    "keywords",
    [{"sliding_window": 8}, {"softcap": 30.0}, {"s_aux": 1.0}, {"is_causal": False}, {"dropout": 0.1}],
)
def test_attention_keywords(context: nsp.Context, keywords: dict[str, Any]) -> None:
    model = make_model()
    nsp.attach(model, context)
    layer = model.model.layers[0].self_attn
    q, k = torch.zeros(1, 8, 13, 8), torch.zeros(1, 2, 13, 8)
    with pytest.raises(ValueError, match=next(iter(keywords))):
        attention(layer, q, k, k, None, nsp_plan=inputs(context)["nsp_plan"], **keywords)


def test_labels_without_shift_labels(context: nsp.Context) -> None:
    model = make_model()
    nsp.attach(model, context)
    row = inputs(context)
    del row["shift_labels"]
    with pytest.raises(ValueError, match="shift_labels: missing"):
        model(**row)


def test_padding_without_a_plan(context: nsp.Context) -> None:
    model = make_model()
    nsp.attach(model, context)
    ids = torch.zeros(2, 5, dtype=torch.long)
    mask = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
    with pytest.raises(ValueError, match="padding without a plan"):
        model(input_ids=ids, attention_mask=mask)
    with pytest.raises(ValueError, match="padding without a plan"):
        model(ids, mask)


def test_without_a_plan_the_model_is_as_before(context: nsp.Context) -> None:
    plain, attached = make_model().eval(), make_model().eval()
    nsp.attach(attached, context)
    ids = torch.randint(0, 61, (1, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = (model(input_ids=ids, labels=ids) for model in (plain, attached))
        tokens = [
            m.generate(ids, max_new_tokens=4, do_sample=False, use_cache=True) for m in (plain, attached)
        ]
    assert torch.equal(expected.logits, found.logits)
    assert torch.equal(expected.loss, found.loss)
    assert torch.equal(*tokens)


def test_two_models_in_one_process(context: nsp.Context) -> None:
    first, second = make_model(), make_model()
    nsp.attach(first, context)
    nsp.attach(second, context)
    row = inputs(context)
    assert torch.equal(first(**row).loss, second(**row).loss)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "0"], "--steps: 0"),
        (["--sp-max", "3"], "sp_max: 3"),
        (["--planner", "none"], "none"),
        (["--planner", "static:x"], "static:x"),
        (["--backends", "ulysses,rings"], "'rings'"),
        (["--corpus", "no/such/folder"], "no/such/folder"),
        (["--max-length", "40000"], "--max-length: 40000"),
        (["--no-such-option"], "--no-such-option"),
        (["--steps", "x"], "--steps"),
        (["--seed", "-1"], "--seed: -1"),
        (["--head-dim", "3"], "--head-dim: 3"),
        (["--lr", "inf"], "--lr: inf"),
        (["--name", "a/b"], "--name: 'a/b'"),
        (["--byte-budget", "1"], "--byte-budget: 1 saves nothing"),
        (["--checkpointing", "--byte-budget", "-1"], "--byte-budget: '-1' is not a size"),
        (["--checkpointing", "--byte-budget", "9e9TiB"], "--byte-budget: '9e9TiB' is beyond 2^62 bytes"),
        (["--checkpointing", "--byte-budget", "auto"], "byte_budget: 'auto' measures the memory of a GPU"),
        (["--host-budget", "1"], "--host-budget: 1 saves nothing"),
        (["--checkpointing", "--host-budget", "1MiB"], "does not know how fast host memory is reached"),
        (["--checkpointing", "--host-budget", "auto"], "host_budget: 'auto' is not a size"),
        (["--token-budget", "auto"], "token_budget: 'auto' measures the memory of a GPU"),
        (["--token-budget", "auto", "--device-bytes", "0"], "device_bytes: 0 holds nothing"),
        (["--token-budget", "auto", "--device-bytes", "all"], "device_bytes: 'all' is not a size"),
        (["--token-budget", "many"], "--token-budget"),
    ],
)
def test_train_options_exit_with_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


def test_things_that_are_no_model_or_config(context: nsp.Context) -> None:
    with pytest.raises(ValueError, match="model: Linear is no Hugging Face model"):
        nsp.attach(torch.nn.Linear(2, 2), context)
    with pytest.raises(ValueError, match="context: NoneType is no nsp.Context"):
        nsp.attach(make_model(), None)
    with pytest.raises(ValueError, match="config: NoneType is no decoder's config"):
        make_settings(2, None, "cpu", sp_max=2)
    with pytest.raises(ValueError, match="config: a ModelShape needs"):
        make_settings(2, {}, "cpu", sp_max=2)
    with pytest.raises(ValueError, match="sp_max: '2' is not an integer"):
        check_settings(make_settings(2, config(), "cpu", sp_max="2"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="byte_budget: 'much' is not a size"):
        make_settings(2, config(), "cpu", sp_max=2, byte_budget="much")
    with pytest.raises(ValueError, match="optimizer_states: -1 is not from 0 to 16"):
        check_settings(make_settings(2, config(), "cpu", sp_max=2, optimizer_states=-1))


def test_an_empty_batch_is_a_valid_empty_plan() -> None:
    made = nsp.plan([])
    assert made.feasible
    assert made.rounds == ()
    assert made.check() == []
