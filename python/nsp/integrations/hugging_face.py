"""`nsp.attach`: nested attention and the chunked loss for one Hugging Face model.

The attention function is registered in AttentionInterface only: a name that the mask interface does not know
gets no mask at all. It finds the plan in the keyword `nsp_plan` of `model(...)`. Head and loss: in a planned
call with labels the head hands hidden states on, and `model.loss_function` does projection and cross entropy
in chunks of rows. Shapes: T tokens of a rank, H query heads, K KV heads, D head_dim.
"""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from nsp.checkpointing import insert_stashes
from nsp.context import Context
from nsp.footprint import measured_capacity
from nsp.integrations.config_check import check_config, layer_window, model_shape
from nsp.loss import linear_cross_entropy
from nsp.row_plan import RowPlan

NAME = "nsp"
__all__ = ["NAME", "attach", "attention", "model_shape"]


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    nsp_plan: RowPlan | None = None,
    **keywords: Any,
) -> tuple[torch.Tensor, None]:
    """(1, H, T, D), (1, K, T, D) x 2 -> (1, T, H, D). Without a plan: the model's usual attention over the
    row (SDPA).
    """
    if nsp_plan is None:
        attention_mask = _plain_mask(query, key, attention_mask, keywords.get("sliding_window"))
        out: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **keywords
        )
        return out
    if not torch.compiler.is_compiling():  # `nsp.compile_layers` looks before it enters a graph
        nsp_plan.check_attached(module)
    window = keywords.get("sliding_window") or 0
    _check_call(module, query, attention_mask, dropout, window, keywords)
    q_THD, k_TKD, v_TKD = (_autocast(tensor)[0].transpose(0, 1) for tensor in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out_THD = torch.ops.nsp.attention(
        q_THD, k_TKD, v_TKD, nsp_plan.handle, nsp_plan.round, float(scale), window
    )
    return out_THD[None], None


def _autocast(tensor: torch.Tensor) -> torch.Tensor:
    """As autocast treats torch's own attention: norms may have left q and k wider than v."""
    kind = tensor.device.type
    if torch.is_autocast_enabled(kind) and tensor.dtype != torch.float64:
        return tensor.to(torch.get_autocast_dtype(kind))
    return tensor


def _check_call(
    module: torch.nn.Module,
    query: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    window: int,
    keywords: dict[str, Any],
) -> None:
    if query.shape[0] != 1:
        raise ValueError(
            f"input_ids: a planned row is one batch entry, got {query.shape[0]}; pass row.inputs as they are"
        )
    if mask is not None:
        raise ValueError(
            "attention_mask: a planned row takes none, the plan says which tokens attend; leave it out"
        )
    if dropout > 0:
        raise ValueError(f"dropout: {dropout} in attention is not supported; set attention_dropout to 0.0")
    if window != module._nsp_window:  # some models slide by their mask alone, which no planned row has
        raise ValueError(
            f"sliding_window: the layer asks for {window} tokens but its config says {module._nsp_window} "
            "(0: all); use a model that hands its window to the attention function, or one without windows"
        )
    for name in ("softcap", "s_aux"):
        if keywords.get(name) is not None:
            raise ValueError(
                f"{name}: {keywords[name]} is not supported in a planned row; use a model without it"
            )
    causal = keywords.get("is_causal")
    if not (getattr(module, "is_causal", True) if causal is None else causal):
        raise ValueError("is_causal: False is not supported; nested attention is causal inside each sequence")


def _plain_mask(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, window: int | None
) -> torch.Tensor | None:
    """The mask of a call without a plan: none where causal order says it all, else (tokens, keys), True where
    a token sees a key.
    """
    if mask is not None:
        return mask
    if 1 < query.shape[2] != key.shape[2]:
        raise ValueError(
            f"cache: {query.shape[2]} new tokens on {key.shape[2]} keys need a mask, which "
            f"attention 'nsp' does not build; "
            "prefill in one piece, or call model.set_attn_implementation('sdpa') to generate"
        )
    if window is None or key.shape[2] <= window:
        return None
    columns = torch.arange(key.shape[2], device=query.device)
    rows = columns[-query.shape[2] :, None]
    return (columns <= rows) & (columns > rows - window)


class _Attachment:
    """The hooks on one model. `row` is set while a planned call with labels runs."""

    def __init__(self, model: Any, context: Context) -> None:
        self.context = context
        self.row: RowPlan | None = None
        self.names = list(inspect.signature(model.forward).parameters)  # of positional arguments
        self.head = model.get_output_embeddings()
        self.project = self.head.forward
        self.plain_loss = model.loss_function
        self.head.forward = self.head_forward
        model.loss_function = self.loss
        model.register_forward_pre_hook(self.enter, with_kwargs=True, prepend=True)
        model.register_forward_hook(self.leave, with_kwargs=True, always_call=True)

    def enter(self, model: Any, args: Any, keywords: dict[str, Any]) -> None:
        given = {**dict(zip(self.names, args, strict=False)), **keywords}
        row = given.get("nsp_plan")
        if row is None:
            _check_plain_inputs(given)
        else:
            _check_planned_inputs(given, model.config._attn_implementation)
            if row.saves:
                insert_stashes(model)
        self.row = row if given.get("labels") is not None else None

    def leave(self, model: Any, args: Any, keywords: dict[str, Any], output: Any) -> Any:
        planned, self.row = self.row, None
        if planned is None or output is None:
            return output
        if isinstance(output, tuple):  # return_dict=False: (loss, what the head gave, ...)
            return (output[0], *output[2:])
        return type(output)(**{name: value for name, value in output.items() if name != "logits"})

    def head_forward(self, hidden: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = hidden if self.row is not None else self.project(hidden)
        return out

    def loss(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        vocab_size: int,
        num_items_in_batch: Any = None,
        shift_labels: torch.Tensor | None = None,
        **keywords: Any,
    ) -> torch.Tensor:
        if self.row is None:
            plain: torch.Tensor = self.plain_loss(
                logits,
                labels,
                vocab_size,
                num_items_in_batch=num_items_in_batch,
                shift_labels=shift_labels,
                **keywords,
            )
            return plain
        if shift_labels is None:
            raise ValueError(
                "shift_labels: missing; a slice's last target is on another rank, pass row.inputs as they are"
            )
        total = linear_cross_entropy(logits.flatten(0, -2), self.head.weight, shift_labels.flatten())
        if num_items_in_batch is not None:  # Trainer multiplies by the number of ranks itself
            return total / num_items_in_batch
        if self.row.targets is None:
            raise ValueError(
                "targets: unknown for this step of masked data; take steps from nsp.loader, or give "
                "dataset.targets"
            )
        return total * (self.context.world_size / max(self.row.targets, 1))


def _check_planned_inputs(given: dict[str, Any], implementation: str) -> None:
    if implementation != NAME:
        raise ValueError(
            f"attn_implementation: {implementation!r} would ignore the plan; "
            f"call model.set_attn_implementation({NAME!r}) first"
        )
    if given.get("attention_mask") is not None:  # a 2-D mask would be dropped before attention sees it
        raise ValueError(
            "attention_mask: a planned row takes none, the plan says which tokens attend; leave it out"
        )
    if given.get("output_router_logits"):
        raise ValueError("output_router_logits: True is not supported in a planned call; leave it out")


def _check_plain_inputs(keywords: dict[str, Any]) -> None:
    mask, positions = keywords.get("attention_mask"), keywords.get("position_ids")
    remedy = "call model.set_attn_implementation('sdpa') for such a batch"
    if isinstance(mask, torch.Tensor) and not bool(mask.all()):
        raise ValueError(
            f"attention_mask: padding without a plan is not supported by attention 'nsp'; {remedy}"
        )
    if positions is not None and positions.shape[-1] > 1 and bool((positions.diff(dim=-1) != 1).any()):
        raise ValueError(
            f"position_ids: packed sequences without a plan would attend to each other; {remedy}"
        )


def attach(model: Any, context: Context) -> None:
    """Makes `model(**row.inputs)` nested sequence parallel. This model only; before or after `fully_shard`.

    In a planned call with labels `loss` is world x (this rank's summed token losses) / (targets of the whole
    step): averaged over ranks and summed over rounds, the one-process mean; `logits` are left out of the
    output. Where a budget of the context is `auto` it measures what the device has free, collectively: attach
    when the model is on its device. ValueError: attached before, another config than the context's, or a
    model that does not fit.
    """
    if not hasattr(model, "config") or not hasattr(model, "set_attn_implementation"):
        raise ValueError(f"model: {type(model).__name__} is no Hugging Face model; pass a *ForCausalLM model")
    if not isinstance(context, Context):
        raise ValueError(f"context: {type(context).__name__} is no nsp.Context; pass what nsp.init returned")
    if getattr(model, "_nsp_attached", False):
        raise ValueError(
            f"model: this {type(model).__name__} is attached already; call nsp.attach once a model"
        )
    check_config(model.config)
    if getattr(model.config, "output_router_logits", False):
        raise ValueError(
            "output_router_logits: True adds a router loss of the local row; set it to False in the config"
        )
    _check_same(model_shape(model.config), context.settings.shape)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None or getattr(head, "bias", None) is not None:
        raise ValueError(
            f"model: {type(model).__name__} has no language head without bias; use a *ForCausalLM model"
        )
    layers = [
        m for m in model.modules() if getattr(m, "layer_idx", None) is not None and hasattr(m, "is_causal")
    ]
    if len(layers) != model.config.num_hidden_layers:
        raise ValueError(
            f"model: {type(model).__name__} has {len(layers)} attention modules for "
            f"{model.config.num_hidden_layers} layers; "
            "use a model whose every layer goes through the attention interface"
        )
    windows = [layer_window(model.config, layer.layer_idx) for layer in layers]
    zigzag = {way[1] for way in context.settings.ways} - {"local", "ulysses"}
    if any(windows) and zigzag:
        raise ValueError(
            f"backends: {', '.join(sorted(zigzag))} do not run sliding windows, which this model has; call "
            'nsp.init with backends=("ulysses",)'
        )
    model.set_attn_implementation(NAME)
    if model.config._attn_implementation != NAME:
        raise ValueError(
            f"model: {type(model).__name__} does not go through the attention interface; use one that does"
        )
    for layer, window in zip(layers, windows, strict=True):
        layer._nsp_window = window
        context.modules.add(layer)
    model._nsp_attached = True
    context.model = weakref.ref(model)
    context.capacity = _capacity(model, context)
    _Attachment(model, context)


def _capacity(model: Any, context: Context) -> int | None:
    """Bytes that a rank may use; None where nobody asks."""
    settings = context.settings
    if settings.device_bytes is not None or not settings.auto:
        return settings.device_bytes
    return measured_capacity(context, model)


def _check_same(mine: dict[str, Any], contexts: dict[str, Any]) -> None:
    for name, value in mine.items():
        if name not in ("name", "bytes_per_value") and contexts.get(name) != value:
            raise ValueError(
                f"model: its {name} is {value} but the context was made for {contexts.get(name)}; init anew"
            )


AttentionInterface.register(NAME, attention)
