"""Bytes of tensors that are alive, on any device: of all that operators take and return, until its storage is
dropped or emptied (as FSDP2 empties whole parameters). What a kernel keeps inside itself is not seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocations(TorchDispatchMode):
    """Looks after every operator while it is entered. `given`: tensors that do not count."""

    def __init__(self, given: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()
        self.most = 0
        self._given: weakref.WeakSet[Any] = weakref.WeakSet(t.untyped_storage() for t in given)
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def live(self) -> int:
        return sum(storage.nbytes() for storage in self._seen)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves((result, args, kwargs)):
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                storage = tensor.untyped_storage()
                if storage not in self._given:
                    self._seen.add(storage)
        self.most = max(self.most, self.live)
        return result
