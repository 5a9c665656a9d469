"""Making nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from facula import _C
from facula._tensor import _method
from facula.nested import _shapes
from facula.nested import _tensor as nested
from facula.nested._tensor import NestedTensor

Tensor = _C.Tensor
_ops = _C._operators


def _check_layout(layout: Any, caller: str) -> None:
    if layout is not None and layout is not _C.jagged:
        raise NotImplementedError(
            f"{caller}(): nested tensors have the layout facula.jagged, but got {layout}"
        )


def _joined(components: Sequence[Any], caller: str) -> tuple[Any, Any, int]:
    """Values, offsets and the ragged dimension of components that differ in one dimension."""
    if not components:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    first = components[0]
    for index, component in enumerate(components):
        if component.dim() != first.dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{component.dim()} for Tensor at index {index} and dimension {first.dim()} for "
                f"Tensor at index 0. {caller}(): When constructing a nested tensor, all tensors in "
                "list must have the same dim"
            )
    if first.dim() == 0:
        raise RuntimeError(
            f"{caller}(): all components must have the same number of dimensions, at least one, "
            f"but got {sorted({c.dim() for c in components})}"
        )
    if any(c.dtype is not first.dtype for c in components):
        raise RuntimeError(f"{caller}(): all components must have the same dtype")
    differ = [d for d in range(first.dim()) if len({c.shape[d] for c in components}) > 1]
    if len(differ) > 1:
        raise RuntimeError(
            f"{caller}(): components may differ in one dimension (layout facula.jagged), but they "
            f"differ in {differ}: {[tuple(c.shape) for c in components]}"
        )
    at = differ[0] if differ else 0
    sizes = _C.tensor([c.shape[at] for c in components], dtype=_C.int64)
    return _ops["cat"](list(components), at), nested.offsets_from(sizes), at + 1


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor with copies of the components in a list; it is a leaf.

    Args:
        tensor_list: tensors, or what :func:`facula.tensor` takes, that differ in one dimension.
        layout: ``facula.jagged``, which is also the default.
        requires_grad: whether gradients are wanted.

    Example::

        >>> nt = facula.nested.nested_tensor([[1., 2.], [3.]])
        >>> nt.values()
        tensor([1., 2., 3.])
    """
    _check_layout(layout, "nested_tensor")
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("nested_tensor(): Only list or tuples are supported")
    if not tensor_list and layout is None:
        return _empty(dtype, device, requires_grad)
    made = [_component(c, dtype, device).detach() for c in tensor_list]
    values, offsets, ragged = _joined(made, "nested_tensor")
    if len(made) == 1:
        values = values.clone()
    if requires_grad:
        values.requires_grad_()
    return NestedTensor.make(values, offsets, None, ragged)


