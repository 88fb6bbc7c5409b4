"""What only several ranks can show, beside parity: data, seeds, loaders, types, memory, Trainer's loss,
evaluation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from case_parity import Case, Given, context, make_steps, plans, relative, run_step, sharded
from nsp._native import core
from small_model import VOCABULARY, Samples, config, make_dense, make_model, reference

import nsp

LENGTHS = [61, 3, 17, 1, 29, 8, 2, 40, 11]


def message(action: Callable[[], Any]) -> str:
    """The error's text, or nothing."""
    try:
        action()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def gathered(value: Any) -> list[Any]:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def other_seed() -> list[str]:
    """Rank 1 shuffles with another seed."""
    sharded(2, 8, 2)
    rank = dist.get_rank()
    steps = nsp.PlannedSteps(Samples(LENGTHS), context(2, 8, 2), 64, seed=int(rank == 1))
    return gathered(message(lambda: next(iter(nsp.loader(steps)))))


def other_settings() -> list[str]:
    """Rank 1 asks for another sp_max."""
    return gathered(message(lambda: nsp.init(None, config(), sp_max=1 if dist.get_rank() == 1 else 2)))


def reading_fails() -> list[str]:
    """Rank 0 cannot read a sample: every rank hears of it at that step."""
    sharded(2, 8, 2)
    samples = Samples(LENGTHS)
    if dist.get_rank() == 0:
        samples.read = lambda *_: (_ for _ in ()).throw(OSError("disk on fire"))  # type: ignore[method-assign]
    steps = nsp.PlannedSteps(samples, context(2, 8, 2), 64)
    return gathered(message(lambda: next(iter(nsp.loader(steps)))))


def wrong_targets() -> list[str]:
    """Stored counts that the labels do not hold."""
    sharded(2, 8, 2)
    samples = Samples(LENGTHS, lambda i, t: t % 2 == 0)
    samples.targets = [n - 1 for n in LENGTHS]  # type: ignore[attr-defined]
    steps = nsp.PlannedSteps(samples, context(2, 8, 2), 64)
    return gathered(message(lambda: next(iter(nsp.loader(steps)))))


def no_model() -> str:
    ctx = nsp.init(None, config(), sp_max=2, self_check=False)
    text = message(lambda: next(iter(nsp.loader(nsp.PlannedSteps(Samples(LENGTHS), ctx, 64)))))
    ctx.close()
    return text


def unused_rows() -> str:
    """Rows taken but never run through the attached model."""
    sharded(2, 8, 2)
    return message(lambda: list(nsp.loader(nsp.PlannedSteps(Samples(LENGTHS), context(2, 8, 2), 64))))


def dense_models() -> dict[str, float]:
    """Llama and Qwen3 with tied heads: the worse of the relative errors of loss and gradients."""
    found = {}
    for kind in ("llama", "qwen3"):
        model = nsp.shard(make_dense(kind), dist.device_mesh.init_device_mesh("cpu", (2,)))
        ctx = nsp.init(None, model.config, sp_max=2)
        nsp.attach(model, ctx)
        samples = Samples(LENGTHS)
        steps = Given(samples, ctx, sum(LENGTHS))
        ordered = [samples.lengths[i] for i in steps.samples(0)]
        steps.given = plans(Case(2, tuple(LENGTHS), 2), ordered)["mixed a"]
        loss, grads = reference(make_dense(kind), samples)
        got_loss, got = run_step(model, steps[0])
        found[kind] = max(abs(got_loss - loss) / loss, relative(got, grads))
        ctx.close()
    return found


def part_of_the_job() -> str:
    groups = [dist.new_group([rank]) for rank in range(2)]
    return message(lambda: nsp.init(groups[dist.get_rank()], config(), sp_max=1))


def epoch_and_resume() -> dict[str, Any]:
    """Tokens that all ranks read in an epoch, counted; and what a resumed loader gives next."""
    model = sharded(4, 8, 2)
    samples = Samples(LENGTHS)
    steps = nsp.PlannedSteps(samples, context(4, 8, 2), 64, seed=5)
    loader = nsp.loader(steps)
    seen, taken, state = [], [], {}
    for step in loader:
        taken.append([step.index, step.plan.hash])
        seen += step.samples
        tokens = gathered(sum(row.tokens for row in step.rounds))
        assert sum(tokens) == sum(samples.lengths[i] for i in step.samples)
        with torch.no_grad():
            for row in step.rounds:
                model(**row.inputs)
        if step.index == 1:
            state = loader.state_dict()
    resumed = nsp.loader(nsp.PlannedSteps(samples, context(4, 8, 2), 64, seed=5))
    resumed.load_state_dict(state)
    left = len(resumed)
    step = next(iter(resumed))
    return {"seen": seen, "taken": taken, "resumed": [step.index, step.plan.hash], "left": left}


