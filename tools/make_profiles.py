"""Freezes nsp/cost/presets/*-h200.json from the measurements in tools/measured/h200_fits.json.

Attention and dense seconds, LM head and optimizer are measured; the link between hosts and the FSDP
traffic are assumed (400 Gbit/s a GPU; gathers and scatters in bf16 over the links of a host).
"""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINKS = {
    "inside": {"bytes_per_second": 280e9, "latency_seconds": 60e-6},
    "between": {"bytes_per_second": 42e9, "latency_seconds": 100e-6},
}
RANKS_PER_HOST = 8
BYTES_PER_VALUE = 2
# Kernels beside attention and exchanges at degree 2, 32 heads (profiled, two H200): ring forward 1.58 and
# 0.41 ms for 64K and 16K tokens, backward 2.64 and 0.68; gather backward 3.80 and 0.96.
MERGE_VALUE_SECONDS = 1.3e-11
MODELS = {
    "qwen3-30b-a3b": {
        "measured": "qwen3_30b_a3b", "layers": 48, "hidden": 2048, "heads": 32, "kv_heads": 4,
        "head_dim": 128, "experts": 128, "intermediate": 768, "vocabulary": 151936,
    },
    "qwen3-235b-a22b": {
        "measured": "qwen3_235b_a22b", "layers": 94, "hidden": 4096, "heads": 64, "kv_heads": 4,
        "head_dim": 128, "experts": 128, "intermediate": 1536, "vocabulary": 151936,
    },
}  # fmt: skip


def attention_law(fit: dict) -> dict:
    path = fit["critical_path_seconds"]
    base = fit["seconds_per_head_and_block_of_128x128"]
    beyond = fit["seconds_per_head_and_block_beyond_64k_by_tokens"]
    points = [{"tokens": 65536, "seconds": base}]
    points += [{"tokens": int(tokens), "seconds": seconds} for tokens, seconds in beyond.items()]
    return {
        "block": points,
        "row_seconds": fit["seconds_per_head_and_128_tokens"],
        "entry_seconds": fit["seconds_per_batch_entry"],
        "entry_grouped_seconds": fit.get("seconds_per_batch_entry_more_when_heads_exceed_kv_heads", 0.0),
        "path_fixed_seconds": path["fixed"],
        "path_row_seconds": path["per_128_tokens"],
        "path_fixed_grouped_seconds": path.get("fixed_when_heads_exceed_kv_heads", path["fixed"]),
        "path_row_grouped_seconds": path.get(
            "per_128_tokens_when_heads_exceed_kv_heads", path["per_128_tokens"]
        ),
        "launch_seconds": 0.0,  # contained in the critical path's fixed part
    }


def dense_law(rows: list[dict], shape: str, phase: str) -> dict:
    def fit(part: str) -> dict:
        (row,) = [
            r for r in rows if (r["shape"], r["part"], r["phase"], r["experts"]) == (shape, part, phase, 128)
        ]
        return row

    layer = fit("whole_layer_without_attention")
    return {
        "fixed_seconds": layer["fixed_seconds"],
        "token_seconds": layer["seconds_per_token"],
        "expert_token_seconds": fit("moe")["seconds_per_token"],
    }


def lm_head_token_seconds(rows: list[dict], hidden: int) -> float:
    key = (hidden, 16384, 4096)
    (row,) = [r for r in rows if (r["hidden"], r["tokens"], r["chunk_rows"]) == key]
    return row["training_seconds_per_token"]


def layer_parameters(model: dict) -> int:
    attention = model["hidden"] * 2 * (model["heads"] + model["kv_heads"]) * model["head_dim"]
    experts = 3 * model["experts"] * model["hidden"] * model["intermediate"]
    return attention + experts + model["experts"] * model["hidden"]


def profile(name: str, model: dict, measured: dict) -> dict:
    layer = layer_parameters(model)
    layer_bytes = float(layer * BYTES_PER_VALUE)
    dense = measured["fits"]["dense"]
    attention = measured["fits"]["attention"]
    host = RANKS_PER_HOST * LINKS["between"]["bytes_per_second"]
    return {
        "format": "nsp-profile/1",
        "model": name,
        "cluster": "h200",
        "measured": True,
        "source": f"{measured['source']} Links between hosts and FSDP traffic are assumed.",
        "ranks_per_host": RANKS_PER_HOST,
        "attention_forward": attention_law(attention["forward"]),
        "attention_backward": attention_law(attention["backward"]),
        "dense_forward": dense_law(dense, model["measured"], "forward"),
        "dense_backward": dense_law(dense, model["measured"], "backward"),
        **LINKS,
        "fsdp": {
            "gather_bytes": layer_bytes,
            "scatter_bytes": layer_bytes,
            "bytes_per_second": min(LINKS["inside"]["bytes_per_second"], host),
        },
        "merge_value_seconds": MERGE_VALUE_SECONDS,
        "lm_head_token_seconds": lm_head_token_seconds(measured["lm_head"], model["hidden"]),
        "optimizer_parameter_seconds": measured["optimizer"][0]["seconds_per_parameter"],
        "parameters": float(model["layers"] * layer + 2 * model["vocabulary"] * model["hidden"]),
    }


def main() -> None:
    measured = json.loads((ROOT / "tools/measured/h200_fits.json").read_text())
    for name, model in MODELS.items():
        path = ROOT / f"nsp/cost/presets/{name}-h200.json"
        path.write_text(json.dumps(profile(name, model, measured), indent=2) + "\n")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
