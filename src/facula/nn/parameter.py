"""Tensors that a module owns: parameters, buffers, and both before their shape is known."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import facula
from facula import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """``isinstance(t, Parameter)`` also for tensors of other subclasses that were marked as one."""

    def __instancecheck__(self, instance: Any) -> bool:
        if self is Parameter and getattr(instance, "_is_param", False):
            return isinstance(instance, Tensor)
        return super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a :class:`Module` registers when it is assigned as an attribute.

    Example::

        >>> facula.nn.Parameter(facula.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = facula.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A subclass of its own keeps its type and is marked.
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(t).__name__} was found instead."
            )
        t._is_param = True
        return t

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass  # __new__ has made the tensor, also that of a subclass with arguments of its own

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(
            self.data.clone(memory_format=facula.preserve_format), self.requires_grad
        )
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        hooks: OrderedDict[Any, Any] = OrderedDict()
        state = dict(self.__dict__)
        if not state:
            return _rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)

    __torch_function__ = facula._C._disabled_torch_function_impl


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Any, requires_grad: bool, backward_hooks: Any, state: dict[str, Any]
) -> Parameter:
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(self, instance: Any) -> bool:
        if self is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a :class:`Module` registers as a buffer when it is assigned as an attribute.

    Example::

        >>> m = facula.nn.Module()
        >>> m.mean = facula.nn.Buffer(facula.zeros(2))
        >>> list(m.state_dict())
        ['mean']
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = facula.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    __torch_function__ = facula._C._disabled_torch_function_impl


# ---- before the shape is known

_READABLE = {"is_cuda", "is_cpu", "device", "dtype", "requires_grad", "persistent"}
_READABLE |= {"_is_param", "_is_buffer"}


class UninitializedTensorMixin:
    """A tensor of a lazy module: it has a dtype and a device, but no shape until the first call."""

    cls_to_become: type

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass  # __new__ has made the tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives the tensor its shape; the memory is not initialised.

        Example::

            >>> w = facula.nn.UninitializedParameter()
            >>> w.materialize((2, 3))
            >>> w.shape
            facula.Size([2, 3])
        """
        tensor: Any = self
        device = tensor.data.device if device is None else device
        dtype = tensor.data.dtype if dtype is None else dtype
        tensor.data = facula.empty(shape, device=device, dtype=dtype)
        tensor.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        tensor: Any = self
        return type(self), (tensor.requires_grad,)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        allowed = {"__get__", "__set__", "__delete__", "detach", "to", "float", "double", "half"}
        allowed |= {"size", "copy_", "is_complex", "is_floating_point", "get_device", "__hash__"}
        allowed |= {"char", "short", "int", "long"}
        allowed |= {
            "bfloat16",
            "cuda",
            "cpu",
            "requires_grad_",
            "_has_compatible_shallow_copy_type",
        }
        if name in allowed or name in _READABLE:
            # Of parameters plain tensors come back, of buffers buffers, which may be materialized.
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            "Attempted to use an uninitialized parameter in "
            f"{name or func}. This error happens when you are using a `LazyModule` or explicitly "
            f"manipulating `facula.nn.parameter.{cls.__name__}` objects. When using LazyModules "
            "Call `forward` with a dummy batch to initialize the parameters before calling "
            "functions on them."
        )


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet.

    Example::

        >>> facula.nn.parameter.is_lazy(facula.nn.UninitializedParameter())
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module, before its shape is known.

    Example::

        >>> facula.nn.UninitializedParameter()
        <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        data = facula.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module, before its shape is known.

    Example::

        >>> facula.nn.UninitializedBuffer()
        <UninitializedBuffer>
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        data = facula.empty(0, device=device, dtype=dtype)
        result = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The keyword arguments of a module that its tensors are made with: device, dtype and
    memory_format. Others are refused; those in ``kwargs["factory_kwargs"]`` are added.

    Example::

        >>> facula.nn.factory_kwargs({"dtype": facula.float64})
        {'dtype': facula.float64}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    if unexpected := kwargs.keys() - (simple | {"factory_kwargs"}):
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(simple):
        if name in kwargs:
            if name in result:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            result[name] = kwargs[name]
    return result
