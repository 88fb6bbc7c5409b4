"""What a training step holds on a rank, by formula: model state, layer inputs, one layer's working set, saved
attention, buffers. The most over a handful of moments, each linear in the rank's rows:

    loss       all layers keep what they keep; chunks of logits; the head's gradients
    layer      backward at the end of a layer, which has just been recomputed: its saved tensors are whole
    experts    its MLP done: the MLP's weight gradients are there, its rows nearly gone
    attention  backward inside attention: exchange buffers and the kernel's workspace
    reduce     the layer done: all its weight gradients, and a copy that FSDP sends
    optimizer  no rows; one temporary of the parameters' size

each of the last layer, the one before and the first: inputs go and gradients come on the way. Bytes of a row:
nsp/sim/row_bytes.h, eager layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsp.loss import ROWS
from nsp.model_bytes import ModelBytes

# Of a rank's rows, in the order of _core.rank_rows.
COUNTS = (
    "tokens",
    "read",
    "exchanged",
    "exchanged_heads",
    "launched",
    "saved",
    "saved_exchanged",
    "saved_heads",
    "saved_qkv",
    "offloaded",
)
Counts = Sequence[int]
ROW_TENSORS = 24  # ids, positions and labels of a row


@dataclass(frozen=True)
class Buffers:
    """Bytes of attention's buffers: for a row of the largest launch (workspace), for an exchanged row
    (exchange), and outside torch's allocator for an exchanged row (arena); in all: communicators (outside,
    too) and workspaces of libraries.
    """

    workspace: int = 0
    exchange: int = 0
    arena: int = 0
    communicators: int = 0
    libraries: int = 0


@dataclass(frozen=True)
class StepMemory:
    """What predictions need of a model on its world. `row`: _core.row_bytes."""

    model: ModelBytes
    shape: Mapping[str, Any]
    row: Mapping[str, int]
    buffers: Buffers
    checkpointed: int  # layers


@dataclass(frozen=True)
class Bytes:
    """A sum that is linear in a rank's counts."""

    fixed: int
    of: tuple[int, ...]

    def at(self, counts: Counts) -> int:
        return self.fixed + sum(a * b for a, b in zip(self.of, counts, strict=True))


@dataclass(frozen=True)
class Moment:
    name: str
    kinds: Mapping[str, Bytes]

    def sum(self) -> Bytes:
        return _sum(self.kinds.values())


def _sum(parts: Iterable[Bytes]) -> Bytes:
    found = list(parts)
    columns = zip(*(part.of for part in found), strict=True)
    return Bytes(sum(part.fixed for part in found), tuple(sum(column) for column in columns))


def _bytes(fixed: int = 0, **of: int) -> Bytes:
    return Bytes(fixed, tuple(of.get(name, 0) for name in COUNTS))


def moments(memory: StepMemory, gradients_stay: bool) -> Iterator[Moment]:
    """At which a step may hold most. gradients_stay: those of earlier rounds are there from the start."""
    layers, checkpointed = memory.shape["layers"], memory.checkpointed
    yield _loss(memory, gradients_stay)
    yield _optimizer(memory)
    # Layers without checkpointing hold most when the last one begins its backward.
    where = {layers - 1, layers - 2, 0} if checkpointed == layers else {layers - 1}
    for layer in sorted(index for index in where if index >= 0):
        yield from _backward(memory, layer, gradients_stay)


def _fixed(memory: StepMemory, gradients: int, whole: int) -> dict[str, Bytes]:
    """What every moment has. `whole`: parameters and gradients of whole layers."""
    model, shape = memory.model, memory.shape
    rotary = 2 * shape["head_dim"] * shape["bytes_per_value"]
    return {
        "parameters and optimizer": _bytes(model.parameters + model.optimizer),
        "gradients": _bytes(gradients),
        "whole layers": _bytes(whole),
        "row tensors": _bytes(tokens=ROW_TENSORS + rotary),
        "libraries": _bytes(memory.buffers.libraries),
        "arena": _bytes(exchanged=memory.buffers.arena),
        "communicators": _bytes(memory.buffers.communicators),
    }


