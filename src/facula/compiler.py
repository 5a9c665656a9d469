"""What programs ask and tell a compiler: operators run one by one, so nothing is compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from typing import Any

from facula.nn import Module

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def is_compiling() -> bool:
    """False: code runs as it is written.

    Example::

        >>> facula.compiler.is_compiling()
        False
    """
    return False


def is_dynamo_compiling() -> bool:
    """False, as :func:`is_compiling`."""
    return False


def is_exporting() -> bool:
    """False: no graph of the program is being written."""
    return False


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: Any = None
) -> Any:
    """Marks a function that must not be compiled, which none is; returns it. A decorator with or
    without arguments.

    Example::

        >>> @facula.compiler.disable(recursive=False)
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Returns the function, or list of them: there is no graph that it might not enter."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function: its result is computed at each call."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Returns at once: there are no captured steps whose memory might be used again."""


def reset() -> None:
    """Returns at once: there is no compiled code to forget."""


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """The names of compilers that there are: none.

    Example::

        >>> facula.compiler.list_backends()
        []
    """
    return []


class set_stance(ContextDecorator):
    """Says when compiled code is run rather than Python; Python is run either way. A function, a
    block, or a decorator.

    Example::

        >>> with facula.compiler.set_stance("force_eager"):
        ...     facula.ones(1) + 1
        tensor([2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if force_backend is not None and stance != "default":
            raise RuntimeError("force_backend needs the stance 'default'")
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class OptimizedModule(Module):
    """What :func:`compile` makes of a module: it has the other one as ``_orig_mod``, so names of
    parameters and keys of state dicts are those that PyTorch gives to compiled modules, and it
    takes everything else from there.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._orig_mod = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """That of the module."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        if self.__dict__.get("_modules"):  # not while Module.__init__ runs
            self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "forward", "training") or not self.__dict__.get("_modules"):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)  # type: ignore[arg-type]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


_said = False


def _say_once() -> None:
    global _said
    if not _said:
        _said = True
        warnings.warn(
            "facula.compile() compiles nothing yet: operators run one by one, as without it",
            stacklevel=4,
        )


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Returns a function as it is, and a module inside of an :class:`OptimizedModule`: nothing is
    compiled, which a warning says once, and operators run one by one, with the results that they
    have without it. A decorator with or without arguments.

    Args:
        model: a function or a module.
        mode: looked at for its name only, as nothing is compiled; the other arguments say how
            PyTorch would go about it.
        disable: returns a module as it is, too.

    Example::

        >>> @facula.compile(fullgraph=True)
        ... def double(x):
        ...     return 2 * x
        >>> double(facula.ones(2))
        tensor([2., 2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")

    def wrap(model: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(model):
            raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
        _say_once()
        return OptimizedModule(model) if isinstance(model, Module) and not disable else model

    return wrap if model is None else wrap(model)
