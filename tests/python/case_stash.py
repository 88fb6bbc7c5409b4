"""Recomputation by marks under FSDP2 next to one process in float64; what is launched, exchanged and held."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from case_misc import resident_bytes
from case_parity import Case, context, make_steps, relative
from nsp._native import core
from nsp.memory import memory
from small_model import LAYERS, Samples, config, make_model, reference
from stash_steps import (
    BUDGETS,
    LENGTHS,
    PLAIN,
    errors,
    expected,
    formula_bytes,
    fresh,
    gathered,
    held_bytes,
    make_step,
    marked,
    run,
)
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from transformers import AutoModelForCausalLM

import nsp

MARKS = ("save", "recompute", "offload", "save_qkv")


def budgets() -> dict[str, Any]:
    """Every budget over three kinds of plan: errors; whether counts and held bytes are the marks'."""
    model, found = fresh(4), {}
    for name in ("degree 4", "mixed a", "two rounds"):
        for budget in BUDGETS:
            step, samples = make_step(4, name, budget)
            got = run(model, step)
            counted = got["counters"]["backward"]
            wanted = expected(step)
            formula = [LAYERS * formula_bytes(row.plan) for row in step.rounds]
            found[f"{name}, {budget}"] = {
                "error": errors(got, samples) if dist.get_rank() == 0 else 0.0,
                "counted": gathered({n: counted[n] for n in wanted}),
                "wanted": gathered(wanted),
                "kept": gathered(got["kept"]),
                "formula": gathered(formula),
                "held": gathered(got["held"]),
            }
    return found


def planner_budget() -> dict[str, Any]:
    """Marks of the planner's own, from a budget in GiB of a context."""
    model = nsp.shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (2,)))
    budget = 8 * 60 * (8 * 2 + 4) / 2**30  # of 60 tokens: 8 heads of 8 values of 2 bytes, and a float
    ctx = nsp.init(None, model.config, sp_max=2, byte_budget=budget)
    nsp.attach(model, ctx)
    model.gradient_checkpointing_enable(PLAIN)
    samples = Samples(list(LENGTHS))
    step = nsp.PlannedSteps(samples, ctx, sum(LENGTHS))[0]
    got = run(model, step)
    saved = [p.tokens / p.degree for r in step.plan.rounds for p in r if p.mark == "save"]
    report = str(memory(ctx, 100, torch.bfloat16))
    ctx.close()
    return {
        "error": errors(got, samples),
        "saved": len(saved),
        "placements": sum(len(r) for r in step.plan.rounds),
        "report": report,
        "counted": {n: got["counters"]["backward"][n] for n in expected(step)} == expected(step),
    }


def host_budget() -> dict[str, Any]:
    """Marks of the planner's own for a host of 60 tokens a layer, on a machine whose link hides them."""
    model = nsp.shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (2,)))
    link = {"bytes_per_second": 1e9, "latency_seconds": 1e-3}
    machine = {
        "name": "here", "device": "cpu", "hosts": 1, "ranks_per_host": 2, "inside": link, "between": link,
        "gpu_memory_bytes": 1 << 32, "host_bytes_per_second": 1e9,
        "flops_per_second": {"attention_forward": 44e9, "attention_backward": 48e9, "dense": 20e9},
    }  # fmt: skip
    budget = 8 * 60 * 8 * 2 / 2**30
    ctx = nsp.init(None, model.config, sp_max=2, host_budget=budget, profile=json.dumps(machine))
    nsp.attach(model, ctx)
    model.gradient_checkpointing_enable(PLAIN)
    samples = Samples(list(LENGTHS))
    step = nsp.PlannedSteps(samples, ctx, sum(LENGTHS))[0]
    got = run(model, step)
    placements = [p for r in step.plan.rounds for p in r]
    report = str(memory(ctx, 100, torch.bfloat16))
    host_bytes = ctx.world.host_bytes
    ctx.close()
    return {
        "error": errors(got, samples),
        "marks": sorted({p.mark for p in placements}),
        "report": report,
        "counted": {n: got["counters"]["backward"][n] for n in expected(step)} == expected(step),
        "kept": got["kept"] == [LAYERS * formula_bytes(row.plan) for row in step.rounds],
        "host_bytes": host_bytes,
    }


