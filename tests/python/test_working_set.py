"""What a decoder layer takes of memory: formulas against what autograd saves of real layers, and against the
most that is alive in the backward pass of a checkpointed one.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("nsp._core", reason="nsp._core is not built")
pytest.importorskip("nsp._exec", reason="nsp._exec is not built")

import torch  # noqa: E402  not everywhere
from allocations import Allocations  # noqa: E402
from nsp._native import core  # noqa: E402
from nsp.row_plan import RowPlan  # noqa: E402
from nsp.step_memory import step_peak  # noqa: E402
from nsp.step_moments import COUNTS  # noqa: E402
from single_rank import one_rank  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

import nsp  # noqa: E402

TOKENS = 512
SIZES = {
    "vocab_size": 64,
    "hidden_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 8192,
    "use_cache": False,
    "tie_word_embeddings": False,
}
KINDS: dict[str, dict[str, Any]] = {
    "qwen3_moe": {
        "moe_intermediate_size": 48,
        "num_experts": 16,
        "num_experts_per_tok": 8,
        "norm_topk_prob": True,
    },
    "qwen3": {"intermediate_size": 384},
    "llama": {"intermediate_size": 384},
}
NARROW, WIDE = torch.bfloat16, torch.float32
CASES = [("qwen3_moe", NARROW), ("qwen3_moe", WIDE), ("qwen3", NARROW), ("qwen3", WIDE), ("llama", NARROW)]


class Layer:
    """The first decoder layer of a small model, attached, with one planned row."""

    def __init__(self, kind: str, dtype: torch.dtype) -> None:
        config = AutoConfig.for_model(kind, **SIZES, **KINDS[kind], dtype=dtype)
        experts = {"experts_implementation": "grouped_mm"} if kind == "qwen3_moe" else {}
        torch.manual_seed(0)
        self.model = AutoModelForCausalLM.from_config(config, dtype=dtype, **experts).train()
        self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.context = nsp.init(None, config, sp_max=1)
        nsp.attach(self.model, self.context)
        placements = [(0, TOKENS - 100, 0, 1), (1, 100, 0, 1)]
        self.plan = core().make_plan(1, 1, 1, 0, [placements], "given")
        self.row = RowPlan(self.context, self.context.schedule(self.plan), 0, TOKENS)
        self.x = torch.randn(1, TOKENS, SIZES["hidden_size"], dtype=dtype, requires_grad=True)
        self.rotary = self.model.model.rotary_emb(self.x, torch.arange(TOKENS)[None])
        self.layer = self.model.model.layers[0]
        self.memory = self.context.step_memory()

    def __call__(self, checkpointed: bool) -> torch.Tensor:
        self.layer.gradient_checkpointing = checkpointed
        out: Any = self.layer(self.x, position_embeddings=self.rotary, nsp_plan=self.row)
        result: torch.Tensor = out[0] if isinstance(out, tuple) else out
        return result

    @property
    def given(self) -> list[torch.Tensor]:
        return [self.x, *self.rotary, *self.model.parameters(), *self.model.buffers()]


def saved_bytes(layer: Layer) -> int:
    """Of distinct storages that autograd saves, what was given not counted."""
    given = {t.untyped_storage().data_ptr() for t in layer.given}
    saved: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.setdefault(tensor.untyped_storage().data_ptr(), tensor)  # alive, so no address comes again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(checkpointed=False)
    return sum(t.untyped_storage().nbytes() for at, t in saved.items() if at not in given)


@pytest.mark.parametrize("kind,dtype", CASES)
def test_autograd_saves_what_is_counted(kind: str, dtype: torch.dtype) -> None:
    with one_rank():
        layer = Layer(kind, dtype)
        row = layer.memory.row
        inside = 4 * SIZES["num_attention_heads"]  # the log-sum-exp is the operator's own
        offsets = 4 * KINDS[kind].get("num_experts", 0)
        assert saved_bytes(layer) == TOKENS * (row["kept"] + row["read"] - inside) + offsets
        layer.context.close()


@pytest.mark.parametrize("kind,dtype", CASES)
def test_backward_of_a_checkpointed_layer_peaks_where_the_formula_says(kind: str, dtype: torch.dtype) -> None:
    with one_rank():
        layer = Layer(kind, dtype)
        slope = torch.randn_like(layer.x)
        alive = Allocations([*layer.given, slope])
        with alive:
            layer(checkpointed=True).backward(slope)
        counts = dict.fromkeys(COUNTS, 0) | {"tokens": TOKENS, "read": TOKENS}
        peak = step_peak(layer.memory, [[tuple(counts.values())]])
        assert peak is not None
        assert "its end" in peak.moment
        inside = 4 * SIZES["num_attention_heads"] * TOKENS
        first = kind != "qwen3_moe"  # a dense MLP's last weight has its gradient by then
        gradients = layer.layer.mlp.down_proj.weight.nbytes if first else 0
        assert alive.most == pytest.approx(peak.kinds["working set"] - inside + gradients, rel=0.01)
        layer.context.close()
