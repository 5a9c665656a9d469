"""Handles that remove hooks."""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from typing import Any

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def _reference(hooks: dict[int, Any]) -> Any:
    """A function that returns the dict, if it still exists."""
    # Plain dicts take no weak references; the dict belongs to a tensor or node and is small.
    try:
        return weakref.ref(hooks)
    except TypeError:
        return lambda: hooks


class RemovableHandle:
    """Removes one hook from the dict it was added to; usable in ``with``.

    Example::

        >>> x = facula.ones(1, requires_grad=True)
        >>> with x.register_hook(lambda g: g * 2):
        ...     x.sum().backward()
        >>> x.grad
        tensor([2.])
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Any = _reference(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict = extra_dict

    def remove(self) -> None:
        """Takes the hook out; doing it twice is harmless."""
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)
        extras = self.extra_dict
        if extras is not None:
            for extra in extras if isinstance(extras, (list, tuple)) else (extras,):
                extra.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        extras = self.extra_dict
        if extras is not None and not isinstance(extras, (list, tuple)):
            extras = (extras,)
        return self.hooks_dict_ref(), self.id, extras

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *extra = state
        # The dict of a module that is gone: nothing is left to take out.
        self.hooks_dict_ref = (lambda: None) if hooks is None else _reference(hooks)
        self.extra_dict = extra[0] if extra else None
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that pickling a tensor leaves out.

    Example::

        >>> from facula.utils.hooks import unserializable_hook
        >>> unserializable_hook(print) is print
        True
    """
    with contextlib.suppress(AttributeError):  # built-in functions take no attributes
        f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of hooks of a tensor that a pickle of it lacks.

    Example::

        >>> import warnings
        >>> x = facula.ones(1, requires_grad=True)
        >>> _ = x.register_hook(lambda g: g)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     facula.utils.hooks.warn_if_has_hooks(x)
        >>> len(caught)
        1
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @facula.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )


class BackwardHook:
    """Lets functions see the gradients that enter and leave a module in the backward pass.

    The inputs and the outputs of the module go through identities on the tape; the gradients that
    pass these are those of the module as a whole.
    """

    def __init__(self, module: Any, user_hooks: Any, user_pre_hooks: Any) -> None:
        self.module = module
        self.user_hooks = list(user_hooks)
        self.user_pre_hooks = list(user_pre_hooks)
        self.grad_outputs: Any = None
        self.has_inputs = False
        self.n_inputs = 0
        self.input_indices: list[int] = []
        self.n_outputs = 0
        self.output_indices: list[int] = []

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with the tensors among them watched."""
        self.n_inputs = len(args)
        watched, self.input_indices, node = _through_identity(args)
        if node is not None:
            self.has_inputs = True
            node.register_hook(self._inputs_done)
        return watched

    def setup_output_hook(self, result: Any) -> Any:
        """The result, with the tensors in it watched."""
        single = not isinstance(result, (tuple, list))
        values = (result,) if single else tuple(result)
        self.n_outputs = len(values)
        watched, self.output_indices, node = _through_identity(values)
        if node is not None:
            node.register_prehook(self._outputs_ready)
        if single:
            return watched[0]
        if type(result) is tuple:
            return watched
        fields = getattr(type(result), "_fields", None)
        return type(result)(*watched) if fields else type(result)(watched)

    def _spread(self, grads: Any, indices: list[int], count: int) -> tuple[Any, ...]:
        spread: list[Any] = [None] * count
        for index, grad in zip(indices, grads, strict=True):
            spread[index] = grad
        return tuple(spread)

    def _outputs_ready(self, grads: Any) -> Any:
        self.grad_outputs = self._spread(grads, self.output_indices, self.n_outputs)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, self.grad_outputs)
            if replaced is None:
                continue
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            if len(replaced) != self.n_outputs:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(replaced)}, but expected {self.n_outputs}"
                )
            self.grad_outputs = replaced
        passed = tuple(self.grad_outputs[i] for i in self.output_indices)
        if not self.has_inputs:  # nothing flows further: the hooks are called here
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients.",
                stacklevel=2,
            )
            nothing = (None,) * self.n_inputs
            for hook in self.user_hooks:
                replaced = hook(self.module, nothing, self.grad_outputs)
                if replaced is not None and not (
                    isinstance(replaced, tuple) and all(r is None for r in replaced)
                ):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            self.grad_outputs = None
        return passed

    def _inputs_done(self, grad_input: Any, _: Any) -> Any:
        if self.grad_outputs is None:
            return None  # gradients came here past the outputs, as in a double backward
        grads = self._spread(grad_input, self.input_indices, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is None:
                continue
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            if len(replaced) != self.n_inputs:
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, got "
                    f"{len(replaced)}, but expected {self.n_inputs}"
                )
            grads = replaced
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_indices)


@functools.cache
def _identity() -> Any:
    """Made on first use: this file is imported by autograd itself."""
    from facula.autograd import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            results = tuple(t.view_as(t) for t in tensors)
            plain = [r for t, r in zip(tensors, results, strict=True) if not t.requires_grad]
            ctx.mark_non_differentiable(*plain)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads

    return BackwardHookFunction


def _through_identity(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
    """The values with their tensors as results of one identity, which tensors, and its node."""
    import facula

    indices = [i for i, v in enumerate(values) if isinstance(v, facula.Tensor)]
    tensors = [values[i] for i in indices]
    if not (facula.is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return values, indices, None
    watched = list(values)
    node = None
    for i, t in zip(indices, _identity().apply(*tensors), strict=True):
        watched[i] = t
        node = t.grad_fn if node is None else node
    return tuple(watched), indices, node
