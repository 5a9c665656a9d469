"""Methods of ``Tensor`` from before dtypes and untyped storages, put on the C++ type."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula._tensor import _method

_ops = _C._operators


@_method
def new(self, *args, device=None):  # type: ignore[no-untyped-def]
    """A tensor with this tensor's dtype and device: of given sizes, or of given data.

    Example::

        >>> facula.ones(2).new([1, 2])
        tensor([1., 2.])
    """
    from facula.storage import TypedStorage

    where = self.device if device is None else _C.device(device)
    if where.type != self.device.type:
        raise TypeError(
            f"new(): expected a device of type {self.device.type}, but got {where.type}"
        )
    given: Any = args[0] if args else ()
    if len(args) <= 1 and isinstance(given, _C.Tensor):
        if given.dtype != self.dtype or given.device != where:
            raise TypeError(
                f"new(): expected a Tensor of {self.dtype} on {where}, but got {given.dtype} on "
                f"{given.device}"
            )
        return given.detach()
    if isinstance(given, (_C.UntypedStorage, TypedStorage)):
        return _ops["empty"](0, dtype=self.dtype, device=where).set_(*args)
    if isinstance(given, _C.Size) or all(type(a) is int for a in args):
        sizes = given if isinstance(given, _C.Size) else args or (0,)
        return _ops["empty"](sizes, dtype=self.dtype, device=where)
    if len(args) > 1 or isinstance(given, (int, float, complex)):
        raise TypeError(
            "new(): data must be a sequence, and sizes must be ints (got "
            f"{', '.join(type(a).__name__ for a in args)})"
        )
    return _C.tensor(given, dtype=self.dtype, device=where)


@_method
def storage(self):  # type: ignore[no-untyped-def]
    """The memory under this tensor as elements of its dtype; see ``untyped_storage``.

    Example::

        >>> facula.tensor([[1., 2.]]).T.storage().tolist()
        [1.0, 2.0]
    """
    from facula.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@_method
def storage_type(self):  # type: ignore[no-untyped-def]
    """The class of this tensor's storage."""
    import facula
    from facula import _legacy_types

    return getattr(facula, _legacy_types.storage_name(self.dtype))


@_method
def resize_as_(self, the_template, *, memory_format=None):  # type: ignore[no-untyped-def]
    """Changes the shape to that of another tensor, growing the storage when needed.

    Example::

        >>> facula.ones(4).resize_as_(facula.zeros(2, 2))
        tensor([[1., 1.],
                [1., 1.]])
    """
    if memory_format is None:
        return self.resize_(the_template.shape)
    if memory_format is _C.preserve_format:
        memory_format = _suggested_format(the_template)
    return self.resize_(the_template.shape, memory_format=memory_format)


def _suggested_format(tensor: Any) -> Any:
    """The memory format that a tensor has."""
    for rank, memory_format in ((4, _C.channels_last), (5, _C.channels_last_3d)):
        if (
            tensor.dim() == rank
            and tensor.is_contiguous(memory_format=memory_format)
            and not tensor.is_contiguous()
        ):
            return memory_format
    return _C.contiguous_format


@_method
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):  # type: ignore[no-untyped-def]
    """The elements without immediate repetitions; see ``facula.unique_consecutive``."""
    import facula

    return facula.unique_consecutive(self, return_inverse, return_counts, dim)
