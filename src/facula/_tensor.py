"""The methods of ``Tensor`` that are written in Python. They are put on the C++ type."""

from __future__ import annotations

from types import ModuleType
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
        if _C._has_torch_function((self,)):
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
    if gradient is None and inputs is None and not _C.transforms.current_level():
        keep = create_graph if retain_graph is None else retain_graph
        _C._backward((self,), (None,), keep, create_graph, (), True, True)
        return
    from facula import autograd

    autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _hook_dict(found: Callable[[Any], Any], make: Callable[[Any], Any], doc: str) -> property:
    """The dict of a tensor's hooks, None before there is one; what is set takes its place."""

    def get(self: Any) -> Any:
        return found(self)

    def set_hooks(self: Any, hooks: Any) -> None:
        if hooks is None and found(self) is None:
            return
        kept = make(self)
        if kept is not hooks:
            kept.clear()
            kept.update(hooks or {})

    return property(get, set_hooks, doc=doc)


Tensor._backward_hooks = _hook_dict(
    _C._found_tensor_hooks, _C._tensor_hooks, "What register_hook was given, by number."
)
Tensor._post_accumulate_grad_hooks = _hook_dict(
    _C._found_accumulate_hooks,
    _C._accumulate_hooks,
    "What register_post_accumulate_grad_hook was given, by number.",
)


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
def lu(self, pivot=True, get_infos=False):  # type: ignore[no-untyped-def]
    """The LU factors and pivots; see ``facula.lu``.

    Example::

        >>> facula.tensor([[1., 2.], [2., 8.]]).lu()[1]
        tensor([2, 2], dtype=facula.int32)
    """
    import facula

    return facula.lu(self, pivot, get_infos)


@_method
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):  # type: ignore[no-untyped-def]
    """The p-norm of the elements, or along dimensions.

    Example::

        >>> facula.tensor([3., 4.]).norm()
        tensor(5.)
    """
    import facula

    return facula.norm(self, p, dim, keepdim, dtype=dtype)


@_method
def where(self, condition, other):  # type: ignore[no-untyped-def]
    """Elements of this tensor where ``condition`` is true, of ``other`` elsewhere.

    Example::

        >>> facula.tensor([1., 2.]).where(facula.tensor([True, False]), 0.)
        tensor([1., 0.])
    """
    return _ops["where"](condition, self, other)


# Under the names that Python 2 called.
for _name, _operator in (
    ("__div__", Tensor.__truediv__),
    ("__idiv__", Tensor.__itruediv__),
    ("__rdiv__", Tensor.__rtruediv__),
    ("__long__", Tensor.__int__),
    ("__nonzero__", Tensor.__bool__),
):
    setattr(Tensor, _name, _operator)


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


@_method
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):  # type: ignore[no-untyped-def]
    """The elements without immediate repetitions; see ``facula.unique_consecutive``."""
    import facula

    return facula.unique_consecutive(self, return_inverse, return_counts, dim)


def _type(self, dtype=None, non_blocking=False):  # type: ignore[no-untyped-def]
    """The name of the tensor's type, or the tensor converted to another dtype.

    Example::

        >>> facula.ones(1).type()
        'facula.FloatTensor'
    """
    from facula import _legacy_types

    if dtype is None:
        return _legacy_types.name_of(self)
    return _legacy_types.convert(self, dtype)


_method(_type, "type")


@_method
def type_as(self, other):  # type: ignore[no-untyped-def]
    """This tensor in the dtype and on the device of another."""
    return self.to(other)


