"""Operators of a program's own, which work with autograd, vmap, autocast and the meta device.

:func:`custom_op` makes one of a function. :class:`Library` is the older way: schemas and kernels
are registered one by one. Both stand under ``facula.ops.NAMESPACE.NAME``.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import facula
from facula._library import namespaces
from facula._library.custom_op import (
    CustomOpDef,
    check_qualified,
    custom_op,
    device_list,
    set_autocast,
    set_autograd,
)
from facula._library.inference import infer_schema
from facula._library.namespaces import OpOverload
from facula._library.opcheck import OpCheckError, opcheck
from facula._library.record import Record
from facula._library.schema import parse_schema
from facula._library.tags import as_tags

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

_RESERVED = ("prim", "prims", "aten")
_defined: set[str] = set()  # namespaces that have a library of the kind DEF

# Dispatch keys as far as they mean something here: the device of a kernel, or one of the others.
_DEVICE_KEYS: dict[str, str | None] = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": None,
}
_AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA")


def fallthrough_kernel() -> None:
    """Passed to :meth:`Library.impl` to say that a dispatch key has nothing to do."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Registers operators and kernels; when it is gone, so are they.

    Args:
        ns: the namespace.
        kind: "DEF" for the one library that defines a namespace, "FRAGMENT" for others that add to
            it, "IMPL" for kernels alone.
        dispatch_key: the key of :meth:`impl` where it is given none.

    Example::

        >>> library = facula.library.Library("docs_library", "DEF")
        >>> library.define("scaled(Tensor x, float by=2.0) -> Tensor")
        'scaled'
        >>> library.impl("scaled", lambda x, by=2.0: x * by, "CPU")
        >>> facula.ops.docs_library.scaled(facula.ones(2), 3.0)
        tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try another name.")
        if kind == "DEF":
            if ns in _defined:
                raise RuntimeError(
                    f"Only a single Library of the kind DEF can define the namespace {ns}; use "
                    "FRAGMENT to add to it"
                )
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        undo: list[Callable[[], Any]] = []
        if kind == "DEF":
            undo.append(lambda: _defined.discard(ns))
        self._undo = undo
        self._finalizer = weakref.finalize(self, _run_all, undo)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, and returns its name.

        Args:
            schema: ``name.overload(arguments) -> results``.
            alias_analysis: accepted for PyTorch's sake.
            tags: marks of :class:`facula.Tag`.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(f"{self}: a library of the kind IMPL cannot define operators")
        record = Record(parse_schema(f"{self.ns}::{schema.strip()}"))
        record.tags = as_tags(tags)
        namespaces.add(record)
        self._undo.append(lambda: namespaces.remove(record))
        name = record.schema.name.partition("::")[2]
        return name + (f".{record.schema.overload_name}" if record.schema.overload_name else "")

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a kernel of an operator.

        Args:
            op_name: its name, with the overload, or the operator.
            fn: the kernel.
            dispatch_key: "CPU", "CUDA", "Meta", "CompositeExplicitAutograd" (any device),
                "CompositeImplicitAutograd" (made of other operators, whose derivatives are its
                derivative), or "Autograd" (called instead where grad is needed).
            allow_override: whether it may take the place of another.
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if with_keyset:
            raise RuntimeError("Library.impl: kernels are given no keyset")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        record = _record_of(name if "::" in name else f"{self.ns}::{name}")
        if key in _DEVICE_KEYS:
            device = _DEVICE_KEYS[key]
            if fn is fallthrough_kernel:
                raise RuntimeError(f"{key} is a backend, which cannot fall through")
            before = record.kernels.get(device)
            if before is not None and not allow_override:
                raise RuntimeError(f"{record.label} already has a kernel for {key}")
            if before is not None:
                warnings.warn(
                    f"{record.label}: another kernel for {key} takes the place of the first"
                )
            record.kernels[device] = fn
            self._undo.append(lambda: _take_back(record.kernels, device, fn))
        elif key == "CompositeImplicitAutograd":
            record.composite = fn
            self._undo.append(lambda: setattr(record, "composite", None))
        elif key in _AUTOGRAD_KEYS:
            record.autograd_kernel = None if fn is fallthrough_kernel else fn
            self._undo.append(lambda: setattr(record, "autograd_kernel", None))
        else:
            known = (*_DEVICE_KEYS, "CompositeImplicitAutograd", *_AUTOGRAD_KEYS)
            raise RuntimeError(f"unknown dispatch key {key!r}; known are {', '.join(known)}")

    def _destroy(self) -> None:
        self._finalizer()


def _run_all(undo: list[Callable[[], Any]]) -> None:
    for step in reversed(undo):
        step()
    undo.clear()


def _take_back(kernels: dict[str | None, Any], device: str | None, fn: Any) -> None:
    if kernels.get(device) is fn:
        del kernels[device]


