"""The base of all layers: registration, iteration, conversion, calls with hooks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import facula
from facula import _C, Tensor
from facula import __future__ as future
from facula.nn.modules._hooks import (  # the public home of these names
    HookMethods,
    call_with_hooks,
    global_hooks_active,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from facula.nn.modules._hooks import registration_hooks as _registration_hooks
from facula.nn.modules._state import StateMethods, _IncompatibleKeys
from facula.nn.parameter import Buffer, Parameter, UninitializedTensorMixin, is_lazy

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")


def _addindent(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _type_name(value: Any) -> str:
    if isinstance(value, Tensor):
        return value.type()  # of its dtype, as in 'facula.FloatTensor'
    kind = value if isinstance(value, type) else type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _forward_unimplemented(self: Any, *input: Any) -> Any:
    """What a call computes: every module has its own."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class _SignatureOfCalls:
    """What ``inspect.signature(module)`` finds: the base's call is C++ and cannot say. Classes have
    none, so that theirs is that of ``__init__``."""

    def __get__(self, module: Any, cls: type) -> inspect.Signature:
        if module is None:
            raise AttributeError("__signature__")
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(n, k) for n, k in zip(("args", "kwargs"), kinds, strict=True)]
        )


class Module(StateMethods, HookMethods, _C.ModuleBase):
    """A layer or a model: holds parameters, buffers and further modules, and is called on inputs.

    Example::

        >>> class Scale(facula.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = facula.nn.Parameter(facula.tensor(2.))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> Scale()(facula.ones(2))
        tensor([2., 2.], grad_fn=<MulBackward0>)
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        if not self.call_super_init and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_modules"] = {}
        self._init_hooks()
        self._init_state_hooks()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # ---- calls

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    if TYPE_CHECKING:  # ModuleBase calls forward, by the method above where there are hooks
        __call__: Callable[..., Any]

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or global_hooks_active()
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Hands the calls of this module to ``facula.compile``, with its arguments."""
        self._compiled_call_impl = facula.compile(self._call_impl, *args, **kwargs)

    # ---- registration

    def _check_name(self, name: str, what: str, taken: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in taken:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but is not trained.

        With ``persistent=False`` it stays out of ``state_dict``.

        Example::

            >>> m = facula.nn.Module()
            >>> m.register_buffer("mean", facula.zeros(1))
            >>> m.mean
            tensor([0.])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not (
            isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")
        ):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(facula Tensor or None required)"
            )
        for hook in _registration_hooks("buffer"):
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; ``None`` keeps the name for one.

        Example::

            >>> m = facula.nn.Module()
            >>> m.register_parameter("weight", facula.nn.Parameter(facula.ones(1)))
            >>> [name for name, _ in m.named_parameters()]
            ['weight']
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                "(facula.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        for hook in _registration_hooks("parameter"):
            replaced = hook(self, name, param)
            param = param if replaced is None else replaced
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name.

        Example::

            >>> m = facula.nn.Module()
            >>> m.add_module("inner", facula.nn.Module())
            >>> [name for name, _ in m.named_children()]
            ['inner']
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        for hook in _registration_hooks("module"):
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as :meth:`add_module`."""
        self.add_module(name, module)

    # ---- access by dotted names

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; ``""`` is this one.

        Example::

            >>> m = facula.nn.Module()
            >>> m.inner = facula.nn.Module()
            >>> m.get_submodule("inner") is m.inner
            True
        """
        module: Any = self
        for atom in target.split(".") if target else []:
            if not hasattr(module, atom):
                raise AttributeError(f"{module._get_name()} has no attribute `{atom}`")
            module = getattr(module, atom)
            if not isinstance(module, Module):
                raise AttributeError(f"`{atom}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a dotted path; with ``strict`` only in the place of another one."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        *path, name = target.split(".")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _at(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        module, name = self._at(target)
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        module, name = self._at(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)  # type: ignore[no-any-return]

    # ---- attributes

    __signature__ = _SignatureOfCalls()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _C._take_fast_attributes(cls)

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in state and name in state[kind]:
                return state[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name: str, *kinds: str) -> None:
        for kind in kinds:
            held = self.__dict__.get(kind)
            if held is None:
                continue
            if isinstance(held, set):
                held.discard(name)
            else:
                held.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            state.pop(name, None)
            self._forget(name, "_buffers", "_modules", "_non_persistent_buffers_set")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' "
                    "(facula.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            state.pop(name, None)
            self._forget(name, "_parameters", "_buffers", "_non_persistent_buffers_set")
            for hook in _registration_hooks("module"):
                replaced = hook(self, name, value)
                value = value if replaced is None else replaced
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' "
                    "(facula.nn.Module or None expected)"
                )
            modules[name] = value
            return
        buffers = state.get("_buffers")
        if isinstance(value, Tensor) and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            state.pop(name, None)
            self._forget(name, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
            return
        if buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' "
                    "(facula.nn.Buffer, facula.Tensor or None expected)"
                )
            for hook in _registration_hooks("buffer"):
                replaced = hook(self, name, value)
                value = value if replaced is None else replaced
            buffers[name] = value
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Modules pickled by older versions lack what was added since.
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self._init_hooks(keep=True)
        self._init_state_hooks(keep=True)

    def __dir__(self) -> list[str]:
        names = set(dir(type(self))) | set(self.__dict__)
        names |= set(self._parameters) | set(self._modules) | set(self._buffers)
        return sorted(n for n in names if not n[0].isdigit())

    # ---- iteration

    def _named_members(
        self,
        get_members: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Any = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, member in get_members(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (module_prefix + "." if module_prefix else "") + name, member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once.

        Example::

            >>> m = facula.nn.Module()
            >>> m.w = facula.nn.Parameter(facula.ones(2))
            >>> sum(p.numel() for p in m.parameters())
            2
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        yield from self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._named_members(
            lambda m: m._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """The modules one level down, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules one level down, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below, each once, or as often as it is used."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below, with their dotted names.

        Example::

            >>> m = facula.nn.Module()
            >>> m.inner = facula.nn.Module()
            >>> [name for name, _ in m.named_modules()]
            ['', 'inner']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = (prefix + "." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    # ---- modes

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode, which dropout and batch normalisation look at, here and below.

        Example::

            >>> facula.nn.Module().train(False).training
            False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets ``requires_grad`` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or fills them with zeros.

        Example::

            >>> m = facula.nn.Module()
            >>> m.w = facula.nn.Parameter(facula.ones(1))
            >>> m.w.sum().backward()
            >>> m.zero_grad()
            >>> m.w.grad is None
            True
        """
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            elif p.grad.grad_fn is not None:
                p.grad.detach_().zero_()
            else:
                p.grad.requires_grad_(False).zero_()

    # ---- conversion

    def apply(self: T, fn: Callable[[Module], Any]) -> T:
        """Calls ``fn`` on every module, the innermost first.

        Example::

            >>> m = facula.nn.Module()
            >>> _ = m.apply(lambda module: print(type(module).__name__))
            Module
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with facula.no_grad():
                changed = fn(parameter)
            grad = parameter.grad
            changed_grad = None
            if grad is not None:
                with facula.no_grad():
                    changed_grad = fn(grad).requires_grad_(grad.requires_grad)
            self._parameters[name] = _converted(parameter, changed, grad, changed_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves and converts parameters and buffers in place: device, dtype, memory format.

        Only floating-point and complex tensors change their dtype.

        Example::

            >>> m = facula.nn.Module()
            >>> m.w = facula.nn.Parameter(facula.ones(1))
            >>> m.to(facula.float64).w.dtype
            facula.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature: some modules may not expect complex "
                "parameters or buffers.",
                stacklevel=2,
            )

        def convert(t: Tensor) -> Tensor:
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if memory_format is not None and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            if device is not None:
                options["device"] = device
            if wanted is not None:
                options["dtype"] = wanted
            try:
                return t.to(**options)
            except NotImplementedError as error:
                if not t.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use facula.nn.Module.to_empty() instead of "
                    "facula.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves to a device without copying: the memory there is not initialised."""
        return self._apply(lambda t: facula.empty_like(t, device=device), recurse=recurse)

    def cuda(self: T, device: Any = None) -> T:
        """Moves parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda(device) if device is not None else t.cuda())

    def cpu(self: T) -> T:
        """Moves parameters and buffers to host memory."""
        return self._apply(lambda t: t.cpu())

    def type(self: T, dst_type: Any) -> T:
        """Converts all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self: T, dtype: Any) -> T:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: T) -> T:
        """Floating-point parameters and buffers as float32."""
        return self._cast(facula.float32)

    def double(self: T) -> T:
        """Floating-point parameters and buffers as float64."""
        return self._cast(facula.float64)

    def half(self: T) -> T:
        """Floating-point parameters and buffers as float16."""
        return self._cast(facula.float16)

    def bfloat16(self: T) -> T:
        """Floating-point parameters and buffers as bfloat16."""
        return self._cast(facula.bfloat16)

    def share_memory(self: T) -> T:
        """Puts parameters and buffers where other processes can see them."""
        return self._apply(lambda t: t.share_memory_())

    # ---- text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What ``repr`` shows in the parentheses; for subclasses to override."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        text = self._get_name() + "("
        if len(lines) == 1 and not children:
            text += lines[0]
        elif lines or children:
            text += "\n  " + "\n  ".join(lines + children) + "\n"
        return text + ")"

    def _replicate_for_data_parallel(self: T) -> T:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _converted(parameter: Any, changed: Any, grad: Any, changed_grad: Any) -> Any:
    """The parameter that holds ``changed``: the same object, unless ``facula.__future__`` says."""
    if future.get_swap_module_params_on_conversion():
        parameter.grad = None
        facula.utils.swap_tensors(parameter, Parameter(changed, parameter.requires_grad))
        if grad is not None:
            facula.utils.swap_tensors(grad, changed_grad)
            parameter.grad = grad
        return parameter
    overwrite = future.get_overwrite_module_params_on_conversion()
    # Data that has no shape yet can be given only to a parameter without a shape, and whoever holds
    # a parameter keeps its elements when the module goes to the meta device or to another layout.
    if not is_lazy(parameter):
        overwrite |= isinstance(changed, UninitializedTensorMixin) or (
            (parameter.is_meta, parameter.layout) != (changed.is_meta, changed.layout)
        )
    if overwrite:
        parameter = Parameter(changed, parameter.requires_grad)
        parameter.grad = changed_grad
        return parameter
    parameter.data = changed
    if grad is not None:
        grad.data = changed_grad
    return parameter


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)`` ..."""
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    non_blocking = kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    tensor = kwargs.pop("tensor", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    elif rest and isinstance(rest[0], facula.dtype):
        dtype = rest.pop(0)
    elif rest:
        if rest[0] is not None:
            device = facula.device(rest[0])
        rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], facula.dtype)):
            dtype = rest.pop(0)
    if rest:
        non_blocking = bool(rest.pop(0))
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if device is not None:
        device = facula.device(device)
    return device, dtype, non_blocking, memory_format


_C._take_fast_attributes(Module)
