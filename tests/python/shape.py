"""The ModelShape of tests that need no model."""

from __future__ import annotations

from typing import Any

SHAPE: dict[str, Any] = {
    "name": "test",
    "layers": 2,
    "hidden": 32,
    "heads": 8,
    "kv_heads": 2,
    "head_dim": 8,
    "experts": 0,
    "top_k": 0,
    "intermediate": 64,
    "vocabulary": 61,
    "bytes_per_value": 4,
}
