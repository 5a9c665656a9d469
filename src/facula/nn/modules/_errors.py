"""Says which module an operator failed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from facula import Tensor

if TYPE_CHECKING:
    from facula.nn.modules.module import Module


def _described(module: Module) -> str:
    """The module on one line, without its children."""
    return f"{module._get_name()}({', '.join(module.extra_repr().splitlines())})"


def _shapes(args: tuple[Any, ...]) -> str:
    return ", ".join(str(tuple(a.shape)) for a in args if isinstance(a, Tensor))


def _name_within(module: Module, inner: int) -> str | None:
    return next((name for name, m in module.named_modules() if id(m) == inner), None)


def name_module(module: Module, args: tuple[Any, ...], error: Any) -> None:
    """Puts ``layer1.0.conv: Conv2d(...) got input (...)`` before the text of an error.

    Called for each module that the error passes on its way out: the innermost one is described, the
    others add their part of the path.
    """
    if not hasattr(error, "_text"):
        if not error.args or not isinstance(error.args[0], str):
            return
        error._text, error._path = error.args[0], ""
        shapes = _shapes(args)
        error._where = _described(module) + (f" got input {shapes}" if shapes else "")
    else:
        name = _name_within(module, error._inner)
        if name:
            error._path = f"{name}.{error._path}" if error._path else name
    error._inner = id(module)  # not the module: an error may be pickled
    place = f"{error._path}: {error._where}" if error._path else error._where
    error.args = (f"{place}: {error._text}", *error.args[1:])