@_method
def new_tensor(  # type: ignore[no-untyped-def]
    self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
):
    """A copy of ``data`` as a tensor with this tensor's dtype and device.

    Example::

        >>> facula.ones(1).new_tensor([1, 2])
        tensor([1., 2.])
    """
    if layout not in (None, _C.strided):
        raise NotImplementedError(f"new_tensor(): layout {layout} is not supported")
    return _C.tensor(
        data,
        dtype=dtype or self.dtype,
        device=device or self.device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


@_method
def new(self, *args, device=None, size=None, other=None, storage=None):  # type: ignore[no-untyped-def]
    """A tensor with this tensor's dtype and device: of given sizes, of given data, or over the
    memory of another tensor or a storage.

    Example::

        >>> facula.ones(2).new([1, 2])
        tensor([1., 2.])
    """
    where = self.device if device is None else _C.device(device)
    if where.type != self.device.type:
        raise TypeError(
            f"new(): expected a device of type {self.device.type}, but got {where.type}"
        )
    named = [value for value in (size, other, storage) if value is not None]
    if named:
        if args or len(named) > 1:
            raise TypeError("new(): give one of size, data, other and storage")
        if other is not None and not isinstance(other, _C.Tensor):
            raise TypeError(f"new(): other must be a Tensor, not {type(other).__name__}")
        args = (_C.Size(size),) if size is not None else (named[0],)
    given: Any = args[0] if args else ()
    if len(args) <= 1 and isinstance(given, _C.Tensor):
        if given.dtype != self.dtype or given.device != where:
            raise TypeError(
                f"new(): expected a Tensor of {self.dtype} on {where}, but got {given.dtype} on "
                f"{given.device}"
            )
        return given.detach()
    if isinstance(getattr(given, "_untyped_storage", given), _C.UntypedStorage):
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
def resize(self, *sizes):  # type: ignore[no-untyped-def]
    """A tensor of other sizes over the same elements; use ``reshape``, which this calls."""
    return self.reshape(*sizes)


@_method
def resize_as(self, tensor):  # type: ignore[no-untyped-def]
    """``reshape`` to the shape of another tensor."""
    return self.reshape(tensor.shape)


def _refuse_elementwise_python(self: Any, name: str) -> None:
    if not self.is_cpu:
        raise TypeError(f"{name} is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on a tensor that requires grad. Use x.detach().{name}()"
        )


def _write_elements(self: Any, values: list[Any]) -> Any:
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


@_method
def apply_(self, callable):  # type: ignore[no-untyped-def]
    """Replaces every element by what a Python function makes of it; slow.

    Example::

        >>> facula.tensor([1., 2.]).apply_(lambda v: v * 10)
        tensor([10., 20.])
    """
    _refuse_elementwise_python(self, "apply_")
    return _write_elements(self, [callable(v) for v in self.reshape(-1).tolist()])


@_method
def map_(self, tensor, callable):  # type: ignore[no-untyped-def]
    """Replaces every element by ``callable(element, element of the other tensor)``; slow.

    Example::

        >>> facula.tensor([1., 2.]).map_(facula.tensor([3., 4.]), lambda a, b: a * b)
        tensor([3., 8.])
    """
    _refuse_elementwise_python(self, "map_")
    other = tensor.expand(self.shape).reshape(-1).tolist()
    pairs = zip(self.reshape(-1).tolist(), other, strict=True)
    return _write_elements(self, [callable(a, b) for a, b in pairs])


@_method
def map2_(self, x, y, callable):  # type: ignore[no-untyped-def]
    """Replaces every element by a function of it and of two other tensors' elements; slow."""
    _refuse_elementwise_python(self, "map2_")
    others = [t.expand(self.shape).reshape(-1).tolist() for t in (x, y)]
    triples = zip(self.reshape(-1).tolist(), *others, strict=True)
    return _write_elements(self, [callable(a, b, c) for a, b, c in triples])


@_method
def storage(self):  # type: ignore[no-untyped-def]
    """The memory under this tensor as numbers of its dtype; see ``untyped_storage``.

    Example::

        >>> facula.ones(2).storage().tolist()
        [1.0, 1.0]
    """
    from facula.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@_method
def storage_type(self):  # type: ignore[no-untyped-def]
    """The class that stands for storages of this tensor's dtype."""
    from facula.storage import NAME_OF_DTYPE, NAMED, TypedStorage

    return NAMED[NAME_OF_DTYPE[self.dtype]] if self.dtype in NAME_OF_DTYPE else TypedStorage


@_method
def is_same_size(self, other):  # type: ignore[no-untyped-def]
    """True when the shapes are equal."""
    if not isinstance(other, Tensor):
        raise TypeError(f"is_same_size(): other must be Tensor, not {type(other).__name__}")
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
def to_device(self, device, /, *, stream=None):  # type: ignore[no-untyped-def]
    """The tensor on a device, under the array API standard's name.

    Example::

        >>> facula.ones(1).to_device("cpu")
        tensor([1.])
    """
    if stream is not None:
        raise ValueError("to_device(): a stream cannot be given; use facula.cuda.stream()")
    return self.to(device)


@_method
def __array_namespace__(self, *, api_version=None):  # type: ignore[no-untyped-def]
    """The functions of the array API standard, for programs that take arrays of any library.

    Example::

        >>> facula.ones(1).__array_namespace__().__array_api_version__
        '2025.12'
    """
    from facula import array_api

    known = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
    if api_version not in (None, *known):
        listed = ", ".join(known)
        raise ValueError(f"the versions of the array API are {listed}; got {api_version!r}")
    return array_api


@_method
def share_memory_(self):  # type: ignore[no-untyped-def]
    """Moves the memory to where processes that are forked from now on see and write it, too.

    Example::

        >>> facula.ones(2).share_memory_().is_shared()
        True
    """
    self.untyped_storage().share_memory_()
    return self


@_method
def is_shared(self):  # type: ignore[no-untyped-def]
    """True after ``share_memory_``, and on CUDA devices."""
    return self.untyped_storage().is_shared()


@_method
def is_pinned(self, device=None):  # type: ignore[no-untyped-def]
    """True for page-locked host memory, from which copies to a device need not wait."""
    return _C._cuda_is_pinned(self)


@_method
def pin_memory(self, device=None):  # type: ignore[no-untyped-def]
    """This host tensor in page-locked memory; a copy unless it is there already."""
    return _C._cuda_pin(self)


@_method
def record_stream(self, s):  # type: ignore[no-untyped-def]
    """Says that work on a stream uses this CUDA tensor.

    Its memory is not used again, after the tensor is gone, before the work that is then in that
    stream is done. The stream that the tensor was made on needs no such word.
    """
    _C._cuda_record_stream(self, s.cuda_stream)


@_method
def is_distributed(self):  # type: ignore[no-untyped-def]
    """False: a tensor's memory is on one device."""
    return False


@_method
def const_data_ptr(self):  # type: ignore[no-untyped-def]
    """The address of the first element, for reading."""
    return self.data_ptr()


@_method
def dim_order(self, ambiguity_check=False):  # type: ignore[no-untyped-def]
    """The dimensions in the order in which they lie in memory, the outermost first.

    Args:
        ambiguity_check: whether to raise when several orders describe the memory; a list of memory
            formats names those that may.

    Example::

        >>> facula.ones(2, 3).t().dim_order()
        (1, 0)
    """
    order = list(range(self.dim()))
    for i in range(1, len(order)):
        for j in range(i, 0, -1):  # a dimension without steps stays where it is
            outer, inner = self.stride(order[j - 1]), self.stride(order[j])
            if not outer or not inner or outer >= inner:
                break
            order[j - 1], order[j] = order[j], order[j - 1]
    if ambiguity_check is not False and ambiguity_check is not True:
        for format in ambiguity_check:
            if not isinstance(format, _C.memory_format):
                raise TypeError(
                    "the ambiguity_check argument must be a bool or a list of memory formats"
                )
        matching = [f for f in ambiguity_check if self.is_contiguous(memory_format=f)]
        ambiguous = len(matching) != 1
    else:
        steps = [self.stride(d) for d in range(self.dim())]
        ambiguous = any(self.size(d) == 1 for d in order) or len(set(steps)) < len(steps)
        ambiguous = ambiguous and ambiguity_check
    if ambiguous:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one")
    return tuple(order)


@_method
def module_load(self, other, assign=False):  # type: ignore[no-untyped-def]
    """What replaces this parameter or buffer when a module loads ``other`` for it.

    Args:
        other: the tensor of the checkpoint.
        assign: whether it is taken as it is instead of being copied into this one.
    """
    return other.detach() if assign else self.copy_(other).detach()


@_method
def is_nonzero(self):  # type: ignore[no-untyped-def]
    """The truth value of a tensor with one element."""
    return bool(self)


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
    from facula.utils.hooks import warn_if_has_hooks

    if type(self) is not Tensor and _C._has_torch_function((self,)):
        return _C._handle_torch_function(Tensor.__reduce_ex__, (self,), (self, protocol), {})
    warn_if_has_hooks(self)
    if self.is_meta:
        return _pickling.rebuild_meta, (
            type(self),
            self.dtype,
            tuple(self.shape),
            self.stride(),
            self.requires_grad,
        )
    state = dict(self.__dict__) or None
    if self.layout is not _C.strided:
        from facula.sparse._methods import parts_of

        parts, number, coalesced = parts_of(self)
        return _pickling.rebuild_sparse, (
            type(self),
            parts,
            tuple(self.shape),
            number,
            coalesced,
            self.requires_grad,
            state,
        )
    source = self.detach().resolve_conj().resolve_neg()
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


@_method
def __deepcopy__(self, memo):  # type: ignore[no-untyped-def]
    """A copy with memory of its own, for ``copy.deepcopy``."""
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
        elif self.is_conj() or self.is_neg() or self.layout is not _C.strided:
            out = self.detach().clone()
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
    if not all(issubclass(cls, t) for t in types) or _is_of_pytorch(func):
        return NotImplemented
    before = _C._set_torch_function_enabled(False)
    try:
        result = func(*args, **(kwargs or {}))
        if func in _keeps_type():
            return result
        return _as_class(result, cls)
    finally:
        _C._set_torch_function_enabled(before)


def _is_of_pytorch(func: Any) -> bool:
    """Whether a function of PyTorch asks, which would do so again and again."""
    homes = (func, getattr(func, "__self__", None), getattr(func, "__objclass__", None))
    names = (getattr(home, "__module__", None) for home in homes)
    modules = (home.__name__ for home in homes if isinstance(home, ModuleType))
    return any(str(name).partition(".")[0] == "torch" for name in (*names, *modules))


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


@_method
def __format__(self, format_spec):  # type: ignore[no-untyped-def]
    """The number in a tensor of no dimensions, formatted; the text of other tensors."""
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(format_spec)
    return object.__format__(self, format_spec)


@_method
def __dir__(self):  # type: ignore[no-untyped-def]
    """The names of the attributes."""
    return sorted(set(dir(type(self))) | set(self.__dict__))


def _install() -> None:
    Tensor.__reduce_ex__ = _reduce_ex
    Tensor.__torch_function__ = classmethod(_torch_function)
    Tensor.__array_priority__ = 1000


_install()

# A number that tells tensors apart while they live: each has one Python object at most.
Tensor._cdata = property(id)


def _volatile(self: Any) -> bool:
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


Tensor.volatile = property(
    _volatile,
    doc="""Always False: what it was for is ``facula.no_grad``.

    Example::

        >>> with facula.no_grad():
        ...     y = facula.ones(1, requires_grad=True) * 2
        >>> y.requires_grad
        False
    """,
)