def switches() -> dict[str, Any]:
    """Layers that are checkpointed in part or not at all, or with contexts of the user's own."""
    found = {}
    step, samples = make_step(2, "mixed b", "half")

    def put(name: str, model: Any, layers: int) -> None:
        got = run(model, step)
        wanted, counted = expected(step, layers), got["counters"]["backward"]
        kept = layers * formula_bytes(step.rounds[0].plan)
        found[name] = {
            "error": errors(got, samples),
            "counted": gathered({n: counted[n] for n in wanted}) == gathered(wanted),
            "kept": got["kept"] == [kept],
            "held": got["held"],
        }

    put("none", fresh(2, None), 0)
    put("every second layer", fresh(2, every_n_layers=2), (LAYERS + 1) // 2)
    put("offloaded inputs", fresh(2, offload=True), LAYERS)
    put("without early stop", without_early_stop(fresh(2)), LAYERS)
    model = fresh(2)
    put("switched on", model, LAYERS)
    model.gradient_checkpointing_disable()
    put("and off", model, 0)
    model.gradient_checkpointing_enable(PLAIN)
    put("and on again", model, LAYERS)
    entered = Entered()
    put("own contexts", fresh(2, {**PLAIN, "context_fn": entered.contexts}), LAYERS)
    found["own contexts"]["entered"] = entered.count
    put("own selection", fresh(2, {**PLAIN, "context_fn": selective}), LAYERS)
    return found


def without_early_stop(model: Any) -> Any:
    plain = checkpoint

    def whole(*args: Any, **keywords: Any) -> Any:
        with torch.utils.checkpoint.set_checkpoint_early_stop(False):
            return plain(*args, **keywords)

    for module in model.modules():
        if hasattr(module, "gradient_checkpointing"):
            module._gradient_checkpointing_func = functools.partial(whole, use_reentrant=False)
    return model


class Entered:
    """Counts the contexts that checkpointing enters."""

    def __init__(self) -> None:
        self.count = [0, 0]

    def contexts(self) -> tuple[Any, Any]:
        return self.counting(0), self.counting(1)

    @contextlib.contextmanager
    def counting(self, index: int) -> Iterator[None]:
        self.count[index] += 1
        yield


def selective() -> tuple[Any, Any]:
    """The results of matrix products are kept, all else is computed again."""

    def policy(ctx: Any, op: Any, *args: Any, **keywords: Any) -> CheckpointPolicy:
        save = op is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if save else CheckpointPolicy.PREFER_RECOMPUTE

    contexts: tuple[Any, Any] = create_selective_checkpoint_contexts(policy)
    return contexts


def loops() -> dict[str, Any]:
    """What training loops do: threads, two backward passes, evaluation, frozen parts, two models."""
    found: dict[str, Any] = {}
    step, samples = make_step(2, "mixed a", "half, in part on the host")
    (row,) = step.rounds
    world = row.plan.context.world
    wanted = expected(step)
    held = lambda: held_bytes(world)  # noqa: E731
    model = fresh(2)
    gc.disable()  # the graph alone decides how long a stash lives

    def backward_elsewhere() -> None:
        loss = model(**row.inputs).loss
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()

    model.zero_grad()
    backward_elsewhere()
    found["thread"] = [grads_error(model, samples), held()]

    model.zero_grad()
    loss = model(**row.inputs).loss
    loss.backward(retain_graph=True)
    between = held()
    world.reset_counters()
    loss.backward()
    del loss
    counted = world.counters()
    found["twice"] = [grads_error(model, samples, 2.0), held()]
    found["twice counts"] = [between > 0, all(counted[n] == wanted[n] for n in wanted)]

    model.zero_grad()
    loss = model(**row.inputs).loss
    forward_only = held()
    del loss
    with torch.no_grad():
        model(**row.inputs)
    found["evaluation"] = [forward_only > 0, held()]

    other = fresh(2)
    one, two = model(**row.inputs).loss, other(**row.inputs).loss
    one.backward()
    two.backward()
    del one, two
    found["two models"] = [
        max(grads_error(model, samples), grads_error(other, samples)),
        held(),
    ]
    gc.enable()
    return found


def grads_error(model: Any, samples: Any, times: float = 1.0) -> float:
    _, grads = reference(make_model(), samples)
    got = {n: p.grad.full_tensor() / times for n, p in model.named_parameters() if p.grad is not None}
    return relative(got, {n: grads[n] for n in got})


def frozen() -> dict[str, Any]:
    """Only some parameters learn: those of the second layer's query, all but the first layer, the experts."""
    found = {}
    for name, learns in {
        "one query": lambda n: "layers.1.self_attn.q_proj" in n,
        "values only": lambda n: "v_proj" in n,
        "after the first layer": lambda n: "layers.0." not in n and "embed" not in n,
        "experts": lambda n: "experts" in n,
    }.items():
        for budget in ("half", "unlimited"):
            step, samples = make_step(2, "mixed b", budget)
            model = make_model()
            for parameter_name, parameter in model.named_parameters():
                parameter.requires_grad_(learns(parameter_name))
            nsp.attach(model, context(2, 8, 2))
            model.gradient_checkpointing_enable(PLAIN)
            model.disable_input_require_grads()
            loss = model(**step.rounds[0].inputs).loss
            loss.backward()
            del loss
            _, grads = reference(make_model(), samples)
            got = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
            for grad in got.values():
                dist.all_reduce(
                    grad, op=dist.ReduceOp.AVG if dist.get_backend() == "nccl" else dist.ReduceOp.SUM
                )
                grad /= dist.get_world_size()
            held = held_bytes(step.rounds[0].plan.context.world)
            found[f"{name}, {budget}"] = [len(got), relative(got, {n: grads[n] for n in got}), held]
    return found


class Adapter(torch.nn.Module):
    """A frozen projection and a product of two narrow matrices beside it."""

    def __init__(self, plain: torch.nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.plain = plain.requires_grad_(False)
        dice = torch.Generator().manual_seed(plain.out_features)
        inner, outer = (rank, plain.in_features), (plain.out_features, rank)
        self.down = torch.nn.Parameter(torch.randn(inner, generator=dice, dtype=plain.weight.dtype))
        self.up = torch.nn.Parameter(torch.randn(outer, generator=dice, dtype=plain.weight.dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.plain(x) + x @ self.down.T @ self.up.T
        return out


def adapted() -> Any:
    """All is frozen but adapters of q and v (LoRA)."""
    model = make_model().requires_grad_(False)
    for layer in model.model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(layer.self_attn, name, Adapter(getattr(layer.self_attn, name)))
    return model


def adapters() -> dict[str, Any]:
    """Sharded, at several budgets: number of trained parameters, their worst error, what is held."""
    found = {}
    for budget in ("0", "half", "unlimited"):
        step, samples = make_step(2, "mixed b", budget)
        model = nsp.shard(adapted(), dist.device_mesh.init_device_mesh("cpu", (2,)))
        nsp.attach(model, context(2, 8, 2))
        model.gradient_checkpointing_enable(PLAIN)
        model.disable_input_require_grads()
        got = run(model, step)
        _, grads = reference(adapted(), samples)
        error = relative(got["grads"], {name: grads[name] for name in got["grads"]})
        found[budget] = [len(got["grads"]), error, got["held"]]
    return found


def narrow() -> dict[str, Any]:
    """Autocast to bfloat16 inside autocast to float16: bitwise as without marks."""
    grads = []
    for budget in ("0", "half", "unlimited", "on the host"):
        step, _ = make_step(2, "mixed b", budget)
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config(), experts_implementation="eager").train()
        nsp.attach(nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (2,))), context(2, 8, 2))
        model.gradient_checkpointing_enable(PLAIN)
        with torch.autocast("cpu", dtype=torch.float16), torch.autocast("cpu", dtype=torch.bfloat16):
            grads.append(run(model, step)["grads"])
    return {
        "half": all(torch.equal(grads[0][n], grads[1][n]) for n in grads[0]),
        "unlimited": all(torch.equal(grads[0][n], grads[2][n]) for n in grads[0]),
        "on the host": all(torch.equal(grads[0][n], grads[3][n]) for n in grads[0]),
    }


def faults() -> dict[str, Any]:
    """Errors in the middle, edits in place, checkpointing of the other kind: what is said and held."""
    found: dict[str, Any] = {}
    step, samples = make_step(2, "mixed a", "half, in part on the host")
    (row,) = step.rounds
    held = lambda: held_bytes(row.plan.context.world)  # noqa: E731
    model = fresh(2)

    def message(action: Callable[[], Any]) -> str:
        try:
            action()
        except (RuntimeError, ValueError) as error:
            return str(error)
        return ""

    def backward() -> None:
        model(**row.inputs).loss.backward()

    layer = model.model.layers[1]
    handle = layer.mlp.register_forward_hook(lambda *_: (_ for _ in ()).throw(ValueError("broken")))
    text = message(lambda: model(**row.inputs))
    gc.collect()
    found["forward"] = [text, held()]
    handle.remove()
    for module in model.modules():  # FSDP's states are those of an interrupted step
        if hasattr(module, "reshard"):
            module.reshard()

    model = fresh(2)
    calls = []

    def second_time(*_: Any) -> None:
        calls.append(0)
        if len(calls) == 2:
            raise ValueError("broken again")

    handle = model.model.layers[0].mlp.register_forward_pre_hook(second_time)
    text = message(backward)
    gc.collect()
    found["recomputation"] = [text, held()]
    handle.remove()

    model = fresh(2)
    model.model.layers[0].self_attn.o_proj.register_full_backward_pre_hook(broken)
    text = message(backward)
    gc.collect()
    found["backward"] = [text, held()]

    for budget in ("0", "half", "unlimited"):
        (row,) = make_step(2, "mixed a", budget)[0].rounds
        model = fresh(2)
        for decoder_layer in model.model.layers:
            decoder_layer.self_attn.o_proj.register_forward_pre_hook(double_in_place)
        text = message(backward_of(model, row))
        gc.collect()
        found[f"edit, {budget}"] = [text, held()]

    model = fresh(2, {"use_reentrant": True})
    found["reentrant"] = [message(backward_of(model, row)), held()]
    return found


def broken(module: Any, slope: Any) -> None:
    raise ValueError("broken in backward")


def double_in_place(module: Any, args: tuple[torch.Tensor]) -> None:
    args[0].mul_(2)


def backward_of(model: Any, row: nsp.Row) -> Callable[[], None]:
    return lambda: model(**row.inputs).loss.backward()


def own_checkpoints() -> dict[str, Any]:
    """Layers checkpointed by the user's own calls, with nsp.checkpoint_contexts, and by torch's wrapper."""
    step, samples = make_step(2, "mixed b", "half")
    model = fresh(2, None)
    for layer in model.model.layers:
        plain = layer.forward
        layer.forward = functools.partial(
            checkpoint, plain, use_reentrant=False, context_fn=nsp.checkpoint_contexts
        )
    found = {}
    for name, checkpointed in {"by hand": model, "wrapped": wrapped()}.items():
        got = run(checkpointed, step)
        wanted, counted = expected(step), got["counters"]["backward"]
        found[name] = {
            "error": relative(unwrapped(got["grads"]), reference(make_model(), samples)[1]),
            "counted": all(counted[n] == wanted[n] for n in wanted),
        }
    return found


def wrapped() -> Any:
    """Layers in torch's checkpoint_wrapper."""
    model = make_model()
    layers = model.model.layers
    for index, layer in enumerate(layers):
        layers[index] = checkpoint_wrapper(layer)
    nsp.attach(nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (2,))), context(2, 8, 2))
    return model


