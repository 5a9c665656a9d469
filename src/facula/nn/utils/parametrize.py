"""Parameters that are computed from others each time they are read.

``register_parametrization(module, "weight", f)`` moves the weight to
``module.parametrizations.weight.original`` and makes ``module.weight`` a property that is
``f(original)``. Assigning to ``module.weight`` sets the original by ``f.right_inverse``.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import facula
from facula import Tensor
from facula.nn.modules.container import ModuleDict, ModuleList
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside ``with``, each parametrized tensor is computed only once.

    Example::

        >>> class Double(facula.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.ones(1))
        >>> parametrize = facula.nn.utils.parametrize
        >>> _ = parametrize.register_parametrization(m, "weight", Double())
        >>> m.weight is m.weight
        False
        >>> with parametrize.cached():
        ...     m.weight is m.weight
        True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(what: str, names: tuple[str, str], before: Any, after: Any) -> None:
    if before != after:
        raise ValueError(
            f"{what}, unless `unsafe` flag is enabled.\n{names[0]}: {before}\n{names[1]}: {after}"
        )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that it is computed from.

    Args:
        modules: the parametrizations, the first one first.
        original: the tensor.
        unsafe: whether dtype and shape may change.
    """

    original: Tensor
    unsafe: bool

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with facula.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    # Without an inverse the value is taken as it is.
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(result).__name__}."
                )
            for kind, before, after in (
                ("dtype", dtype, result.dtype),
                ("shape", shape, result.shape),
            ):
                _check_same(
                    f"Registering a parametrization may not change the {kind} of the tensor",
                    (f"unparametrized {kind}", f"parametrized {kind}"),
                    before,
                    after,
                )

    def _keep_one(self, original: Tensor, new: Tensor) -> None:
        for kind in ("dtype", "device"):
            before, after = getattr(original, kind), getattr(new, kind)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {kind}.\n"
                    f"original.{kind}: {before}\nright_inverse(original).{kind}: {after}"
                )
        with facula.no_grad():
            original.set_(new)  # the parameter that an optimizer may know stays the same object
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", tensor)

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parametrized tensor is ``value``."""
        with facula.no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                if new.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while "
                        f"`original` has dtype {self.original.dtype}"
                    )
                self.original.set_(new)
                return
            if not isinstance(new, Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(new).__name__}."
                )
            if len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}."
                    f" Got a sequence of length {len(new)}."
                )
            for i, tensor in enumerate(new):
                original = getattr(self, f"original{i}")
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. Got element "
                        f"{i} of type {type(tensor).__name__}."
                    )
                if tensor.dtype != original.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while "
                        f"`original{i}` has dtype {original.dtype}"
                    )
                original.set_(tensor)

    def forward(self) -> Tensor:
        """Computes the parametrized tensor."""
        first, *rest = self
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in rest:
            x = module(x)
        return x


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    twin = memo.get(id(self))
    if twin is not None:
        return twin
    twin = self.__new__(type(self))
    memo[id(self)] = twin
    twin.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(twin, slot, deepcopy(getattr(self, slot), memo))
    return twin


def _getstate(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()."
    )


def _inject_new_class(module: Module) -> None:
    """Gives the module a class of its own, which can have properties of its own."""
    kind = type(module)
    members: dict[str, Any] = {"__getstate__": _getstate}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    def read(self: Any) -> Tensor:
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = (id(self), tensor_name)
        tensor = _cache.get(key)
        if tensor is None:
            tensor = _cache[key] = parametrization()
        return tensor

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Computes a parameter or buffer of a module by another module from now on.

    Several parametrizations of one tensor are applied one after the other. The state dict then has
    ``parametrizations.<name>.original`` in the place of ``<name>``.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: a module from a tensor to a tensor, or from several when it has a method
            ``right_inverse`` that returns them. ``right_inverse`` also gives the first value.
        unsafe: whether dtype and shape may change.

    Returns:
        The module.

    Example::

        >>> class Symmetric(facula.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([[1., 2.], [3., 4.]]))
        >>> _ = facula.nn.utils.parametrize.register_parametrization(m, "weight", Symmetric())
        >>> m.weight.detach()
        tensor([[1., 2.],
                [2., 4.]])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(module, tensor_name, parametrization)
        existing: Any = module.parametrizations[tensor_name]  # type: ignore[index]
        existing.append(parametrization)
        existing.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations  # type: ignore[index]
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_addition(module: Module, name: str, parametrization: Any) -> None:
    """A further parametrization must keep dtype and shape, in both directions."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for kind in ("dtype", "shape"):
        _check_same(
            f"Registering a parametrization may not change the {kind} of the tensor",
            (f"module.{name}.{kind}", f"parametrization(module.{name}).{kind}"),
            getattr(before, kind),
            getattr(after, kind),
        )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for kind in ("dtype", "shape"):
        _check_same(
            f"The tensor returned by parametrization.right_inverse must have the same {kind} as "
            f"module.{name}",
            (f"module.{name}.{kind}", f"returned {kind}"),
            getattr(before, kind),
            getattr(back, kind),
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True when a module has parametrizations, or one of the given tensor."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parametrized tensor an ordinary one again.

    Args:
        module: the module.
        tensor_name: the name of the tensor.
        leave_parametrized: whether it keeps the parametrized value, or gets the original one back,
            which is possible when there is only one.

    Returns:
        The module.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations: Any = module.parametrizations[tensor_name]  # type: ignore[index]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with facula.no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations of another, and the tensors behind them.

    Args:
        from_module: the module that has them.
        to_module: the module that gets them.
        tensor_name: which tensor; all of them by default.

    Returns:
        ``to_module``.
    """
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)
        target: Any = to_module.parametrizations[name]  # type: ignore[index]
        if source[name].is_tensor:
            target.original = source[name].original
        else:
            for i in range(source[name].ntensors):
                setattr(target, f"original{i}", getattr(source[name], f"original{i}"))
    return to_module
