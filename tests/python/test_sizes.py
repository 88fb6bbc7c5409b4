"""Sizes of memory as people write them."""

from __future__ import annotations

import pytest
from nsp.sizes import format_bytes, parse_bytes


@pytest.mark.parametrize(
    "size,count",
    [
        (0, 0),
        (1.5, 3 << 29),
        ("1.5GiB", 3 << 29),
        ("1.5", 3 << 29),
        ("512 MiB", 512 << 20),
        ("64kib", 64 << 10),
        ("7B", 7),
        ("0.1GiB", 107374182),
        (1e-3, 1073741),
        ("2TiB", 2 << 40),
    ],
)
def test_sizes_are_exact(size: object, count: int) -> None:
    assert parse_bytes("field", size) == count


@pytest.mark.parametrize(
    "size", ["much", "-1", -1.0, "1.5GB", float("nan"), float("inf"), True, None, "", "GiB", "1 2GiB"]
)
def test_what_is_no_size_is_refused_by_name(size: object) -> None:
    with pytest.raises(ValueError, match="^field: .* is not a size; give GiB"):
        parse_bytes("field", size)


@pytest.mark.parametrize("size", [2**32, "1e30", "1e400", "5000000000GiB"])
def test_huge_sizes_are_refused_not_clamped(size: object) -> None:
    with pytest.raises(ValueError, match="^field: .* is beyond 2\\^62 bytes; give less"):
        parse_bytes("field", size)


def test_bytes_are_read_in_their_unit() -> None:
    assert [format_bytes(n) for n in (0, 1023, 17 << 20, 3 << 29)] == ["0 B", "1023 B", "17 MiB", "1.5 GiB"]
