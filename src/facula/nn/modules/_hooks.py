"""Hooks of modules: before and after ``forward``, around the backward pass, and at registration."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from facula import _C, Tensor
from facula.nn.modules._errors import name_module
from facula.utils.hooks import BackwardHook, RemovableHandle

if TYPE_CHECKING:
    from facula.nn.modules.module import Module

Hooks = OrderedDict[int, Callable[..., Any]]

# ---- hooks of all modules

_forward_pre_hooks: Hooks = OrderedDict()
_forward_hooks: Hooks = OrderedDict()
_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_backward_pre_hooks: Hooks = OrderedDict()
_backward_hooks: Hooks = OrderedDict()
_backward_hooks_are_full: bool | None = None
_registration: dict[str, Hooks] = {
    "buffer": OrderedDict(),
    "module": OrderedDict(),
    "parameter": OrderedDict(),
}


def global_hooks_active() -> bool:
    return bool(_forward_pre_hooks or _forward_hooks or _backward_pre_hooks or _backward_hooks)


_C._set_module_state(
    _forward_pre_hooks, _forward_hooks, _backward_pre_hooks, _backward_hooks, name_module
)


def registration_hooks(kind: str) -> Iterable[Callable[..., Any]]:
    return _registration[kind].values()


def _add(
    hooks: Hooks, hook: Callable[..., Any], extra: Any = None, prepend: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` whenever a module registers a buffer."""
    return _add(_registration["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` whenever a module registers another one."""
    return _add(_registration["module"], hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, parameter)`` whenever a module registers a parameter."""
    return _add(_registration["parameter"], hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, args)`` before every forward of every module.

    Example::

        >>> from facula.nn.modules.module import register_module_forward_pre_hook
        >>> with register_module_forward_pre_hook(lambda m, args: print(type(m).__name__)):
        ...     _ = facula.nn.Identity()(1)
        Identity
    """
    return _add(_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after every forward of every module."""
    handle = _add(_forward_hooks, hook, [_forward_hooks_with_kwargs, _forward_hooks_always_called])
    if with_kwargs:
        _forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _forward_hooks_always_called[handle.id] = True
    return handle


def _use_full(full: bool) -> None:
    global _backward_hooks_are_full
    if (
        _backward_hooks_are_full is not None
        and _backward_hooks_are_full is not full
        and _backward_hooks
    ):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _backward_hooks_are_full = full


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """An older form of :func:`register_module_full_backward_hook`."""
    _use_full(False)
    return _add(_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` before the backward pass of every module."""
    return _add(_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` after the backward pass of every module."""
    _use_full(True)
    return _add(_backward_hooks, hook)


# ---- hooks of one module


class HookMethods:
    """What :class:`Module` knows about its hooks."""

    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _is_full_backward_hook: bool | None

    def _init_hooks(self, keep: bool = False) -> None:
        state = self.__dict__
        for name in (
            "_forward_hooks",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_backward_hooks",
            "_backward_pre_hooks",
        ):
            if not keep or name not in state:
                state[name] = OrderedDict()
        if not keep or "_is_full_backward_hook" not in state:
            state["_is_full_backward_hook"] = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before ``forward``; a result replaces the arguments.

        Example::

            >>> m = facula.nn.Identity()
            >>> _ = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
            >>> m(facula.tensor(1))
            tensor(2)
        """
        extra = self._forward_pre_hooks_with_kwargs
        handle = _add(self._forward_pre_hooks, hook, extra, prepend)
        if with_kwargs:
            extra[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after ``forward``; a result replaces the output.

        Example::

            >>> m = facula.nn.Identity()
            >>> _ = m.register_forward_hook(lambda module, args, output: output * 10)
            >>> m(facula.tensor(1))
            tensor(10)
        """
        extras = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = _add(self._forward_hooks, hook, extras, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the gradients of the inputs are computed."""
        return _add(self._backward_pre_hooks, hook, None, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """An older form of ``register_full_backward_hook``, which sees the last operator only."""
        self._choose_backward_hooks(full=False)
        return _add(self._backward_hooks, hook)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)``; a result replaces ``grad_input``.

        Example::

            >>> m = facula.nn.Identity()
            >>> _ = m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
            >>> x = facula.ones(1, requires_grad=True)
            >>> m(x).sum().backward()
            >>> x.grad
            tensor([3.])
        """
        self._choose_backward_hooks(full=True)
        return _add(self._backward_hooks, hook, None, prepend)

    def _choose_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full


# ---- the call


def _first_tensor(value: Any) -> Tensor | None:
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return None
        if value is None:
            return None
    return value


class _Call:
    """How far a call came: hooks that are called in any case see it as it was at the error."""

    __slots__ = ("args", "called", "kwargs", "result")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.called: set[int] = set()


def _before(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for hook_id, hook in (*_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        if hook_id in module._forward_pre_hooks_with_kwargs:
            replaced = hook(module, args, kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {replaced}."
                )
            args, kwargs = replaced
        else:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    return args, kwargs


def _run(module: Module, call: _Call) -> Any:
    full: list[Any] = []
    partial: list[Any] = []
    pre = [*_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    if _backward_hooks:
        (full if _backward_hooks_are_full else partial).extend(_backward_hooks.values())
    if module._backward_hooks:
        (full if module._is_full_backward_hook else partial).extend(module._backward_hooks.values())

    call.args, call.kwargs = _before(module, call.args, call.kwargs)
    backward = BackwardHook(module, full, pre) if full or pre else None
    if backward:
        call.args = backward.setup_input_hook(call.args)
    args, kwargs = call.args, call.kwargs
    result = call.result = module.forward(*args, **kwargs)

    for hook_id, hook in (*_forward_hooks.items(), *module._forward_hooks.items()):
        call.called.add(hook_id)
        if hook_id in module._forward_hooks_with_kwargs or hook_id in _forward_hooks_with_kwargs:
            replaced = hook(module, args, kwargs, result)
        else:
            replaced = hook(module, args, result)
        if replaced is not None:
            result = call.result = replaced

    if backward:
        if not isinstance(result, (Tensor, tuple, list)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=3,
            )
        result = backward.setup_output_hook(result)
    if partial:
        output = _first_tensor(result)
        node = output.grad_fn if output is not None else None
        if node is not None:
            before = {tensor.grad_fn for tensor in args if isinstance(tensor, Tensor)}
            if before != {edge[0] for edge in node.next_functions}:
                warnings.warn(
                    "Using a non-full backward hook when the forward contains multiple autograd "
                    "Nodes is deprecated and will be removed in future versions. This hook will be "
                    "missing some grad_input. Please use register_full_backward_hook to get the "
                    "documented behavior.",
                    FutureWarning,
                    stacklevel=3,
                )
            for hook in partial:
                node.register_hook(functools.partial(hook, module))
    return result


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = _Call(args, kwargs)
    try:
        return _run(module, call)
    except Exception:
        # Hooks that asked to be called in any case get what there is: before the end of forward,
        # no result.
        for hooks, always, with_kwargs in (
            (_forward_hooks, _forward_hooks_always_called, _forward_hooks_with_kwargs),
            (
                module._forward_hooks,
                module._forward_hooks_always_called,
                module._forward_hooks_with_kwargs,
            ),
        ):
            for hook_id, hook in list(hooks.items()):
                if hook_id not in always or hook_id in call.called:
                    continue
                try:
                    if hook_id in with_kwargs:
                        replaced = hook(module, call.args, call.kwargs, call.result)
                    else:
                        replaced = hook(module, call.args, call.result)
                    if replaced is not None:
                        call.result = replaced
                except Exception as e:
                    warnings.warn(
                        f"module forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {e}",
                        stacklevel=2,
                    )
        raise
