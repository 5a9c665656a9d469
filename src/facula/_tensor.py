"""The methods of ``Tensor`` that are written in Python. They are put on the C++ type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from facula import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensor = _C.Tensor
_ops = _C._operators


def _method(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Adds a function as a method of Tensor; subclasses with overrides see it as a call."""
    from functools import wraps

    name = name or function.__name__

    @wraps(function)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not Tensor and _C._has_torch_function((self,)):
            return _C._handle_torch_function(checked, (self,), (self, *args), kwargs)
        return function(self, *args, **kwargs)

    checked.__name__ = name
    checked.__qualname__ = f"Tensor.{name}"
    checked.__module__ = "facula"
    setattr(Tensor, name, checked)
    return checked


@_method
def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):  # type: ignore[no-untyped-def]
    """Computes the gradients of this tensor with respect to the leaves of its graph.

    Example::

        >>> x = facula.tensor([1., 2.], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    from facula import autograd

    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@_method
def register_hook(self, hook):  # type: ignore[no-untyped-def]
    """Calls ``hook(grad)`` whenever a gradient of this tensor is computed.

    The hook may return a tensor that replaces the gradient. Returns a handle with ``remove()``.

    Example::

        >>> x = facula.tensor([1.], requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).sum().backward()
        >>> x.grad
        tensor([20.])
    """
    if not self.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient; "
            "call requires_grad_() on it first"
        )
    from facula.utils.hooks import RemovableHandle

    hooks = _C._tensor_hooks(self)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


@_method
def register_post_accumulate_grad_hook(self, hook):  # type: ignore[no-untyped-def]
    """Calls ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``.

    Example::

        >>> x = facula.tensor([1.], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
        >>> (x * 2).sum().backward()
        tensor([2.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    from facula.utils.hooks import RemovableHandle

    hooks = _C._accumulate_hooks(self)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


@_method
def split(self, split_size, dim=0):  # type: ignore[no-untyped-def]
    """Pieces along a dimension: of one size, or of the sizes in a list.

    Example::

        >>> facula.arange(5).split(2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size, (list, tuple)):
        return _ops["split_with_sizes"](self, split_size, dim)
    return _C._operators["_split"](self, int(split_size), dim)


@_method
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):  # type: ignore[no-untyped-def]
    """The p-norm of the elements, or along dimensions.

    Example::

        >>> facula.tensor([3., 4.]).norm()
        tensor(5.)
    """
    return _ops["_vector_norm"](self, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@_method
def where(self, condition, other):  # type: ignore[no-untyped-def]
    """Elements of this tensor where ``condition`` is true, of ``other`` elsewhere.

    Example::

        >>> facula.tensor([1., 2.]).where(facula.tensor([True, False]), 0.)
        tensor([1., 0.])
    """
    return _ops["where"](condition, self, other)


@_method
def __rdiv__(self, other):  # type: ignore[no-untyped-def]
    """``other / self``, under the name that Python 2 called.

    Example::

        >>> facula.tensor([2., 4.]).__rdiv__(1)
        tensor([0.5000, 0.2500])
    """
    return _ops["div"](other, self)


@_method
def nonzero(self, *, as_tuple=False):  # type: ignore[no-untyped-def]
    """Where the elements that are not zero are: one row each, or a tensor per dimension.

    Example::

        >>> facula.tensor([0, 5, 6]).nonzero()
        tensor([[1],
                [2]])
    """
    found = _ops["nonzero"](self)
    if not as_tuple:
        return found
    if self.dim() == 0:
        return (_ops["nonzero"](self.reshape(1)).select(1, 0),)
    return found.unbind(1)


@_method
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):  # type: ignore[no-untyped-def]
    """The distinct elements; see ``facula.unique``."""
    import facula

    return facula.unique(self, sorted, return_inverse, return_counts, dim)


def _type(self, dtype=None, non_blocking=False):  # type: ignore[no-untyped-def]
    """The name of the tensor's type, or the tensor converted to another dtype.

    Example::

        >>> facula.ones(1).type()
        'facula.FloatTensor'
    """
    from facula import _legacy_types

    if dtype is None:
        return _legacy_types.name_of(self)
    return self.to(_legacy_types.dtype_of(dtype))


_method(_type, "type")


@_method
def type_as(self, other):  # type: ignore[no-untyped-def]
    """This tensor in the dtype and on the device of another."""
    return self.to(other)


@_method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):  # type: ignore[no-untyped-def]
    """A copy of ``data`` as a tensor with this tensor's dtype and device.

    Example::

        >>> facula.ones(1).new_tensor([1, 2])
        tensor([1., 2.])
    """
    return _C.tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


@_method
def is_same_size(self, other):  # type: ignore[no-untyped-def]
    """True when the shapes are equal."""
    return self.shape == other.shape


@_method
def equal(self, other):  # type: ignore[no-untyped-def]
    """True when shape and all elements are equal."""
    import facula

    return facula.equal(self, other)


@_method
def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):  # type: ignore[no-untyped-def]
    """True when all elements are close."""
    return bool(_ops["isclose"](self, other, rtol, atol, equal_nan).all())


@_method
def share_memory_(self):  # type: ignore[no-untyped-def]
    """Returns the tensor: host memory of this process."""
    return self


@_method
def is_pinned(self):  # type: ignore[no-untyped-def]
    """True for page-locked host memory."""
    return False


@_method
def is_nonzero(self):  # type: ignore[no-untyped-def]
    """The truth value of a tensor with one element."""
    return bool(self)


@_method
def is_conj(self):  # type: ignore[no-untyped-def]
    """False: conjugates are computed at once."""
    return False


@_method
def is_neg(self):  # type: ignore[no-untyped-def]
    """False: negatives are computed at once."""
    return False


@_method
def resolve_conj(self):  # type: ignore[no-untyped-def]
    """The tensor itself: conjugates are computed at once."""
    return self


@_method
def resolve_neg(self):  # type: ignore[no-untyped-def]
    """The tensor itself: negatives are computed at once."""
    return self


@_method
def __reversed__(self):  # type: ignore[no-untyped-def]
    """The slices of the first dimension in reverse order.

    Example::

        >>> reversed(facula.tensor([1, 2, 3]))
        tensor([3, 2, 1])
    """
    return self if self.dim() == 0 else self.flip(0)


def _reduce_ex(self: Any, protocol: int) -> Any:
    from facula import _pickling

    if type(self) is not Tensor and _C._has_torch_function((self,)):
        return _C._handle_torch_function(Tensor.__reduce_ex__, (self,), (self, protocol), {})
    if self.is_meta:
        return _pickling.rebuild_meta, (
            type(self),
            self.dtype,
            tuple(self.shape),
            self.stride(),
            self.requires_grad,
        )
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only leaf tensors (created explicitly by the user) can be pickled; use .detach() first"
        )
    source = self.detach().cpu()
    state = dict(self.__dict__) or None
    return _pickling.rebuild_tensor, (
        type(self),
        source.untyped_storage(),
        self.dtype,
        source.storage_offset(),
        tuple(self.shape),
        source.stride(),
        self.requires_grad,
        state,
    )


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if type(self) is not Tensor and _C._has_torch_function((self,)):
        return _C._handle_torch_function(Tensor.__deepcopy__, (self,), (self, memo), {})
    if id(self) in memo:
        return memo[id(self)]
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment. Use .detach().clone() for a copy without history."
        )
    import copy

    with _no_grad():
        if self.is_meta:
            out = _ops["empty_strided"](
                tuple(self.shape), self.stride(), dtype=self.dtype, device="meta"
            )
        else:
            storage = copy.deepcopy(self.untyped_storage(), memo)
            out = _ops["empty"](0, dtype=self.dtype, device=self.device).set_(
                storage, self.storage_offset(), tuple(self.shape), self.stride()
            )
        if type(self) is not Tensor:
            out = Tensor._make_subclass(type(self), out, False)
    memo[id(self)] = out
    if self.requires_grad:
        out.requires_grad_()
    if self.grad is not None:
        out.grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        out.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return out


class _no_grad:
    """no_grad without importing autograd."""

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self.before)


def _torch_function(
    cls: type, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
) -> Any:
    """What a subclass does by default: compute as a plain tensor, return the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    before = _C._set_torch_function_enabled(False)
    try:
        result = func(*args, **(kwargs or {}))
        if func in _keeps_type():
            return result
        return _as_class(result, cls)
    finally:
        _C._set_torch_function_enabled(before)


def _as_class(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_as_class(r, cls) for r in result]
        return type(result)(items)
    return result


_plain: set[Any] = set()


def _keeps_type() -> set[Any]:
    """Functions whose results stay as they are for subclasses: properties about autograd."""
    if not _plain:
        for name in ("grad", "_grad", "grad_fn", "_base", "device", "dtype", "shape"):
            _plain.add(Tensor.__dict__[name].__get__)
    return _plain


def _format(self: Any, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _dir(self: Any) -> list[str]:
    return sorted(set(dir(type(self))) | set(self.__dict__))


def _install() -> None:
    Tensor.__reduce_ex__ = _reduce_ex
    Tensor.__deepcopy__ = _deepcopy
    Tensor.__torch_function__ = classmethod(_torch_function)
    Tensor.__format__ = _format
    Tensor.__dir__ = _dir
    Tensor.__array_priority__ = 1000


_install()
