"""Public names of the transforms are documented, and their examples print what they say."""

import doctest
import importlib
import inspect

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the docstrings are Facula's")

MODULES = ("func", "autograd.forward_ad", "autograd.functional", "utils._pytree")


def public_objects():
    if not IS_FACULA:
        return []
    found = []
    for name in MODULES:
        module = importlib.import_module(f"facula.{name}")
        found.append(pytest.param(module, id=name))
        for public in module.__all__:
            value = getattr(module, public)
            if getattr(value, "__module__", "").startswith("facula"):  # no alias of typing
                found.append(pytest.param(value, id=f"{name}.{public}"))
    return found


# Types of results and questions whose answer is in their name.
WITHOUT_EXAMPLE = ("UnpackedDualTensor", "TreeSpec", "LeafSpec", "is_namedtuple", "is_structseq")


@pytest.mark.parametrize("value", public_objects())
def test_documented_with_an_example_that_runs(value):
    text = inspect.getdoc(value) or ""
    assert text.strip(), "no docstring"
    parsed = doctest.DocTestParser().get_doctest(text, {"facula": F}, "example", None, None)
    if not value.__name__.startswith(WITHOUT_EXAMPLE):
        assert parsed.examples, "no example"
    output = []
    result = doctest.DocTestRunner(verbose=False).run(parsed, out=output.append)
    assert result.failed == 0, "".join(output)
