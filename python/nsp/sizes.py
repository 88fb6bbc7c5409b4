"""Sizes of memory as people write and read them."""

from __future__ import annotations

import re
from decimal import Decimal

MOST = 2**62  # bytes
_UNITS = {"": 30, "b": 0, "kib": 10, "mib": 20, "gib": 30, "tib": 40}  # powers of two; a number alone: GiB


def parse_bytes(field: str, size: object) -> int:
    """Bytes of a size: a number of GiB, or text such as '1.5GiB', '512 MiB' or '0.25' (GiB). ValueError that
    names `field`: no size, negative, or beyond 2^62 bytes.
    """
    text = str(size).strip() if isinstance(size, (int, float, str)) and not isinstance(size, bool) else ""
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?)\s*([a-z]*)", text, re.IGNORECASE)
    power = _UNITS.get(found[2].lower()) if found else None
    if found is None or power is None:
        raise ValueError(
            f"{field}: {size!r} is not a size; give GiB from 0, or text such as '1.5GiB' or '512MiB'"
        )
    count = Decimal(found[1]) * 2**power
    if count >= MOST:
        raise ValueError(f"{field}: {size!r} is beyond 2^62 bytes; give less")
    return int(count)


def format_bytes(count: float) -> str:
    """'17 MiB', '1.5 GiB'."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