def uniform_logits() -> dict[str, float]:
    """With a head of zeros every logit is equal: the loss is log(vocabulary) for every plan."""
    case = Case(4, tuple(LENGTHS), 4)
    model = make_model()
    torch.nn.init.zeros_(model.lm_head.weight)
    nsp.attach(nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (4,))), context(4, 8, 2))
    steps, samples = make_steps(case)
    found = {}
    for name, given in plans(case, [samples.lengths[i] for i in steps.samples(0)]).items():
        steps.given = given
        found[name] = abs(run_step(model, steps[0])[0] - math.log(VOCABULARY))
    return found


def narrow_types() -> dict[str, Any]:
    """fp32 and bf16: relative error of the loss, and of the gradients."""
    case = Case(4, tuple(LENGTHS), 4)
    steps, samples = make_steps(case)
    steps.given = plans(case, [samples.lengths[i] for i in steps.samples(0)])["mixed a"]
    loss, grads = reference(make_model(), samples)
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = nsp.shard(make_model(dtype=dtype), dist.device_mesh.init_device_mesh("cpu", (4,)))
        nsp.attach(model, steps.context)
        got_loss, got = run_step(model, steps[0])
        found[str(dtype)] = {"loss": abs(got_loss - loss) / loss, "grads": relative(got, grads)}
    return found


def checkpointing() -> dict[str, float]:
    """Activation checkpointing runs attention twice; gradients stay."""
    case = Case(4, tuple(LENGTHS), 4)
    steps, samples = make_steps(case)
    steps.given = plans(case, [samples.lengths[i] for i in steps.samples(0)])["mixed b"]
    model = make_model()
    model.activation_checkpointing_enable({"use_reentrant": False})
    nsp.attach(nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (4,))), steps.context)
    loss, grads = reference(make_model(), samples)
    got_loss, got = run_step(model, steps[0])
    return {"loss": abs(got_loss - loss) / loss, "grads": relative(got, grads)}


def evaluation_and_trainer() -> dict[str, float]:
    """The same loss in eval mode; and sum / num_items when Trainer gives the number of items."""
    case = Case(4, tuple(LENGTHS), 4)
    model = sharded(4, 8, 2)
    steps, samples = make_steps(case)
    loss, _ = reference(make_model(), samples)
    (row,) = steps[0].rounds

    def mean(value: torch.Tensor) -> float:
        total = value.detach().double()
        dist.all_reduce(total)
        return total.item() / 4

    model.eval()
    with torch.no_grad():
        out = model(**row.inputs)
        evaluated = mean(out.loss)
        trainer = mean(4 * model(**row.inputs, num_items_in_batch=torch.tensor(steps[0].targets)).loss)
        labels_away = {k: v for k, v in row.inputs.items() if "labels" not in k}
        width = model(**labels_away).logits.shape[-1]
    model.train()
    return {
        "eval": abs(evaluated - loss) / loss,
        "trainer": abs(trainer - loss) / loss,
        "logits": float(out.logits is not None),
        "vocabulary": width,
    }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def random_plans() -> dict[str, Any]:
    """200 plans in a row with all levels mixed: resident bytes of every rank after 50 and after 200."""
    dice = random.Random(11)
    model = make_model(dtype=torch.float32)
    nsp.attach(nsp.shard(model, dist.device_mesh.init_device_mesh("cpu", (4,))), context(4, 8, 2))
    memory = {}
    for turn in range(1, 201):
        lengths = [dice.randrange(1, 120) for _ in range(dice.randrange(3, 9))]
        placements = []
        for sequence, tokens in enumerate(lengths):
            degree = (1, 2, 4)[sequence] if sequence < 3 else dice.choice((1, 2, 4))
            placements.append((sequence, tokens, dice.randrange(4 // degree) * degree, degree))
        steps, _ = make_steps(Case(4, tuple(lengths), 4))
        ordered = [steps.dataset.lengths[i] for i in steps.samples(0)]
        placements = [(s, ordered[s], first, degree) for s, _, first, degree in placements]
        steps.given = core().make_plan(4, 4, 4, 0, [placements], "given")
        for row in steps[0].rounds:
            model(**row.inputs).loss.backward()
        model.zero_grad()
        memory[turn] = resident_bytes()
    return {"at 50": gathered(memory[50]), "at 200": gathered(memory[200])}


CASES: dict[int, list[Callable[[], Any]]] = {
    2: [
        other_settings,
        other_seed,
        reading_fails,
        wrong_targets,
        no_model,
        unused_rows,
        part_of_the_job,
        dense_models,
    ],
    4: [epoch_and_resume, uniform_logits, narrow_types, checkpointing, evaluation_and_trainer, random_plans],
}


def cases(world: int) -> dict[str, Callable[[], Any]]:
    return {case.__name__: case for case in CASES.get(world, [])}
