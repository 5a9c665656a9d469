"""Tensors that carry their mask: operators leave masked elements out, and say so in the result.

Data and mask are plain tensors; history is that of the data. Elements that the mask leaves out are
set to zero before anything differentiable is computed from them, so that no NaN of theirs reaches
a gradient.
"""

from __future__ import annotations

from typing import Any

from facula import _C

Tensor = _C.Tensor


class MaskedTensor(Tensor):  # type: ignore[misc]
    """A tensor with a mask, True for the elements that count; see :func:`masked_tensor`.

    Args:
        data: the elements.
        mask: a boolean tensor of the same shape.
        requires_grad: whether gradients of ``data`` are wanted.

    Example::

        >>> x = facula.tensor([1., 2., 3.])
        >>> t = facula.masked.MaskedTensor(x, x > 1)
        >>> t.sum().to_tensor(0), t.get_mask()
        (tensor(5.), tensor([False,  True,  True]))
    """

    _data: Any
    _mask: Any

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        _check(data, mask)
        return MaskedTensor.make(data.detach().clone().requires_grad_(requires_grad), mask.clone())

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @staticmethod
    def make(data: Any, mask: Any) -> Any:
        """A masked tensor over ``data``, with its history; nothing is copied."""
        self = Tensor._make_subclass(MaskedTensor, data.detach(), False)
        self.__dict__["_data"], self.__dict__["_mask"] = data, mask
        return self

    @classmethod
    def __torch_function__(  # type: ignore[no-untyped-def]
        cls, func, types, args=(), kwargs=None
    ):
        from facula.masked._tensor_functions import dispatch

        return dispatch(func, args, kwargs or {})

    def get_data(self) -> Any:
        """The elements; those that the mask leaves out may be anything.

        Example::

            >>> x = facula.tensor([1., 2.])
            >>> facula.masked.masked_tensor(x, x > 1).get_data()
            tensor([1., 2.])
        """
        return self.__dict__["_data"]

    def get_mask(self) -> Any:
        """True for the elements that count.

        Example::

            >>> x = facula.tensor([1., 2.])
            >>> facula.masked.masked_tensor(x, x > 1).get_mask()
            tensor([False,  True])
        """
        return self.__dict__["_mask"]

    def to_tensor(self, value: Any) -> Any:
        """A plain tensor with ``value`` for the elements that the mask leaves out.

        Example::

            >>> x = facula.tensor([1., 2.])
            >>> facula.masked.masked_tensor(x, x > 1).to_tensor(-1)
            tensor([-1.,  2.])
        """
        data, mask = self.__dict__["_data"], self.__dict__["_mask"]
        return data.masked_fill(~mask, value)

    @property
    def data(self) -> Any:  # type: ignore[override]
        """The same memory without history."""
        return MaskedTensor.make(self.__dict__["_data"].data, self.__dict__["_mask"])

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        values, kept = self.__dict__["_data"].tolist(), self.__dict__["_mask"].tolist()
        if not isinstance(kept, list):
            return f"MaskedTensor({_number(values) if kept else '--'}, {kept})"
        return f"MaskedTensor(\n{_rows(values, kept, 1)}\n)"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor.make, (self.__dict__["_data"], self.__dict__["_mask"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            data = self.__dict__["_data"]
            copied = data.detach().clone().requires_grad_(data.requires_grad)
            memo[id(self)] = MaskedTensor.make(copied, self.__dict__["_mask"].clone())
        return memo[id(self)]

    def __len__(self) -> int:
        return len(self.__dict__["_data"])

    def __iter__(self) -> Any:
        return iter(self.unbind(0))


MaskedTensor.__module__ = "facula.masked"


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor, got {type(value).__name__}")
        if isinstance(value, MaskedTensor):
            raise TypeError(f"{name} must not be a MaskedTensor")
    if mask.dtype is not _C.bool:
        raise TypeError(f"mask must have dtype bool, got {mask.dtype}")
    if data.layout is not _C.strided or mask.layout is not _C.strided:
        raise TypeError(f"data and mask must be strided, got {data.layout} and {mask.layout}")
    if data.shape != mask.shape:
        raise ValueError(
            "data.size() must equal mask.size(), but they are "
            f"{tuple(data.shape)} and {tuple(mask.shape)}"
        )


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(values: Any, kept: Any, depth: int) -> str:
    """Brackets, two columns further in for each dimension; the last one in a line."""
    indent = "  " * depth
    if not kept or not isinstance(kept[0], list):
        shown = (_number(v) if k else f"{'--':>8}" for v, k in zip(values, kept, strict=True))
        return f"{indent}[{', '.join(shown)}]"
    inner = (_rows(v, k, depth + 1) for v, k in zip(values, kept, strict=True))
    return f"{indent}[\n" + ",\n".join(inner) + f"\n{indent}]"


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A tensor that carries its mask; operators leave out what the mask leaves out.

    ``data`` and ``mask`` are copied and have no history; see :func:`as_masked_tensor`.

    Args:
        data: the elements.
        mask: a boolean tensor of the same shape, True for the elements that count.
        requires_grad: whether gradients are wanted; ``grad`` has the same mask.

    Example::

        >>> x = facula.tensor([[1., 2.], [3., 4.]])
        >>> facula.masked.masked_tensor(x, x > 1).sum(1)
        MaskedTensor(
          [  2.0000,   7.0000]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A tensor that carries its mask, with the history of ``data``: gradients flow back to it.

    Args:
        data: the elements.
        mask: a boolean tensor of the same shape, True for the elements that count.

    Example::

        >>> x = facula.tensor([1., 2.], requires_grad=True)
        >>> facula.masked.as_masked_tensor(x, x > 1).square().sum().to_tensor(0).backward()
        >>> x.grad
        tensor([0., 4.])
    """
    _check(data, mask)
    return MaskedTensor.make(data, mask)  # type: ignore[no-any-return]


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a tensor that carries its mask.

    Args:
        obj: the object.

    Example::

        >>> facula.masked.is_masked_tensor(facula.ones(1))
        False
    """
    return isinstance(obj, MaskedTensor)
