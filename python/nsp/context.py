"""`nsp.init`: the world, its settings, a process group of its own, and proof that the executor works on
it.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import torch
import torch.distributed as dist

from nsp import failure
from nsp._native import execution
from nsp.agreement import Agreement, Entry
from nsp.footprint import step_memory
from nsp.memory import memory_bound
from nsp.planning import Plan
from nsp.settings import Settings, check_settings, make_settings
from nsp.step_moments import StepMemory
from nsp.transport import choose, wanted

_names = count()
logger = logging.getLogger("nsp")


@dataclass(eq=False)
class Context:
    """One world of ranks. Holds its process group until `close`; no process-global state."""

    settings: Settings
    rank: int
    device: torch.device
    group: dist.ProcessGroup
    world: Any  # nsp._exec.World
    timeout: timedelta
    name: str
    modules: weakref.WeakSet[torch.nn.Module] = field(
        default_factory=weakref.WeakSet
    )  # attached attention modules
    capacity: int | None = None  # bytes that a rank may use; known where budgets are auto or it was given
    model: weakref.ref[torch.nn.Module] | None = None  # attached last
    _channels: Any = field(default_factory=count)

    @property
    def kernel(self) -> str:
        """The attention kernel: cpu, flash or cudnn."""
        name: str = self.world.kernel
        return name

    @property
    def world_size(self) -> int:
        return self.settings.world

    @property
    def attached(self) -> bool:
        """True while an attached model is alive."""
        return len(self.modules) > 0

    def step_memory(self) -> StepMemory:
        """What steps of the model attached last hold. ValueError: none is, so nothing is known of it."""
        model = self.model() if self.model is not None else None
        if model is None:
            raise ValueError(
                "model: 'auto' budgets and memory checks need it; call nsp.attach(model, ctx) before "
                "nsp.PlannedSteps"
            )
        return step_memory(self, model)

    def schedule(self, plan: Plan | bytes) -> Any:
        """Compiles a plan for this world: an `nsp._exec.Schedule`, freed with its last reference."""
        if self.world is None:
            raise ValueError("context: it is closed; make another with nsp.init")
        shape = self.settings.shape
        data = plan.json if isinstance(plan, Plan) else plan
        return execution().Schedule(self.world, data, shape["heads"], shape["kv_heads"])

    def agreement(self, what: str, remedy: str) -> Agreement:
        """A channel of its own over the store; all ranks ask for theirs in the same order."""
        name = f"{self.name}/{next(self._channels)}/{what}"
        return Agreement(_store(), name, self.rank, self.world_size, self.timeout, remedy)

    def close(self) -> None:
        """Gives the process group back. Call it on all ranks, after the last step; once more does nothing.

        Called while an exception is on its way (`finally`, `except`), it tells the other ranks that this one
        failed.
        """
        if self.world is None:
            return
        error = failure.on_its_way()
        if error is not None:
            failure.report(self, error)
        self.world.unwatch(done=error is None)
        self.world = None
        dist.destroy_process_group(self.group)


def init(
    mesh: Any,
    config: Any,
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
    streaming: bool = True,
    self_check: bool = True,
    replicas: bool = False,
    timeout: timedelta = timedelta(minutes=10),
    attention: str = "",
    device_bytes: float | str | None = None,
    optimizer_states: int = 2,
) -> Context:
    """Makes the context of the ranks that FSDP shards over. Collective over these ranks.

    mesh: 1-D DeviceMesh, ProcessGroup, or None for all ranks. config: a Hugging Face config, or a ModelShape
    as a dict. sp_max: largest degree, a power of two that divides the world and the heads. token_budget: most
    tokens a rank holds in a round (default: 1.2 x tokens_per_step / world, rounded up; "auto": the most that
    fits the device, docs/memory.md). profile: a preset's
    name, a path or JSON text; by default cpu-gloo on CPU and h200 on GPUs. backends: what planner nsp may use
    beside local, as in `nsp.plan`; with gather or ring sp_max need not divide the heads. byte_budget: GiB of
    attention output that a rank saves of each checkpointed layer, so that backward need not attend again
    (docs/memory.md; also '512MiB'; 0: all is recomputed; of no use to layers without checkpointing; "auto":
    what the device has left). host_budget: GiB of it, of what does not fit there, that a rank keeps in pinned
    memory of its host where copies hide behind computation (also '2GiB'; 0: none). device_bytes: what a rank
    may use of its device, for "auto" and to refuse steps that need more (default: measured where a budget is
    "auto"). optimizer_states: values that the optimizer
    keeps of each trained one, for these (AdamW: 2). streaming: False runs every exchange beside nothing, for
    comparison; the numbers are the same. replicas: allow a mesh
    that covers only part of the job's ranks. attention: the kernel, cpu, flash or cudnn (default: the
    device's fastest; flash has a deterministic backward under torch.use_deterministic_algorithms(True)).
    Inside a host rows travel by peer copies where all ranks can (see nsp.transport; NSP_TRANSPORT forces
    collective or peer-copy). timeout: how long a rank waits for others in nsp's own exchanges and agreements
    before its watchdog ends it with a sentence that names rank, step, level and phase; a failure of one rank
    ends the others within seconds.

    ValueError: a bad argument, before any collective. RuntimeError: ranks with other settings, or a failed
    self-check.
    """
    if timeout <= timedelta(0):
        raise ValueError(f"timeout: {timeout} is not positive; give the longest wait for other ranks")
    group, ranks = _ranks_of(mesh)
    if len(ranks) < dist.get_world_size() and not replicas:
        raise ValueError(
            f"mesh: it covers {len(ranks)} of {dist.get_world_size()} ranks, and small worlds side "
            f"by side lose balance; "
            "pass the mesh of all ranks, or replicas=True when the rest are data-parallel replicas"
        )
    device = _device_of(mesh)
    backend = _backend_of(group, device)
    if not attention and device.type == "cuda":
        attention = execution().default_kernel(str(device))
    settings = make_settings(
        len(ranks),
        config,
        device.type,
        sp_max=sp_max,
        token_budget=token_budget,
        planner=planner,
        profile=profile,
        ranks_per_host=ranks_per_host,
        over_length=over_length,
        byte_budget=byte_budget,
        host_budget=host_budget,
        backends=backends,
        device_bytes=device_bytes,
        optimizer_states=optimizer_states,
        streaming=streaming,
    )
    check_settings(settings)
    wanted()
    name = f"world-{ranks[0]}-{next(_names)}"
    rank = dist.get_rank(group)
    _compare(settings, name, rank, timeout)
    own = dist.new_group(
        ranks,
        timeout=2 * timeout,  # the watchdog's sentence comes first
        backend=backend,
        use_local_synchronization=len(ranks) < dist.get_world_size(),
    )
    world = execution().World(own.group_name, str(device), attention)
    world.streaming = streaming
    context = Context(settings, rank, device, own, world, timeout, name)
    if len(ranks) > 1:
        error_file = os.environ.get("TORCHELASTIC_ERROR_FILE", "")
        world.watch(_store(), name, timeout.total_seconds(), error_file)
        failure.watch(context)
        _use_peer_copies(context, backend)
    if self_check:
        from nsp.self_check import run

        run(context)
        world.begin_step(-1)  # a failure before the first step has nothing to do with the check
    return context


def _use_peer_copies(context: Context, backend: str) -> None:
    """Where they work: memory for the token budget, if that is known (it grows with the plans)."""
    sp_max, remedy = context.settings.sp_max, "set NSP_TRANSPORT alike everywhere"
    agreement = context.agreement("transport", remedy)
    reach = choose(agreement, sp_max, context.device, backend, execution().peer_copies)
    if context.rank == 0 and context.device.type == "cuda" and sp_max > 1:
        how = f"peer copies up to degree {reach.degree}" if reach.degree > 1 else "collectives"
        logger.info("transport: %s%s", how, f" ({reach.why})" if reach.why else "")
    if reach.degree == 1:
        return
    context.world.use_peer_copies(context.group.group_name, str(context.device), reach.degree)
    if context.settings.token_budget is not None:
        value_bytes = context.settings.shape["bytes_per_value"]
        *_, arena = memory_bound(context, context.settings.token_budget, value_bytes)
        context.world.reserve_arena(arena)


def _ranks_of(mesh: Any) -> tuple[dist.ProcessGroup | None, list[int]]:
    if mesh is None:
        return None, list(range(dist.get_world_size()))
    if isinstance(mesh, dist.DeviceMesh):
        if mesh.ndim != 1:
            raise ValueError(
                f"mesh: it has {mesh.ndim} dimensions; pass the one that FSDP shards over, mesh['fsdp']"
            )
        mesh = mesh.get_group()
    return mesh, dist.get_process_group_ranks(mesh)


def _device_of(mesh: Any) -> torch.device:
    kind = mesh.device_type if isinstance(mesh, dist.DeviceMesh) else None
    if kind is None:
        kind = "cuda" if torch.cuda.is_available() and "nccl" in dist.get_backend() else "cpu"
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _backend_of(group: dist.ProcessGroup | None, device: torch.device) -> str:
    """nccl or gloo, as the job's own group moves tensors of this device."""
    backends = dist.get_backend_config(group)
    parts = dict(part.split(":") for part in str(backends).split(",") if ":" in part)
    return parts.get(device.type, str(backends))


def _compare(settings: Settings, name: str, rank: int, timeout: timedelta) -> None:
    remedy = "call nsp.init with the same arguments everywhere"
    Agreement(_store(), f"{name}/settings", rank, settings.world, timeout, remedy).compare(
        Entry(asdict(settings))
    )


def _store() -> Any:
    """A connection of its own: a blocked wait must not hold up the store's other users."""
    store: Any = dist.distributed_c10d._get_default_store()
    return store.clone()
