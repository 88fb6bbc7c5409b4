"""Bytes of tensors that are alive, on any device: what operators return, until its storage is dropped. What a
kernel allocates inside itself is not seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocations(TorchDispatchMode):
    """Counts while it is entered. `given`: tensors that are there already."""

    def __init__(self, given: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.live = self.most = 0
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet(t.untyped_storage() for t in given)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        self.most = max(self.most, self.live)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        if storage in self._seen:
            return
        self._seen.add(storage)
        self.live += storage.nbytes()
        weakref.finalize(storage, self._drop, storage.nbytes())

    def _drop(self, count: int) -> None:
        self.live -= count
