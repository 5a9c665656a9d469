"""The package that the behaviour tests run against, as `F`.

It is facula, or any package with the same API that FACULA_TEST_PACKAGE names. With
FACULA_TEST_PACKAGE=torch the tests check their own expectations against PyTorch.
"""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

F = importlib.import_module(os.environ.get("FACULA_TEST_PACKAGE", "facula"))

IS_FACULA = F.__name__ == "facula"

_SOURCES = Path(__file__).resolve().parent.parent / "src" / "facula"


def facula_module(dotted_name: str) -> ModuleType:
    """Facula's own Python module, such as "utils.checkpoint", on top of the package under test.

    These modules use the public API only, so they can also be tested on top of PyTorch: they are
    then loaded from their file while the name `facula` stands for the other package.
    """
    if IS_FACULA:
        return importlib.import_module(f"facula.{dotted_name}")
    alias = f"facula_on_{F.__name__}.{dotted_name}"
    if alias not in sys.modules:
        path = _SOURCES.joinpath(*dotted_name.split(".")).with_suffix(".py")
        spec = importlib.util.spec_from_file_location(alias, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        hidden = sys.modules.get("facula")
        sys.modules["facula"] = F
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[alias]
            raise
        finally:
            if hidden is None:
                del sys.modules["facula"]
            else:
                sys.modules["facula"] = hidden
    return sys.modules[alias]


def assert_close(actual, expected, rtol: float = 1e-6, atol: float = 1e-8) -> None:
    """Asserts equal shape and nearly equal values; `expected` may be a tensor, number or list."""
    if not isinstance(expected, F.Tensor):
        expected = F.tensor(expected)
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    )
    dtype = F.complex128 if actual.is_complex() or expected.is_complex() else F.float64
    got, want = actual.detach().to(dtype), expected.detach().to(dtype)
    close = (got - want).abs() <= atol + rtol * want.abs()
    assert bool((close | (got == want)).all()), f"{actual} instead of {expected}"


def assert_equal(actual, expected) -> None:
    """Asserts equal shape and exactly equal values."""
    assert_close(actual, expected, rtol=0.0, atol=0.0)


def leaf(values, dtype=None):
    """A float64 (or `dtype`) tensor of `values` that requires grad."""
    return F.tensor(values, dtype=dtype or F.float64, requires_grad=True)
