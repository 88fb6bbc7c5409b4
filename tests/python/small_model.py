"""A small Qwen3-MoE whose every operation is done in its own type (Hugging Face rounds norms and router to
fp32), and the one-process reference: each sequence alone through plain attention and plain cross entropy."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModelForCausalLM, Qwen3MoeConfig

VOCABULARY = 61
LAYERS = 2
SHARED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
)


def config(heads: int = 8, kv_heads: int = 2, **changes: Any) -> Qwen3MoeConfig:
    fields = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 32,
        "moe_intermediate_size": 16,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
        "use_cache": False,
    }
    return Qwen3MoeConfig(**{**fields, **changes})


def make_model(
    heads: int = 8, kv_heads: int = 2, dtype: torch.dtype = torch.float64, experts: str = "eager"
) -> Any:
    """Equal on all ranks."""
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config(heads, kv_heads), experts_implementation=experts)
    return exact(model.to(dtype))


def make_dense(kind: str) -> Any:
    """llama or qwen3, float64, head tied to the embedding."""
    fields = config().to_dict()
    kept = {name: fields[name] for name in SHARED}
    torch.manual_seed(7)
    made = AutoConfig.for_model(kind, **kept, intermediate_size=48, tie_word_embeddings=True, use_cache=False)
    return exact(AutoModelForCausalLM.from_config(made).to(torch.float64))


def make_windowed(kind: str, window: int, dtype: torch.dtype = torch.float64) -> Any:
    """mistral: every layer slides. gemma3_text and qwen3: two sliding layers and a full one, in Gemma's case
    with a rope for each kind and a scale of its own.
    """
    fields = {name: config().to_dict()[name] for name in SHARED if name != "num_hidden_layers"}
    if kind != "mistral":
        fields["layer_types"] = ["sliding_attention", "full_attention", "sliding_attention"]
    if kind == "gemma3_text":
        fields["query_pre_attn_scalar"] = 5
    if kind == "qwen3":
        fields["use_sliding_window"] = True
    torch.manual_seed(7)
    made = AutoConfig.for_model(
        kind, **fields, num_hidden_layers=3, sliding_window=window, intermediate_size=48, pad_token_id=0,
        max_position_embeddings=8192, use_cache=False,
    )  # fmt: skip
    return exact(AutoModelForCausalLM.from_config(made).to(dtype))


def exact(model: Any) -> Any:
    """Norms and router in the model's own type; larger weights, since the usual ones make attention nearly
    uniform.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8)
    for module in model.modules():
        name = type(module).__name__
        if name.endswith("RMSNorm"):
            module.forward = MethodType(_norm, module)
        elif name.endswith("TopKRouter"):
            module.forward = MethodType(_router, module)
    return model.train()


def _norm(module: Any, x: torch.Tensor) -> torch.Tensor:
    gemma = type(module).__name__.startswith("Gemma")  # its weights start at 0
    epsilon = module.eps if gemma else module.variance_epsilon
    weight = 1 + module.weight if gemma else module.weight
    scaled: torch.Tensor = weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon))
    return scaled


def _router(module: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits = F.linear(x.reshape(-1, module.hidden_dim), module.weight)
    scores, indices = torch.topk(torch.softmax(logits, dim=-1), module.top_k, dim=-1)
    if module.norm_topk_prob:
        scores = scores / scores.sum(dim=-1, keepdim=True)
    return logits, scores, indices


class Samples:
    """Random tokens; labels hidden where `hidden(sample, position)` says so."""

    def __init__(self, lengths: list[int], hidden: Any = None) -> None:
        self.lengths = lengths
        self.masked = hidden is not None
        generator = torch.Generator().manual_seed(sum(lengths))
        self.tokens = [torch.randint(0, VOCABULARY, (n,), generator=generator) for n in lengths]
        self.labels = [
            torch.tensor([-100 if hidden and hidden(i, t) else int(x) for t, x in enumerate(tokens)])
            for i, tokens in enumerate(self.tokens)
        ]

    def read(self, i: int, begin: int, end: int) -> Any:
        tokens, labels = self.tokens[i][begin:end], self.labels[i][begin:end]
        return (tokens, labels) if self.masked else tokens


def reference(model: Any, samples: Samples) -> tuple[float, dict[str, torch.Tensor]]:
    """Mean loss over all targets and every parameter's gradient, in one process without nsp."""
    model.zero_grad()
    targets = sum(int((labels[1:] != -100).sum()) for labels in samples.labels)
    total = 0.0
    for tokens, labels in zip(samples.tokens, samples.labels, strict=True):
        logits = model(input_ids=tokens[None]).logits[0, :-1]
        loss = F.cross_entropy(logits, labels[1:], reduction="sum", ignore_index=-100) / max(targets, 1)
        if len(tokens) > 1 and bool((labels[1:] != -100).any()):
            loss.backward()
            total += loss.item()
    return total, {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()}
