"""The base of all optimizers: parameter groups, state, hooks, state dicts."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

import facula
from facula import _C, Tensor
from facula.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]

_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()


class _RequiredParameter:
    """Stands in ``defaults`` for an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _register(hooks: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before every step of every optimizer.

    The hook may return ``(args, kwargs)`` to be used instead.

    Example::

        >>> p = facula.nn.Parameter(facula.ones(1))
        >>> optimizer = facula.optim.SGD([p], lr=0.1)
        >>> handle = facula.optim.optimizer.register_optimizer_step_pre_hook(
        ...     lambda optimizer, args, kwargs: print("step"))
        >>> optimizer.step()
        step
        >>> handle.remove()
    """
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _register(_global_optimizer_post_hooks, hook)


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype in which steps are counted."""
    if is_fused:
        return facula.float32
    wide = facula.get_default_dtype() == facula.float64
    return facula.float64 if wide else facula.float32


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor with one element as one without dimensions; other things as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


# What optimizers written for PyTorch import from this module.


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Complex tensors in the lists become views of pairs of numbers."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = facula.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = facula.view_as_real(tensors[i])


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """``(fused, foreach)``: neither, since there are no operators over lists of tensors."""
    return False, False


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a step with gradients only when the optimizer is differentiable."""

    @functools.wraps(func)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with facula.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return run


@contextmanager
def _profiled(name: str) -> Iterator[None]:
    if _C._profiling():
        with facula.autograd.profiler.record_function(name):
            yield
    else:
        yield


class Optimizer:
    """Changes parameters by their gradients; the base class of all optimizers.

    Args:
        params: parameters, ``(name, parameter)`` pairs, or dicts with a key ``"params"`` and
            options of that group.
        defaults: the options of groups that do not give their own.

    Example::

        >>> class Descent(facula.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @facula.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad
        >>> p = facula.nn.Parameter(facula.tensor([1.]))
        >>> (3 * p).sum().backward()
        >>> Descent([p], lr=0.1).step()
        >>> p
        Parameter containing:
        tensor([0.7000], requires_grad=True)
    """

    OptimizerPreHook: TypeAlias = Callable[..., "tuple[Any, Any] | None"]
    OptimizerPostHook: TypeAlias = Callable[..., None]

    defaults: dict[str, Any]
    state: defaultdict[Tensor, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {facula.typename(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        parts = []
        for i, group in enumerate(self.param_groups):
            options = (f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            parts.append(f"\nParameter Group {i}\n{''.join(options)}")
        return f"{type(self).__name__} ({''.join(parts)})"

    # ---- steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters once.

        Args:
            closure: computes the loss anew, with gradients, and returns it.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters.

        Args:
            set_to_none: whether gradients become None, or zeros.

        Example::

            >>> p = facula.nn.Parameter(facula.ones(2))
            >>> p.sum().backward()
            >>> facula.optim.SGD([p], lr=0.1).zero_grad()
            >>> p.grad is None
            True
        """
        if _C._profiling():
            with facula.autograd.profiler.record_function(self._zero_grad_profile_name):
                self._zero_grad(set_to_none)
        else:
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            _C._zero_grads(group["params"], set_to_none)

    def _optimizer_step_code(self) -> None:
        """Called after each step, for tools that patch it."""

    def _accelerator_graph_capture_health_check(self) -> None:
        """Called by optimizers written for PyTorch; steps are never captured in graphs here."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    def _patch_step_function(self) -> None:
        kind = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{kind.__name__}.zero_grad"
        if not getattr(kind.step, "hooked", None):
            hooked: Any = self.profile_hook_step(kind.step)
            hooked.hooked = True
            kind.step = hooked  # type: ignore[method-assign]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A step with its hooks and, while a profiler records, its name."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_optimizer_pre_hooks
                or _global_optimizer_post_hooks
                or _C._profiling()
            ):
                result = func(*args, **kwargs)
                self._optimizer_step_code()
                return result
            with _profiled(f"Optimizer.step#{type(self).__name__}.step"):
                for hook in chain(
                    tuple(_global_optimizer_pre_hooks.values()),
                    tuple(self._optimizer_step_pre_hooks.values()),
                ):
                    changed = hook(self, args, kwargs)
                    if changed is None:
                        continue
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {changed}."
                        )
                    args, kwargs = changed
                result = func(*args, **kwargs)
                self._optimizer_step_code()
                for hook in chain(
                    tuple(self._optimizer_step_post_hooks.values()),
                    tuple(_global_optimizer_post_hooks.values()),
                ):
                    hook(self, args, kwargs)
                return result

        return wrapper

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step.

        The hook may return ``(args, kwargs)`` to be used instead.
        """
        return _register(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    # ---- state dicts

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before :meth:`state_dict`."""
        hooks = self._optimizer_state_dict_pre_hooks  # type: ignore[attr-defined]
        return _register(hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after :meth:`state_dict`.

        The hook may return another dict.
        """
        hooks = self._optimizer_state_dict_post_hooks  # type: ignore[attr-defined]
        return _register(hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` before :meth:`load_state_dict`.

        The hook gets a shallow copy and may return another dict.
        """
        hooks = self._optimizer_load_state_dict_pre_hooks  # type: ignore[attr-defined]
        return _register(hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after :meth:`load_state_dict`."""
        hooks = self._optimizer_load_state_dict_post_hooks  # type: ignore[attr-defined]
        return _register(hooks, hook, prepend)

    def state_dict(self) -> StateDict:
        """The state and the options, with parameters replaced by their numbers.

        The tensors in it are those of the optimizer, not copies.

        Example::

            >>> p = facula.nn.Parameter(facula.ones(1))
            >>> facula.optim.SGD([p], lr=0.1).state_dict()["param_groups"][0]["params"]
            [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        count = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], count):
                numbers.setdefault(id(p), i)
            count += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        result: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor,
        value: Tensor,
        param_id: int,
        param_groups: list[dict[Any, Any]],
        key: Hashable = None,
    ) -> Tensor:
        """State as its parameter needs it: in its dtype and on its device; steps as they are."""
        if key == "step":
            group: dict[Any, Any] = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=facula.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Takes over what :meth:`state_dict` gave, of this or an equal optimizer.

        Groups are matched by position, and so are the parameters in them.

        Example::

            >>> p = facula.nn.Parameter(facula.ones(1))
            >>> a, b = (facula.optim.SGD([p], lr=lr) for lr in (0.1, 0.2))
            >>> a.load_state_dict(b.state_dict())
            >>> a.param_groups[0]["lr"]
            0.2
        """
        state_dict = state_dict.copy()
        hooks = self._optimizer_load_state_dict_pre_hooks  # type: ignore[attr-defined]
        for hook in hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: the optimizer has "
                f"{len(groups)}, the dict {len(saved_groups)}"
            )
        for i, (group, saved) in enumerate(zip(groups, saved_groups, strict=True)):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: group {i} has {len(group['params'])} parameters, in the "
                    f"dict {len(saved['params'])}"
                )
        params = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in groups),
                strict=True,
            )
        )

        def placed(value: Any, number: Any, key: Any = None) -> Any:
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(
                    params[number], value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: placed(v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                return type(value)(placed(v, number) for v in value)  # type: ignore[call-arg]
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = placed(value, key)
            else:
                state[key] = value
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        hooks = self._optimizer_load_state_dict_post_hooks  # type: ignore[attr-defined]
        for hook in hooks.values():
            hook(self)

    # ---- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own.

        Args:
            param_group: ``{"params": ..., option: value ...}``.

        Example::

            >>> p, q = (facula.nn.Parameter(facula.ones(1)) for _ in range(2))
            >>> optimizer = facula.optim.SGD([p], lr=0.1)
            >>> optimizer.add_param_group({"params": [q], "lr": 0.01})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        if names and len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + facula.typename(p)
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        unique = {id(p) for p in params}
        if len(unique) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                given = "with" if names else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {given} names to the optimizer"
                )
            if any(id(p) in unique for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)
