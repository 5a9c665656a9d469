"""Custom differentiable functions written in Python."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from facula import _C

__all__ = [
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What ``forward`` tells ``backward``: the first argument of both."""

    to_save: Any = None
    dirty_tensors: Any = ()
    non_differentiable: Any = ()
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, checked against writes in between; call it once."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for a forward-mode derivative."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Says which inputs ``forward`` has changed in place; they must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Says which outputs carry no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """With False, missing gradients arrive as None instead of zeros."""
        self.materialize_grads = value


class BackwardCFunction(_C.Node, FunctionCtx):
    """The ctx object; it is the ``grad_fn`` of the results."""

    __repr__ = object.__repr__
    _forward_cls: Any = None
    _reads_for_forward = False  # while jvp runs

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.saved_for_forward if self._reads_for_forward else _C._saved_tensors(self)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        warnings.warn(
            "mark_shared_storage is deprecated: tensors that share memory are known without it",
            FutureWarning,
            stacklevel=2,
        )

    def _run_backward(self, *grads: Any) -> Any:
        cls = self._forward_cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        derivative = cls.vjp if cls.vjp is not Function.vjp else cls.backward
        return derivative(self, *grads)

    def apply(self, *args: Any) -> Any:
        return self._run_backward(*args)


class FunctionMeta(type):
    """Gives every Function the class of its ctx."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom operations with a derivative.

    Write ``forward`` and ``backward`` as static methods and call ``apply``.

    Example::

        >>> class Square(facula.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         x, = ctx.saved_tensors
        ...         return grad * 2 * x
        >>> x = facula.tensor([3.], requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor([6.])
    """

    # True: vmap is derived from forward, backward and jvp, which must be made of operators.
    generate_vmap_rule = False
    _positional_count: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself: use .apply(...).",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"Legacy autograd function with non-static forward method is deprecated: use "
            f"{type(self).__name__}.apply(...), with static forward and backward."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the result; takes ``ctx`` first, unless there is a ``setup_context``."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills ctx from the inputs and the output, when ``forward`` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs from those of the outputs; None where there is none."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The forward-mode derivative."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """The rule for a batch of inputs.

        ``info`` has the ``batch_size`` and the ``randomness`` of the vmap; ``in_dims`` says for
        each argument at which dimension the batch is, None where it has none. Returns the output
        and the dimension of the batch in it.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs ``forward`` and records the derivative."""
        separate = cls.setup_context is not Function.setup_context
        if kwargs or (separate and len(args) < cls._positional()):
            args = cls._by_position(separate, args, kwargs)
        return _C._function_apply(cls, cls._backward_cls(), separate, args)

    @classmethod
    def _positional(cls) -> int:
        """How many arguments ``forward`` takes by position."""
        count: int | None = cls.__dict__.get("_positional_count")
        if count is None:
            kinds = [p.kind for p in inspect.signature(cls.forward).parameters.values()]
            by_position = (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
            count = cls._positional_count = sum(kind in by_position for kind in kinds)
        return count

    @classmethod
    def _by_position(
        cls, separate: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments as ``backward`` counts them; for ``setup_context`` with the defaults."""
        ctx = () if separate else (None,)
        bound = inspect.signature(cls.forward).bind(*ctx, *args, **kwargs)
        if separate:
            bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{cls.__name__}.forward takes {', '.join(bound.kwargs)} by keyword only; "
                "arguments of an autograd.Function must also be accepted by position"
            )
        return bound.args[len(ctx) :]


def once_differentiable(fn: Any) -> Any:
    """Decorates a ``backward`` that cannot be differentiated again.

    Example::

        >>> class Double(facula.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @facula.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = facula.ones(1, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        recording = _C.is_grad_enabled()
        before = recording
        _C._set_grad_enabled(False)
        try:
            outputs = fn(ctx, *args)
        finally:
            _C._set_grad_enabled(before)
        if not recording or not any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            return outputs
        as_tuple = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = tuple(_Once.apply(o) if isinstance(o, _C.Tensor) else o for o in as_tuple)
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper


class _Once(Function):
    """Passes a gradient on and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, grad: Any) -> Any:
        return grad.detach().clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(True)
        try:
            leaf = args[0].detach().requires_grad_()
            return super().apply(leaf)
        finally:
            _C._set_grad_enabled(before)


class InplaceFunction(Function):
    """Kept for programs that derive from it; use Function and ``ctx.mark_dirty``."""


class NestedIOFunction(Function):
    """Kept for programs that test against it; use Function."""
