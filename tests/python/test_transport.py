"""Ranks agree on how far peer copies reach: hosts, devices and wishes as plain values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from nsp.agreement import Agreement  # noqa: E402
from nsp.transport import NOBODY, Neighbour, Reach, agree, choose, local_reach, wanted  # noqa: E402


def hosts(*counts: int) -> list[Neighbour]:
    """Ranks on hosts of so many devices each."""
    return [Neighbour(f"host {h}", f"gpu {h}.{d}") for h, count in enumerate(counts) for d in range(count)]


def agreed(
    ranks: list[Neighbour], sp_max: int, blind: str = "", choices: tuple[str, ...] = ()
) -> list[object]:
    """What each rank gets (a Reach or an exception); nobody can read the device `blind`."""
    store = dist.HashStore()

    def rank(r: int) -> object:
        channel = Agreement(store, "test", r, len(ranks), timedelta(seconds=20), "set it alike")
        choice = choices[r] if choices else "auto"
        try:
            return agree(channel, sp_max, ranks[r], lambda device: device != blind, choice)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(rank, range(len(ranks))))


def degrees(found: list[object]) -> list[int]:
    assert all(isinstance(reach, Reach) for reach in found), found
    return [reach.degree for reach in found if isinstance(reach, Reach)]


@pytest.mark.parametrize(
    "counts,sp_max,degree",
    [((8,), 8, 8), ((8,), 2, 2), ((4, 4), 8, 4), ((2, 6), 8, 2), ((6,), 2, 2), ((1, 1), 2, 1)],
)
def test_the_reach_ends_at_the_host(counts: tuple[int, ...], sp_max: int, degree: int) -> None:
    assert degrees(agreed(hosts(*counts), sp_max)) == [degree] * sum(counts)


def test_one_rank_without_keeps_all_from_it() -> None:
    ranks = [*hosts(7), NOBODY]
    found = agreed(ranks, 8)
    assert degrees(found) == [1] * 8
    assert found[0].why == "other ranks cannot go further"  # type: ignore[attr-defined]
    assert found[6].why == "rank 7 cannot use peer copies"  # type: ignore[attr-defined]


def test_a_device_that_cannot_be_read_ends_the_reach() -> None:
    found = agreed(hosts(8), 8, blind="gpu 0.5")
    assert degrees(found) == [1] * 8
    assert "device of rank 5 is not visible" in found[4].why  # type: ignore[attr-defined]


def test_two_ranks_on_one_device_have_none() -> None:
    ranks = {0: Neighbour("a", "gpu 0"), 1: Neighbour("a", "gpu 0")}
    assert local_reach(0, ranks, lambda _: True) == Reach(1, "rank 1 shares this rank's device")


def test_ranks_that_want_different_transports_are_told() -> None:
    found = agreed(hosts(2), 2, choices=("auto", "collective"))
    assert all("NSP_TRANSPORT" in str(error) and "set it alike" in str(error) for error in found)


def test_an_unknown_transport_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSP_TRANSPORT", "pigeon")
    with pytest.raises(ValueError, match="'pigeon' is not one of auto, collective, peer-copy"):
        wanted()


def test_forcing_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSP_TRANSPORT", "peer-copy")
    store = dist.HashStore()

    def rank(r: int) -> str:
        channel = Agreement(store, "test", r, 2, timedelta(seconds=20), "")
        with pytest.raises(ValueError) as error:
            choose(channel, 2, torch.device("cpu"), "gloo", True)
        return str(error.value)

    with ThreadPoolExecutor(2) as pool:
        for text in pool.map(rank, range(2)):
            assert (
                text == "NSP_TRANSPORT: peer-copy is not possible: tensors are on cpu; use auto or collective"
            )
