"""Global batches as planned steps: item k is a pure function of lengths, targets, seed, epoch and k.

Every rank computes the same batch and the same plan without communicating, and reads only its own slices of
it. Row tensors are (1, T): one batch entry, T tokens of this rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from nsp._native import core
from nsp.batches import batches, check_targets, kept_lengths
from nsp.budgets import check_fits, find_budgets
from nsp.context import Context
from nsp.loss import IGNORE
from nsp.planning import Plan, fitting, plan
from nsp.row_plan import RowPlan
from nsp.step import Row, Step


class Dataset(Protocol):
    """Samples by index. Optional: `targets`, labelled tokens of each sample; `masked`, True when labels may
    be -100.

    `read(i, begin, end)` gives tokens [begin, end) of sample i (a sequence or tensor of ints), or (tokens,
    labels) with labels[t] the label *of* token t (not shifted), -100 where masked. The first token of a
    sample is never a target.
    """

    @property
    def lengths(self) -> Sequence[int]: ...

    def read(self, i: int, begin: int, end: int) -> Any: ...


class PlannedSteps:
    """Map-style: `steps[k]` is global batch k of the epoch, planned, with this rank's rows.

    The order is a seeded permutation; a batch takes samples until the next would pass `tokens_per_step`. A
    sample longer than that, or than sp_max x token budget, follows the context's over-length policy.
    `drop_last` drops a last batch that the end of the data cut short. ValueError: a bad argument or dataset.
    """

    def __init__(
        self,
        dataset: Dataset,
        context: Context,
        tokens_per_step: int,
        *,
        seed: int = 0,
        epoch: int = 0,
        drop_last: bool = False,
        planner: str | None = None,
    ) -> None:
        settings = context.settings
        if tokens_per_step < 1:
            raise ValueError(
                f"tokens_per_step: {tokens_per_step} is not positive; give the tokens of one optimizer step"
            )
        self.dataset, self.context, self.tokens_per_step = dataset, context, tokens_per_step
        self.seed, self.drop_last = seed, drop_last
        self.planner = planner or settings.planner
        budgets = find_budgets(context, tokens_per_step, dataset.lengths)
        self.token_budget, self.byte_budget = budgets.token_budget, budgets.byte_budget
        self.memory = context.step_memory() if context.capacity is not None and context.attached else None
        check_targets(getattr(dataset, "targets", None), dataset.lengths)
        self._kept = kept_lengths(dataset.lengths, self.limit, settings.over_length, quiet=context.rank > 0)
        self.set_epoch(epoch)

    @property
    def limit(self) -> int:
        """Longest sample that a step can hold, tokens."""
        return min(self.tokens_per_step, self.context.settings.sp_max * self.token_budget)

    def set_epoch(self, epoch: int) -> None:
        """Another order of the same samples."""
        self.epoch = epoch
        order = core().permutation(len(self._kept), self.seed, epoch)
        self._batches = list(batches(order, self._kept, self.tokens_per_step, self.drop_last))

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, k: int) -> Step:
        """RuntimeError: no plan fits this batch."""
        return self.step(k, self.plan(k))

    def step(self, k: int, made: Plan) -> Step:
        """Batch k by this plan of it: reads this rank's slices. RuntimeError: it does not fit the devices."""
        if self.memory is not None and self.context.capacity is not None:
            check_fits(self.memory, self.context.capacity, k, made)
        samples = self.samples(k)
        schedule = self.context.schedule(made)
        targets = self._targets(samples)
        rows = []
        for index in range(made.num_rounds):
            row = RowPlan(self.context, schedule, index, targets)
            rows.append(self._row(made, samples, index, row))
        return Step(k, tuple(rows), made, samples, targets)

    def samples(self, k: int) -> tuple[int, ...]:
        """Dataset indices of batch k, in the plan's order."""
        if not 0 <= k < len(self):
            raise IndexError(f"step: {k} is not in 0 ... {len(self) - 1}")
        return self._batches[k]

    def lengths(self, k: int) -> list[int]:
        """Tokens of batch k's samples, after truncation."""
        return [self._kept[i] for i in self.samples(k)]

    def plan(self, k: int, planner: str | None = None) -> Plan:
        """The plan of batch k, by another planner if named. RuntimeError: nothing fits."""
        request = self.request
        if planner is not None:
            request["planner"] = planner
            if planner != "nsp":  # the others have backends of their own
                request["backends"] = ("ulysses",)
        return fitting(k, plan(self.lengths(k), **request))

    @property
    def request(self) -> dict[str, Any]:
        """The keywords of `nsp.plan` for every batch."""
        settings = self.context.settings
        return {
            "world": settings.world,
            "sp_max": settings.sp_max,
            "ranks_per_host": settings.ranks_per_host,
            "token_budget": self.token_budget,
            "planner": self.planner,
            "model": settings.model,
            "profile": settings.profile,
            "byte_budget": self.byte_budget,
            "host_budget": settings.host_budget,
            "backends": settings.backends,
        }

    def fingerprint(self, step: Step) -> dict[str, Any]:
        """What all ranks must agree on before they run a step."""
        samples = hashlib.blake2b(repr(step.samples).encode(), digest_size=8).hexdigest()
        return {
            "step": step.index,
            "plan hash": step.plan.hash,
            "samples hash": samples,
            "seed": self.seed,
            "epoch": self.epoch,
            "targets": step.targets,
        }

    def _targets(self, samples: tuple[int, ...]) -> int | None:
        stored = getattr(self.dataset, "targets", None)
        lengths = self.dataset.lengths
        if stored is None:
            return None if getattr(self.dataset, "masked", False) else sum(self._kept[i] - 1 for i in samples)
        cut = any(self._kept[i] != lengths[i] and stored[i] != lengths[i] - 1 for i in samples)
        if cut:  # how many of a masked sample's labels were cut off is known to its readers only
            return None
        return sum(int(stored[i]) if self._kept[i] == lengths[i] else self._kept[i] - 1 for i in samples)

    def _row(self, made: Plan, samples: tuple[int, ...], index: int, row: RowPlan) -> Row:
        segments = core().rank_row(made.json, index, self.context.rank)
        pieces = [self._segment(samples, *segment) for segment in segments]
        tokens, positions, labels = (torch.cat(column)[None] for column in zip(*pieces, strict=True))
        inputs = {
            "input_ids": tokens,
            "position_ids": positions,
            "labels": labels,
            "shift_labels": labels,
            "use_cache": False,
            "nsp_plan": row,
        }
        return Row(inputs, sum(end - begin for sequence, begin, end in segments if sequence >= 0))

    def _segment(
        self, samples: tuple[int, ...], sequence: int, begin: int, end: int
    ) -> tuple[torch.Tensor, ...]:
        if sequence < 0:  # the dummy token of a rank that owns nothing
            return (
                torch.zeros(1, dtype=torch.long),
                torch.zeros(1, dtype=torch.long),
                torch.full((1,), IGNORE),
            )
        sample = samples[sequence]
        last = min(end + 1, self._kept[sample])  # one more than it owns: the label of its last token
        tokens, labels = self._read(sample, begin, last)
        shifted = torch.full((end - begin,), IGNORE)
        shifted[: last - begin - 1] = labels[1:]
        return tokens[: end - begin], torch.arange(begin, end), shifted

    def _read(self, sample: int, begin: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        got = self.dataset.read(sample, begin, end)
        pair = isinstance(got, tuple) and len(got) == 2
        if (
            pair
            and not getattr(self.dataset, "masked", False)
            and getattr(self.dataset, "targets", None) is None
        ):
            raise ValueError(
                "dataset: read gives labels but neither targets nor masked is set; set masked = True"
            )
        tokens, labels = (torch.as_tensor(part, dtype=torch.long) for part in (got if pair else (got, got)))
        if tokens.shape != (end - begin,) or labels.shape != tokens.shape:
            raise ValueError(
                f"dataset: read({sample}, {begin}, {end}) gave {tuple(tokens.shape)} tokens and "
                f"{tuple(labels.shape)} "
                f"labels; give {end - begin} of each"
            )
        return tokens, labels
