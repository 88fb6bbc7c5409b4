"""What must be equal on all ranks, and what it may not be: checked before any rank waits for another."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nsp._native import core
from nsp.sizes import parse_bytes

AUTO = "auto"
OVER_LENGTH = ("error", "skip", "truncate")


@dataclass(frozen=True)
class Settings:
    """What must be equal on all ranks. `model` is a ModelShape as JSON text."""

    world: int
    sp_max: int
    ranks_per_host: int
    token_budget: int | None  # tokens a rank and round; None: from tokens_per_step
    planner: str
    profile: str
    over_length: str
    model: str
    byte_budget: int = 0  # bytes of attention output that a rank saves of a checkpointed layer
    host_budget: int = 0  # bytes of it that a rank keeps in memory of its host
    backends: tuple[str, ...] = ("ulysses",)  # what planner nsp may use beside local
    auto: tuple[str, ...] = ()  # of token_budget and byte_budget, those that fill the device
    device_bytes: int | None = None  # that a rank may use; None: measured where a budget is auto
    optimizer_states: int = 2  # values that the optimizer keeps of a trained one

    @property
    def planning(self) -> dict[str, Any]:
        """The keywords of _core.plan."""
        fields = asdict(self)
        for name in ("auto", "device_bytes", "optimizer_states", "streaming"):
            del fields[name]
        return {**fields, "token_budget": self.token_budget or 0, "backends": list(self.backends)}

    streaming: bool = True  # exchanges beside attention

    @property
    def ways(self) -> list[tuple[int, str, int]]:
        """(degree, backend, ulysses_degree) of every way in which a sequence may run."""
        found: list[tuple[int, str, int]] = core().allowed_ways(
            self.shape["heads"], self.sp_max, self.ranks_per_host, list(self.backends)
        )
        return found

    @property
    def shape(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.model)
        return value


def make_settings(
    world: int,
    config: Any,
    device_type: str,
    *,
    sp_max: int,
    token_budget: int | str | None = None,
    planner: str = "nsp",
    profile: str | None = None,
    ranks_per_host: int | None = None,
    over_length: str = "error",
    byte_budget: float | str = 0.0,
    host_budget: float | str = 0.0,
    backends: Sequence[str] = ("ulysses",),
    device_bytes: float | str | None = None,
    optimizer_states: int = 2,
    streaming: bool = True,
) -> Settings:
    """Fills in the defaults; byte_budget, host_budget and device_bytes as `parse_bytes` takes them.
    ValueError: a model that the executor cannot run, or a size that is none.
    """
    given = {"token_budget": token_budget, "byte_budget": byte_budget}
    auto = tuple(name for name, budget in given.items() if budget == AUTO)
    if isinstance(backends, str) or not isinstance(backends, Sequence) or not backends:
        raise ValueError(f"backends: {backends!r} is not a list of names; give ('ulysses', 'ring')")
    if auto and device_type == "cpu" and device_bytes is None:
        raise ValueError(
            f"{auto[0]}: 'auto' measures the memory of a GPU, and these ranks run on cpu; give a number, or "
            "device_bytes, what a rank may use"
        )
    if isinstance(token_budget, str) and token_budget != AUTO:
        raise ValueError(f"token_budget: {token_budget!r} is no number of tokens; give one, or 'auto'")
    return Settings(
        world=world,
        sp_max=sp_max,
        ranks_per_host=ranks_per_host or _ranks_per_host(world),
        token_budget=None if isinstance(token_budget, str) else token_budget,
        planner=planner,
        profile=profile or ("cpu-gloo" if device_type == "cpu" else "h200"),
        over_length=over_length,
        model=json.dumps(_shape(config), sort_keys=True),
        byte_budget=0 if byte_budget == AUTO else parse_bytes("byte_budget", byte_budget),
        host_budget=parse_bytes("host_budget", host_budget),
        backends=tuple(backends),
        auto=auto,
        device_bytes=None if device_bytes is None else parse_bytes("device_bytes", device_bytes),
        optimizer_states=optimizer_states,
        streaming=streaming,
    )


def check_settings(settings: Settings) -> None:
    """ValueError, one sentence, for a setting that cannot work; no communication."""
    world, sp_max = settings.world, settings.sp_max
    if not isinstance(sp_max, int):
        raise ValueError(f"sp_max: {sp_max!r} is not an integer; use 1, 2, 4, ... up to {world}")
    if sp_max < 1 or sp_max & (sp_max - 1):
        raise ValueError(f"sp_max: {sp_max} is not a power of two; use 1, 2, 4, ... up to {world}")
    if world % sp_max:
        fitting = [d for d in (1 << i for i in range(20)) if world % d == 0]
        raise ValueError(f"sp_max: {sp_max} does not divide the world of {world} ranks; use one of {fitting}")
    heads = settings.shape["heads"]
    allowed = list(core().allowed_degrees(heads, sp_max))
    if sp_max not in allowed and settings.backends == ("ulysses",):
        raise ValueError(
            f"sp_max: {sp_max} does not divide the model's {heads} heads; allowed degrees are {allowed}"
        )
    if settings.over_length not in OVER_LENGTH:
        raise ValueError(f"over_length: {settings.over_length!r} is not one of {', '.join(OVER_LENGTH)}")
    if settings.token_budget is not None and settings.token_budget < 1:
        raise ValueError(
            f"token_budget: {settings.token_budget} is not positive; give tokens a rank, or None"
        )
    if settings.device_bytes is not None and settings.device_bytes < 1:
        raise ValueError("device_bytes: 0 holds nothing; give what a rank may use, such as '80GiB'")
    if not isinstance(settings.optimizer_states, int) or not 0 <= settings.optimizer_states <= 16:
        raise ValueError(
            f"optimizer_states: {settings.optimizer_states!r} is not from 0 to 16; give the values that the "
            "optimizer keeps of each trained one (AdamW: 2)"
        )
    if world % settings.ranks_per_host:
        raise ValueError(
            f"ranks_per_host: {settings.ranks_per_host} does not divide the world of {world} ranks"
        )
    # An empty plan makes the C++ side look at planner, profile and model before anything starts.
    core().plan([], **settings.planning)


def _shape(config: Any) -> dict[str, Any]:
    if isinstance(config, Mapping):
        shape = dict(config)
    else:
        from nsp.integrations.hugging_face import model_shape

        try:
            shape = model_shape(config)
        except AttributeError as error:
            raise ValueError(
                f"config: {type(config).__name__} is no decoder's config ({error}); "
                "pass a Hugging Face config of a causal language model, or a ModelShape as a dict"
            ) from error
    if missing := {"heads", "kv_heads"} - shape.keys():
        raise ValueError(
            f"config: a ModelShape needs {sorted(missing)}; `nsp models --json -` prints examples"
        )
    return shape


def _ranks_per_host(world: int) -> int:
    """Of hosts that are not alike, the greatest divisor of the world and this one's: what crosses hosts is
    not taken to stay inside, and ranks on hosts of 8 and 4 say the same.
    """
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    return math.gcd(local, world) if 0 < local <= world else world
