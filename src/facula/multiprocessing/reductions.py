"""How tensors and storages are pickled for another process: as descriptors of shared memory."""

from __future__ import annotations

import os
import threading
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any
from weakref import WeakValueDictionary

from facula import _C
from facula.storage import TypedStorage, UntypedStorage

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]

# Memory that this process has mapped, by its file: what arrives twice is one storage.
_mapped: WeakValueDictionary[tuple[int, int], UntypedStorage] = WeakValueDictionary()
_lock = threading.Lock()


def _file_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _rebuild_storage(wrapped: Any, nbytes: int) -> UntypedStorage:
    descriptor = wrapped.detach()
    with _lock:
        file = _file_of(descriptor)
        found = _mapped.get(file)
        if found is not None and found.nbytes() == nbytes:
            os.close(descriptor)
            return found
        storage = _C._map_shared(descriptor, nbytes)
        _mapped[file] = storage
        return storage


def _rebuild_empty(nbytes: int, device: str) -> UntypedStorage:
    return UntypedStorage(nbytes, device=device)


def reduce_storage(storage: UntypedStorage) -> Any:
    """Moves a storage to shared memory and describes it."""
    kind = storage.device.type
    if kind == "cuda":
        raise RuntimeError(
            "tensors on CUDA devices cannot be sent to another process: send tensor.cpu()"
        )
    if kind == "meta" or storage.nbytes() == 0:
        return _rebuild_empty, (storage.nbytes(), str(storage.device))
    if _C._shared_descriptor(storage) < 0:
        if storage.resizable():
            storage.share_memory_()
        else:  # an array's memory, or a file's: others get a copy
            storage = storage.clone()
            storage.share_memory_()
    descriptor = _C._shared_descriptor(storage)
    with _lock:
        _mapped[_file_of(descriptor)] = storage
    return _rebuild_storage, (reduction.DupFd(descriptor), storage.nbytes())


def _rebuild_tensor(
    cls: type, storage: UntypedStorage, dtype: Any, geometry: Any, requires_grad: bool, state: Any
) -> Any:
    t = _C._operators["empty"](0, dtype=dtype, device=storage.device).set_(storage, *geometry)
    if cls is not _C.Tensor:
        t = _C.Tensor._make_subclass(cls, t, False)
    if requires_grad:
        t.requires_grad_()
    if state:
        t.__dict__.update(state)
    return t


def reduce_tensor(tensor: Any) -> Any:
    """Describes a tensor, a view of its storage."""
    if tensor.grad_fn is not None or (tensor.requires_grad and not tensor.is_leaf):
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor.layout is not _C.strided:
        return tensor.__reduce_ex__(2)  # its parts are tensors again
    plain = tensor.detach().resolve_conj().resolve_neg()
    geometry = (plain.storage_offset(), tuple(plain.shape), plain.stride())
    return _rebuild_tensor, (
        type(tensor),
        plain.untyped_storage(),
        plain.dtype,
        geometry,
        tensor.requires_grad,
        dict(tensor.__dict__) or None,
    )


def _rebuild_typed(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _reduce_typed(storage: TypedStorage) -> Any:
    return _rebuild_typed, (storage.untyped(), storage.dtype)


def init_reductions() -> None:
    """Tells ``multiprocessing`` about tensors and storages."""
    from facula.nn.parameter import Parameter

    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, _reduce_typed)
    ForkingPickler.register(_C.Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
