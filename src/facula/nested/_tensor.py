"""The class of jagged tensors: a batch of components that differ in one dimension.

Outer dimension 0 is the batch, ``_ragged_idx`` the dimension that differs. All components lie one
after the other in ``_values``, whose dimension d - 1 is the outer dimension d; component i has the
entries from ``offsets[i]`` to ``offsets[i + 1]`` of the ragged dimension, or as many of them as
``lengths[i]`` says. History is that of ``_values``, so gradients need nothing more.
"""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.nested._symbols import NestedInt, RaggedSize, symbol_of

Tensor = _C.Tensor
_ops = _C._operators


class NestedTensor(Tensor):
    """A batch of tensors that differ in one dimension; see :func:`facula.nested.nested_tensor`."""

    _values: Any
    _offsets: Any
    _lengths: Any
    _ragged_idx: int

    @staticmethod
    def make(values: Any, offsets: Any, lengths: Any = None, ragged_idx: int = 1) -> Any:
        """A nested tensor over ``values``; nothing is copied."""
        self = Tensor._make_subclass(NestedTensor, values.detach(), False)
        own = self.__dict__
        own["_values"], own["_offsets"], own["_lengths"] = values, offsets, lengths
        own["_ragged_idx"] = ragged_idx
        return self

    def like(self, values: Any, ragged_idx: int | None = None) -> Any:
        """Other values with the components of this tensor."""
        return NestedTensor.make(
            values,
            self.__dict__["_offsets"],
            self.__dict__["_lengths"],
            self.__dict__["_ragged_idx"] if ragged_idx is None else ragged_idx,
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        from facula.nested import _functions

        return _functions.dispatch(func, args, kwargs or {})

    is_nested = True

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same memory without history."""
        return self.like(self.__dict__["_values"].data)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        own = self.__dict__
        parts = [f"size=({', '.join(map(repr, shape_of(self)))})", f"offsets={own['_offsets']}"]
        values = own["_values"]
        if values.grad_fn is not None:
            parts.append(f"grad_fn={values.grad_fn!r}")
        elif values.requires_grad:
            parts.append("requires_grad=True")
        parts.append(f"contiguous={is_contiguous(self)}")
        return f"NestedTensor({', '.join(parts)})"

    __str__ = __repr__

    def values(self) -> Any:
        """All components one after the other."""
        return self.__dict__["_values"]

    def offsets(self) -> Any:
        """Where each component begins in ``values()``, and the end."""
        return self.__dict__["_offsets"]

    def lengths(self) -> Any:
        """The lengths of the components, or None when they leave no holes in ``values()``."""
        return self.__dict__["_lengths"]

    def __reduce_ex__(self, protocol: Any) -> Any:
        own = self.__dict__
        if own["_values"].grad_fn is not None:
            raise RuntimeError("Only leaf tensors can be pickled; use .detach() first")
        return rebuilt, (
            own["_values"],
            own["_offsets"],
            own["_lengths"],
            own["_ragged_idx"],
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            values = self.__dict__["_values"]
            copied = values.detach().clone().requires_grad_(values.requires_grad)
            memo[id(self)] = self.like(copied)
        return memo[id(self)]

    def __len__(self) -> int:
        return batch_size(self)

    def __iter__(self) -> Any:
        return iter(unbind(self))

    def __bool__(self) -> bool:
        raise RuntimeError("the truth value of a nested tensor is ambiguous")


NestedTensor.__module__ = "facula.nested"


def rebuilt(values: Any, offsets: Any, lengths: Any, ragged_idx: int) -> Any:
    """What pickles call."""
    return NestedTensor.make(values, offsets, lengths, ragged_idx)


# ---- what is known of one


def parts(nt: Any) -> tuple[Any, Any, Any, int]:
    """Values, offsets, lengths and the ragged dimension."""
    if not isinstance(nt, NestedTensor):
        raise RuntimeError(f"expected a nested tensor, but got a {type(nt).__name__}")
    own = nt.__dict__
    return own["_values"], own["_offsets"], own["_lengths"], own["_ragged_idx"]


def batch_size(nt: Any) -> int:
    """How many components there are."""
    return nt.__dict__["_offsets"].shape[0] - 1


def shape_of(nt: Any) -> RaggedSize:
    """The sizes, with a symbol for the ragged one."""
    values, offsets, _, ragged = parts(nt)
    sizes = [batch_size(nt), *values.shape]
    sizes[ragged] = symbol_of(offsets)
    return RaggedSize(sizes)


def is_contiguous(nt: Any) -> bool:
    """Whether components follow each other without holes, in the order of the dimensions."""
    values, _, lengths, _ = parts(nt)
    return lengths is None and values.is_contiguous()


def lengths_of(nt: Any) -> list[int]:
    """The sizes of the components in the ragged dimension."""
    _, offsets, lengths, _ = parts(nt)
    found: list[int] = (offsets.diff() if lengths is None else lengths).tolist()
    return found


def compact(nt: Any) -> Any:
    """The same components without holes between them."""
    values, offsets, lengths, ragged = parts(nt)
    if lengths is None:
        return nt
    starts, sizes = offsets.tolist(), lengths.tolist()
    kept = [_ops["arange"](start, start + size) for start, size in zip(starts, sizes, strict=False)]
    index = _ops["cat"](kept) if kept else _ops["arange"](0)
    return NestedTensor.make(
        values.index_select(ragged - 1, index), offsets_from(lengths), None, ragged
    )


def offsets_from(lengths: Any) -> Any:
    """Where components of these lengths begin, and the end."""
    whole = lengths.to(_C.int64)
    return _ops["cat"]([whole.new_zeros(1), whole.cumsum(0)])


def unbind(nt: Any) -> tuple[Any, ...]:
    """The components, as views."""
    values, offsets, _, ragged = parts(nt)
    return tuple(
        values.narrow(ragged - 1, start, size)
        for start, size in zip(offsets.tolist(), lengths_of(nt), strict=False)
    )


def component_of_each(nt: Any) -> Any:
    """For every entry of the ragged dimension of a tensor without holes, its component."""
    _, offsets, _, _ = parts(nt)
    return _ops["arange"](batch_size(nt)).repeat_interleave(offsets.diff())


def padded(nt: Any, padding: float, length: int | None = None) -> Any:
    """(batch, ..., longest, ...) with ``padding`` where components are shorter."""
    whole = compact(nt)
    values, offsets, _, ragged = parts(whole)
    sizes = lengths_of(whole)
    longest = max(sizes, default=0) if length is None else length
    packed = values.movedim(ragged - 1, 0)
    total = packed.shape[0]
    within = _ops["arange"](total) - offsets[:-1].repeat_interleave(offsets.diff())
    place = component_of_each(whole) * longest + within
    flat = packed.new_full((len(sizes) * longest, *packed.shape[1:]), padding)
    flat = flat.index_copy(0, place, packed)
    out = flat.reshape(len(sizes), longest, *packed.shape[1:])
    return out.movedim(1, ragged)


def from_padded(dense: Any, nt: Any) -> Any:
    """The way back: the entries of ``dense`` that the components of ``nt`` have, without holes."""
    whole = compact(nt)
    _, offsets, _, ragged = parts(whole)
    rows = dense.movedim(ragged, 1)
    longest = rows.shape[1]
    total = int(offsets[-1])
    within = _ops["arange"](total) - offsets[:-1].repeat_interleave(offsets.diff())
    place = component_of_each(whole) * longest + within
    packed = rows.reshape(rows.shape[0] * longest, *rows.shape[2:]).index_select(0, place)
    return NestedTensor.make(packed.movedim(0, ragged - 1), offsets, None, ragged)


def is_symbol(size: Any) -> bool:
    """Whether a size is that of a ragged dimension."""
    return isinstance(size, NestedInt)