_kept: dict[str, Library] = {}  # for registrations without a library, which stay


def _library_for(namespace: str) -> Library:
    if namespace not in _kept:
        _kept[namespace] = Library(namespace, "FRAGMENT")
    return _kept[namespace]


def _record_of(op: Any) -> Record:
    if isinstance(op, CustomOpDef):
        return op._record
    if isinstance(op, OpOverload):
        if op._record is None:
            raise ValueError(f"{op} is an operator of Facula itself")
        return op._record
    check_qualified(op)
    name, _, overload = op.partition(".")
    found = (namespaces.find(name) or {}).get("" if overload == "default" else overload)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist")
    return found


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Defines an operator: ``define("ns::name", "(Tensor x) -> Tensor")``.

    Example::

        >>> facula.library.define("docs::plus_one", "(Tensor x) -> Tensor")
        >>> @facula.library.impl("docs::plus_one", "cpu")
        ... def _(x):
        ...     return x + 1
        >>> facula.ops.docs.plus_one(facula.zeros(1))
        tensor([1.])
    """
    check_qualified(qualname)
    namespace, _, name = qualname.partition("::")
    (lib or _library_for(namespace)).define(name + schema, tags=tags)


def impl(
    qualname: str,
    types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a kernel of an operator for device types ("cpu", "cuda"), "default" for any, or
    for one of the dispatch keys of :meth:`Library.impl`.

    Example::

        >>> facula.library.define("docs::minus_one", "(Tensor x) -> Tensor")
        >>> facula.library.impl("docs::minus_one", "default", lambda x: x - 1)
    """
    kinds = [types] if isinstance(types, str) else list(types)
    keys = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "default": "CompositeExplicitAutograd"}

    def register(func: Callable[..., Any]) -> None:
        namespace = qualname.partition("::")[0]
        for kind in kinds:
            (lib or _library_for(namespace)).impl(qualname, func, keys.get(kind, kind))

    return register if func is None else register(func)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what an operator does on device types; None is any device.

    Example::

        >>> facula.library.define("docs::square", "(Tensor x) -> Tensor")
        >>> facula.library.register_kernel("docs::square", "cpu", lambda x: x * x)
        >>> facula.ops.docs.square(facula.tensor([3.]))
        tensor([9.])
    """
    record = _record_of(op)

    def register(func: Callable[..., Any]) -> None:
        for kind in device_list(device_types):
            record.kernels[kind] = func

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers what an operator does on the meta device: empty tensors of the right shapes.

    Example::

        >>> facula.library.define("docs::double", "(Tensor x) -> Tensor")
        >>> @facula.library.register_fake("docs::double")
        ... def _(x):
        ...     return facula.empty_like(x)
        >>> facula.ops.docs.double(facula.empty(2, device="meta")).shape
        facula.Size([2])
    """
    record = _record_of(op)

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        if "meta" in record.kernels and not allow_override:
            raise RuntimeError(f"register_fake(...): {record.label} already has a fake impl")
        record.kernels["meta"] = func
        return func

    return register if func is None else register(func)


def impl_abstract(
    qualname: str, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """The former name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Registers the derivative of an operator; see :meth:`CustomOpDef.register_autograd`.

    Example::

        >>> facula.library.define("docs::triple", "(Tensor x) -> Tensor")
        >>> facula.library.impl("docs::triple", "cpu", lambda x: x * 3)
        >>> facula.library.register_autograd("docs::triple", lambda ctx, grad: grad * 3)
        >>> x = facula.ones(1, requires_grad=True)
        >>> facula.ops.docs.triple(x).backward()
        >>> x.grad
        tensor([3.])
    """
    set_autograd(_record_of(op), backward, setup_context)


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers the batching rule of an operator: ``func(info, in_dims, *args)`` returns the result
    and the dimension of the batch in it.

    Example::

        >>> @facula.library.custom_op("docs::flip", mutates_args=())
        ... def flip(x: facula.Tensor) -> facula.Tensor:
        ...     return x.flip(0)
        >>> @facula.library.register_vmap(flip)
        ... def _(info, in_dims, x):
        ...     return x.movedim(in_dims[0], 0).flip(1), 0
        >>> facula.vmap(flip)(facula.arange(4).view(2, 2))
        tensor([[1, 0],
                [3, 2]])
    """
    record = _record_of(op)

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        record.vmap = func
        return func

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: facula.dtype, /, *, lib: Library | None = None
) -> None:
    """Registers the dtype that an operator's floating arguments are cast to under autocast."""
    set_autocast(_record_of(op), device_type, cast_inputs)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers ``func(cls, op, types, args, kwargs)`` for arguments of a subclass of Tensor."""
    record = _record_of(op)

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        record.dispatch[torch_dispatch_class] = func
        return func

    return register if func is None else register(func)