def unwrapped(grads: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.replace("_checkpoint_wrapped_module.", ""): grad for name, grad in grads.items()}


def compiled() -> dict[str, Any]:
    """Compiled layers inside checkpointing, over changing marks."""
    model = make_model(experts="batched_mm")
    nsp.compile_layers(model, backend="aot_eager")
    nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (2,)))
    nsp.attach(model, context(2, 8, 2))
    model.gradient_checkpointing_enable(PLAIN)
    found = {}
    for budget in ("0", "half", "all four", "unlimited"):
        step, samples = make_step(2, "mixed b", budget)
        got = run(model, step)
        wanted, counted = expected(step), got["counters"]["backward"]
        found[budget] = {
            "error": errors(got, samples),
            "counted": gathered({n: counted[n] for n in wanted}) == gathered(wanted),
            "held": got["held"],
        }
    return found


def many_plans() -> dict[str, Any]:
    """300 plans in a row, each with other marks: resident bytes of every rank after 100 and after 300."""
    gc.collect()  # what other cases left in reference cycles is theirs
    dice = random.Random(11)
    model = make_model(dtype=torch.float32)  # whole on each rank: sharding would take most of the time
    nsp.attach(model, context(2, 8, 2))
    model.gradient_checkpointing_enable(PLAIN)
    memory, held = {}, 0
    for turn in range(1, 301):
        lengths = [dice.randrange(1, 60) for _ in range(dice.randrange(3, 7))]
        steps, _ = make_steps(Case(2, tuple(lengths), 2))
        placements = []
        for sequence, sample in enumerate(steps.samples(0)):
            degree = dice.choice((1, 2))
            placements.append((sequence, lengths[sample], dice.randrange(2 // degree) * degree, degree))
        plan = core().make_plan(2, 2, 2, 0, [placements], "given")
        steps.given = marked(plan, lambda i, p: dice.choice(MARKS))
        for row in steps[0].rounds:
            model(**row.inputs).loss.backward()
        model.zero_grad()
        memory[turn] = resident_bytes()
        held += held_bytes(steps.context.world)
    return {"at 100": gathered(memory[100]), "at 300": gathered(memory[300]), "held": gathered(held)}


CASES: dict[int, list[Callable[[], Any]]] = {
    2: [
        planner_budget,
        host_budget,
        switches,
        loops,
        frozen,
        adapters,
        narrow,
        own_checkpoints,
        compiled,
        many_plans,
        faults,
    ],
    4: [budgets],
}


def cases(world: int) -> dict[str, Callable[[], Any]]:
    return {f"stash: {case.__name__}": case for case in CASES.get(world, [])}