def _kept(memory: StepMemory, layers: int) -> dict[str, Bytes]:
    """What the first `layers` layers keep from forward to backward. Of offloaded output the device has one
    layer's: the last one's after forward, in backward that of the layer before.
    """
    row = memory.row
    plain = max(0, layers - memory.checkpointed)
    checkpointed = layers - plain
    return {
        "layer inputs": _bytes(tokens=checkpointed * row["input"]),
        "layers that keep all": _scaled(_saved_tensors(memory, marks=False), plain, row["kept_input"]),
        "saved attention output": _bytes(
            saved=checkpointed * row["saved"],
            saved_qkv=checkpointed * row["read"],
            offloaded=checkpointed * row["offloaded"],
        ),
        "offloaded output on its way": _bytes(
            offloaded=(row["saved"] - row["offloaded"]) if checkpointed > 1 else 0
        ),
    }


def _saved_tensors(memory: StepMemory, marks: bool = True) -> Bytes:
    """Of one layer: its own rows, and in head layout those of the levels. Recomputed by marks, what is saved
    comes to head layout only in attention's backward.
    """
    row, less = memory.row, -1 if marks else 0
    return _bytes(
        tokens=row["kept"],
        read=row["read"],
        exchanged=row["exchanged"],
        exchanged_heads=row["kv_head"],
        saved_exchanged=less * row["exchanged"],
        saved_heads=less * row["kv_head"],
    )


def _scaled(part: Bytes, times: int, more_a_token: int) -> Bytes:
    tokens, *rest = (times * count for count in part.of)
    return Bytes(times * part.fixed, (tokens + times * more_a_token, *rest))


def _loss(memory: StepMemory, gradients_stay: bool) -> Moment:
    model, shape, row = memory.model, memory.shape, memory.row
    value, table = shape["bytes_per_value"], shape["vocabulary"] * shape["hidden"]
    wide = max(4, value)
    narrow = value if value < wide else 0
    chunk = ROWS * shape["vocabulary"] * (2 * wide + narrow) + table * value
    return Moment(
        "loss",
        {
            **_fixed(memory, model.gradients if gradients_stay else 0, model.root),
            **_kept(memory, shape["layers"]),
            "loss": _bytes(table * wide + chunk, tokens=row["norm"] + 2 * row["input"]),
        },
    )


def _optimizer(memory: StepMemory) -> Moment:
    model = memory.model
    return Moment("optimizer", _fixed(memory, model.gradients, model.parameters))


def _backward(memory: StepMemory, layer: int, gradients_stay: bool) -> Iterator[Moment]:
    model, row, last = memory.model, memory.row, memory.shape["layers"] - 1
    ready = model.gradients if gradients_stay else (last - layer) * model.layer_gradients
    sending = model.scatter if layer < last else 0
    whole = model.root + model.root_weights + (2 if layer > 0 else 1) * model.layer
    kept = _kept(memory, layer + 1)
    # The working set is a recomputed layer's own; one that kept all is counted there already.
    recomputed = layer + 1 <= memory.checkpointed
    own = _saved_tensors(memory) if recomputed else _bytes()
    name = "working set"

    def moment(what: str, fixed: int, *parts: Bytes) -> Moment:
        kinds = {**_fixed(memory, ready, whole + fixed), **kept, name: _sum(parts)}
        return Moment(f"backward of layer {layer}, {what}", kinds)

    first = 0 if memory.shape["experts"] else model.mlp // 3  # a dense MLP's last weight has its gradient
    yield moment("its end", sending + first, own, _bytes(tokens=row["first"]))
    yield moment("experts", sending + model.mlp, own, _bytes(tokens=row["first"] - row["late"]))
    yield moment("attention", sending + model.weights, *_at_attention(memory, recomputed))
    yield moment("reduction", model.weights + model.scatter, _bytes(tokens=row["input"]))


def _at_attention(memory: StepMemory, recomputed: bool) -> tuple[Bytes, ...]:
    row, buffers = memory.row, memory.buffers
    held = _bytes(
        tokens=row["attention"],
        read=row["read"],
        exchanged=row["exchanged"],
        exchanged_heads=row["kv_head"],
        saved_exchanged=-row["exchanged"],
        saved_heads=-row["kv_head"],
    )
    gradients = _bytes(tokens=row["at_attention"], launched=buffers.workspace, exchanged=buffers.exchange)
    return (held, gradients) if recomputed else (gradients,)
