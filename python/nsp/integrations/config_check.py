"""What a Hugging Face config must not ask for, and the model shape it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FULL = ("full_attention", "attention")
SLIDING = "sliding_attention"
SINKS = ("deepseek_v4", "flint", "gpt_oss", "granite_swa", "granitemoe_swa", "hy_v4", "mimo_v2_flash")
FIELDS = {
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "logit_scale": 1,
    "logits_scaling": 1,
}


def check_config(config: Any) -> None:
    """ValueError, one sentence with field, value and remedy, for anything the executor or the loss does not
    do.
    """
    for where, rope in _ropes(config):
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind in ("dynamic", "longrope"):
            raise ValueError(
                f"{where}: rope type {kind!r} depends on a rank's own longest position, so ranks would "
                f"disagree; "
                "use default, linear, yarn or llama3"
            )
    dropout = getattr(config, "attention_dropout", None) or 0.0
    if dropout > 0:
        raise ValueError(f"attention_dropout: {dropout} is not supported; set it to 0.0")
    for name, harmless in FIELDS.items():
        value = getattr(config, name, None)
        if value is not None and value != harmless:
            raise ValueError(f"{name}: {value} is not supported; use a model without it")
    if getattr(config, "model_type", "") in SINKS:
        raise ValueError(
            f"model_type: {config.model_type!r} has attention sinks, which are not supported; use a model "
            "without them"
        )
    if getattr(config, "use_bidirectional_attention", None):
        raise ValueError(
            "use_bidirectional_attention: True is not supported; nested attention is causal, set it to False"
        )
    _check_layers(config)
    for layer in range(getattr(config, "num_hidden_layers", 0)):
        layer_window(config, layer)


def _ropes(config: Any) -> list[tuple[str, Mapping[str, Any]]]:
    found = []
    for name in ("rope_parameters", "rope_scaling"):
        value = getattr(config, name, None)
        if isinstance(value, Mapping):
            nested = [v for v in value.values() if isinstance(v, Mapping)]  # one set for each type of layer
            found += [(name, rope) for rope in (nested or [value])]
    return found


def _check_layers(config: Any) -> None:
    types = _layer_types(config)
    other = sorted({t for t in types or () if t not in (*FULL, SLIDING)})
    if other:
        raise ValueError(
            f"layer_types: {other} are not supported; use a model of full_attention and sliding_attention "
            "layers only"
        )
    if types is None and getattr(config, "attention_chunk_size", None) is not None:
        raise ValueError(
            f"attention_chunk_size: {config.attention_chunk_size} is not supported; set it to None to attend "
            "to the whole sequence"
        )


def _layer_types(config: Any) -> list[str] | None:
    return getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)


def layer_window(config: Any, layer: int) -> int:
    """Tokens that a token of this layer attends to, itself included; 0: all before it. As Hugging Face's
    masks count: token i sees token j when i - sliding_window < j <= i. ValueError: a window that is none.
    """
    types = _layer_types(config)
    if types is not None:
        slides = types[layer] == SLIDING
    else:
        slides = bool(getattr(config, "use_sliding_window", True))
    window = getattr(config, "sliding_window", None)
    if not slides or (types is None and window is None):
        return 0
    if not isinstance(window, int) or window < 1:
        raise ValueError(
            f"sliding_window: {window!r} is no window of layer {layer}; set it to a positive number of tokens"
        )
    return window


def model_shape(config: Any) -> dict[str, Any]:
    """The planner's ModelShape (nsp/workload/model_shape.h) of a config. ValueError: see `check_config`."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    check_config(config)
    heads = config.num_attention_heads
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 0
    width = getattr(config, "moe_intermediate_size", None) if experts else None
    return {
        "name": getattr(config, "model_type", "custom"),
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "heads": heads,
        "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "experts": experts,
        "top_k": (getattr(config, "num_experts_per_tok", None) or 0) if experts else 0,
        "intermediate": width or config.intermediate_size,
        "vocabulary": config.vocab_size,
        "bytes_per_value": _bytes(config),
    }


def _bytes(config: Any) -> int:
    dtype = str(getattr(config, "dtype", None) or "bfloat16")
    return {"float64": 8, "float32": 4}.get(dtype.removeprefix("torch."), 2)