def _empty(dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A nested tensor without components, for callers that did not ask for a layout."""
    values = _ops["zeros"](0, dtype=dtype, device=device, requires_grad=requires_grad)
    return NestedTensor.make(values, _ops["zeros"](1, dtype=_C.int64))


def _component(value: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return _C.tensor(value, dtype=dtype, device=device)
    if dtype is None and device is None:
        return value
    return value.to(dtype=dtype or value.dtype, device=device or value.device)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of the components in a list, or of the rows of a strided tensor.

    Unlike with :func:`nested_tensor`, gradients flow back to the components.

    Example::

        >>> x = facula.ones(2, requires_grad=True)
        >>> facula.nested.as_nested_tensor([x, x[:1]]).sum().backward()
        >>> x.grad
        tensor([2., 1.])
    """
    _check_layout(layout, "as_nested_tensor")
    if isinstance(ts, NestedTensor):
        return ts if dtype is None and device is None else ts.to(dtype=dtype, device=device)
    if isinstance(ts, Tensor):
        whole = _component(ts, dtype, device)
        if whole.dim() < 2:
            raise RuntimeError("as_nested_tensor(): a tensor of at least 2 dimensions is expected")
        sizes = _C.tensor([whole.shape[1]] * whole.shape[0], dtype=_C.int64)
        return NestedTensor.make(whole.flatten(0, 1), nested.offsets_from(sizes))
    if not isinstance(ts, (list, tuple)) or not all(isinstance(t, Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected a Tensor or a list of Tensors")
    if not ts and layout is None:
        return _empty(dtype, device, False)
    made = [_component(t, dtype, device) for t in ts]
    values, offsets, ragged = _joined(made, "as_nested_tensor")
    return NestedTensor.make(values, offsets, None, ragged)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A nested tensor over ``values``, in which all components lie one after the other.

    Args:
        values: the components along one dimension.
        offsets: where each component begins, and the end: (batch + 1).
        lengths: the lengths of the components: (batch); without offsets there are no holes.
        jagged_dim: the outer dimension that differs, 1 by default.
        min_seqlen, max_seqlen: accepted; lengths are read from the offsets.

    Example::

        >>> nt = facula.nested.nested_tensor_from_jagged(
        ...     facula.arange(5), facula.tensor([0, 2, 5])
        ... )
        >>> [c.tolist() for c in nt.unbind()]
        [[0, 1], [2, 3, 4]]
    """
    ragged = 1 if jagged_dim is None else jagged_dim
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = nested.offsets_from(lengths), None
    check_jagged(values, offsets, lengths, ragged, "nested_tensor_from_jagged()")
    return NestedTensor.make(values, offsets, lengths, ragged)


def check_jagged(
    values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged: int, caller: str
) -> None:
    """Raises when these are no parts of a nested tensor; on meta, numbers are not looked at."""
    if not 1 <= ragged <= values.dim():
        raise ValueError(f"{caller}: jagged_dim must be in [1, {values.dim()}], but got {ragged}")
    for name, t in (("offsets", offsets), ("lengths", lengths)):
        if t is not None and (t.dim() != 1 or t.dtype not in (_C.int32, _C.int64)):
            raise RuntimeError(
                f"{caller}: {name} must be a vector of integers, but got {t.dtype} of shape "
                f"{tuple(t.shape)}"
            )
    if offsets.is_meta or (lengths is not None and lengths.is_meta):
        return
    total = values.shape[ragged - 1]
    at = offsets.tolist()
    if not at or at[0] != 0 or at[-1] > total or any(a > b for a, b in pairwise(at)):
        raise RuntimeError(
            f"{caller}: offsets must rise from 0 to at most {total}, the size of the values, but "
            f"got {at[:8]}{'...' if len(at) > 8 else ''}"
        )
    if lengths is None:
        if at[-1] != total:
            raise RuntimeError(
                f"{caller}: the last offset is {at[-1]}, but the values have {total} entries"
            )
        return
    sizes = lengths.tolist()
    room = [b - a for a, b in pairwise(at)]
    if len(sizes) == len(at):  # starts, without an end
        room.append(total - at[-1])
    if len(sizes) != len(room) or any(s < 0 or s > r for s, r in zip(sizes, room, strict=True)):
        raise RuntimeError(f"{caller}: lengths {sizes[:8]} do not fit between the offsets")


def to_padded_tensor(
    input: Tensor,
    padding: float,
    output_size: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The components of a nested tensor in a strided one, filled up with ``padding``.

    Example::

        >>> nt = facula.nested.nested_tensor([[1., 2.], [3.]])
        >>> facula.nested.to_padded_tensor(nt, 0.)
        tensor([[1., 2.],
                [3., 0.]])
    """
    if not isinstance(input, NestedTensor):
        raise RuntimeError("to_padded_tensor(): expected a nested tensor")
    found = _shapes.to_padded(input, padding, output_size)
    return found if out is None else out.resize_(found.shape).copy_(found)


def _padded(self: Any, padding: float, output_size: Any = None) -> Tensor:
    """The components of a nested tensor in a strided one; see ``nested.to_padded_tensor``."""
    return to_padded_tensor(self, padding, output_size)


_method(_padded, "to_padded_tensor")


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = _C.jagged) -> Tensor:
    """A nested tensor whose component i is ``tensor[i, start[i] : start[i] + length[i]]``.

    Components are views of ``tensor``; there may be holes between them.

    Example::

        >>> x = facula.arange(6).reshape(2, 3)
        >>> nt = facula.nested.narrow(x, 1, 0, facula.tensor([1, 3]))
        >>> [c.tolist() for c in nt.unbind()]
        [[0], [3, 4, 5]]
    """
    _check_layout(layout, "narrow")
    if tensor.layout is not _C.strided or tensor.dim() < 2:
        raise RuntimeError("narrow(): a strided tensor of at least 2 dimensions is expected")
    if dim not in (1, 1 - tensor.dim()):
        raise RuntimeError(f"narrow(): only dim=1 is supported for jagged layout, but got {dim}")
    batch, size = tensor.shape[:2]

    def vector(value: Any, name: str) -> Any:
        if isinstance(value, int):
            return _ops["full"]((batch,), value, dtype=_C.int64)
        if value.dim() == 0:
            return value.to(_C.int64).expand(batch)
        if tuple(value.shape) != (batch,):
            raise RuntimeError(f"narrow(): {name} must have one number for each of {batch} rows")
        return value.to(_C.int64)

    starts, sizes = vector(start, "start"), vector(length, "length")
    if bool(((starts < 0) | (sizes < 0) | (starts + sizes > size)).any()):
        raise RuntimeError(f"narrow(): start and start + length must be within [0, {size}]")
    begin = _ops["arange"](batch) * size + starts
    values = tensor.flatten(0, 1)
    # Offsets say where components begin; the last one is the end of the last component.
    last = (begin[-1:] + sizes[-1:]) if batch else begin.new_zeros(1)
    return NestedTensor.make(values, _ops["cat"]([begin, last]), sizes.contiguous())


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A nested tensor whose component i has the elements of ``tensor[i]`` where ``mask`` is true.

    Example::

        >>> x = facula.tensor([[1, 2], [3, 4]])
        >>> [c.tolist() for c in facula.nested.masked_select(x, x != 3).unbind()]
        [[1, 2], [4]]
    """
    if tensor.dim() != 2:
        raise RuntimeError(
            f"masked_select(): a matrix is expected, but the shape is {tuple(tensor.shape)}"
        )
    whole = mask.expand(tensor.shape)
    return NestedTensor.make(tensor.masked_select(whole), nested.offsets_from(whole.sum(1)))
