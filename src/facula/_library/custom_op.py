"""``custom_op``: an operator from a Python function."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import facula
from facula._library import namespaces
from facula._library.inference import infer_schema
from facula._library.record import DEVICES, Record
from facula._library.schema import parse_schema
from facula._library.tags import as_tags

_QUALIFIED = re.compile(r"\w+::\w+(\.\w+)?$")
definitions: weakref.WeakValueDictionary[str, CustomOpDef] = weakref.WeakValueDictionary()


def check_qualified(name: str) -> None:
    if not isinstance(name, str) or not _QUALIFIED.match(name):
        raise ValueError(f"expected a name of the form 'namespace::name', got {name!r}")


def device_list(device_types: str | Sequence[str] | None) -> list[str | None]:
    if device_types is None:
        return [None]
    kinds = [device_types] if isinstance(device_types, str) else list(device_types)
    for kind in kinds:
        if kind not in DEVICES:
            raise ValueError(f"device_types should be of {DEVICES}, got {kind!r}")
    return list(kinds)


class CustomOpDef:
    """What :func:`custom_op` returns: call it, or register more for it."""

    def __init__(self, qualified_name: str, schema: str, function: Callable[..., Any]) -> None:
        self._qualname = qualified_name
        self._init_fn = function
        self.__name__ = qualified_name.partition("::")[2]
        self.__doc__ = function.__doc__
        if qualified_name in definitions:  # a notebook's cell that runs again
            namespaces.remove(definitions[qualified_name]._record)
        self._record = Record(parse_schema(qualified_name + schema), strict=True)
        namespaces.add(self._record)
        definitions[qualified_name] = self
        namespace, _, name = qualified_name.partition("::")
        self._opoverload = getattr(getattr(namespaces.ops, namespace), name).default

    @property
    def _name(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Registers what runs on tensors of a device type; None is any device.

        Example::

            >>> @facula.library.custom_op("docs::halve", mutates_args=(), device_types="cpu")
            ... def halve(x: facula.Tensor) -> facula.Tensor:
            ...     return x / 2
            >>> @halve.register_kernel("cuda")
            ... def _(x):
            ...     return x * 0.5
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for kind in device_list(device_types):
                self._record.kernels[kind] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Registers what runs on the meta device: it makes empty tensors of the right shapes.

        Example::

            >>> @facula.library.custom_op("docs::pairs", mutates_args=())
            ... def pairs(x: facula.Tensor) -> facula.Tensor:
            ...     return facula.stack([x, x])
            >>> @pairs.register_fake
            ... def _(x):
            ...     return x.new_empty((2, *x.shape))
            >>> pairs(facula.empty(3, device="meta")).shape
            facula.Size([2, 3])
        """
        self._record.kernels["meta"] = fn
        return fn

    def register_torch_dispatch(
        self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Registers ``fn(cls, func, types, args, kwargs)`` for a subclass of Tensor."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self._record.dispatch[torch_dispatch_class] = fn
            return fn

        return register if fn is None else register(fn)

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Registers the derivative.

        Args:
            backward: ``backward(ctx, *grads)`` returns a gradient, or None, for each argument.
            setup_context: ``setup_context(ctx, inputs, output)`` saves what backward needs; with
                keyword-only arguments also ``keyword_only_inputs``.

        Example::

            >>> @facula.library.custom_op("docs::cube", mutates_args=())
            ... def cube(x: facula.Tensor) -> facula.Tensor:
            ...     return x ** 3
            >>> def setup_context(ctx, inputs, output):
            ...     ctx.save_for_backward(*inputs)
            >>> def backward(ctx, grad):
            ...     return grad * 3 * ctx.saved_tensors[0] ** 2
            >>> cube.register_autograd(backward, setup_context=setup_context)
            >>> x = facula.tensor(2., requires_grad=True)
            >>> cube(x).backward()
            >>> x.grad
            tensor(12.)
        """
        set_autograd(self._record, backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Registers the batching rule ``func(info, in_dims, *args)``, which returns the result and
        the dimension of the batch in it. Without a rule the operator runs once for each element."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._record.vmap = func
            return func

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: facula.dtype) -> None:
        """Registers the dtype that floating arguments are cast to under autocast."""
        set_autocast(self._record, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Inside, the kernel of a device type is off (or on again), and the general one runs."""
        disabled = self._record.disabled
        before = device_type in disabled
        (disabled.discard if enabled else disabled.add)(device_type)
        try:
            yield
        finally:
            (disabled.add if before else disabled.discard)(device_type)


def set_autograd(record: Record, backward: Any, setup_context: Any) -> None:
    if record.schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {record.label} with "
            f"schema {record.schema}. Please create a functional operator and register an autograd "
            "formula for that."
        )
    record.backward, record.setup_context = backward, setup_context
    record.changed()


def set_autocast(record: Record, device_type: str, cast_inputs: Any) -> None:
    if device_type not in ("cpu", "cuda"):
        raise ValueError(
            f"register_autocast: device_type should be cpu or cuda, got {device_type!r}"
        )
    if not isinstance(cast_inputs, facula.dtype) or not cast_inputs.is_floating_point:
        raise ValueError(
            f"register_autocast: cast_inputs should be a float dtype, got {cast_inputs!r}"
        )
    record.autocast[device_type] = cast_inputs


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator of a function, which may use anything: NumPy, C, other libraries.

    The function is never looked into: a derivative, a rule for vmap and one for the meta device are
    registered. The operator stands under ``facula.ops``, too.

    Args:
        name: ``"namespace::name"``.
        mutates_args: the names of arguments that the function changes; it must not change others,
            nor return them.
        device_types: what devices the function is for; any by default.
        schema: the signature, when it cannot be inferred from the annotations.
        tags: marks of :class:`facula.Tag`.

    Example::

        >>> @facula.library.custom_op("docs::numpy_sin", mutates_args=())
        ... def numpy_sin(x: facula.Tensor) -> facula.Tensor:
        ...     return facula.from_numpy(numpy.sin(x.numpy()))
        >>> import numpy
        >>> numpy_sin(facula.zeros(2))
        tensor([0., 0.])
        >>> facula.ops.docs.numpy_sin(facula.zeros(1))
        tensor([0.])
    """

    def define(fn: Callable[..., Any]) -> CustomOpDef:
        check_qualified(name)
        text = schema if schema is not None else infer_schema(fn, mutates_args=mutates_args)
        marks = as_tags(tags)
        definition = CustomOpDef(name, text, fn)
        definition._record.tags = marks
        if schema is not None:
            declared = {a.name for a in definition._record.schema.arguments if a.is_write}
            if mutates_args != "unknown" and declared != set(mutates_args):
                namespaces.remove(definition._record)
                raise ValueError(
                    f"Attempted to create a custom op with mutates_args={mutates_args} and "
                    f"schema={schema}: the schema says that {declared or 'nothing'} is changed"
                )
        definition.register_kernel(device_types, fn)
        return definition

    return define if fn is None else define(fn)
