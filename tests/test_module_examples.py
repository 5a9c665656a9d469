"""The examples in the docstrings of Python modules print what they say."""

import doctest
import importlib
import pkgutil

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the examples are Facula's")

MODULES = [
    "__config__",
    "_checks",
    "_legacy_types",
    "_settings",
    "_symbolic",
    "autograd.grad_mode",
    "autograd.graph",
    "autograd.profiler",
    "autograd.profiler_util",
    "autograd.variable",
    "cpu",
    "distributions",
    "quasirandom",
    "random",
    "serialization",
    "accelerator",
    "backends",
    "backends.cpu",
    "backends.cuda",
    "backends.cudnn",
    "backends.mha",
    "mps",
    "overrides",
    "storage",
    "testing._comparison",
    "testing._creation",
    "utils",
    "utils.dlpack",
    "utils.weak",
    "xpu",
]
if IS_FACULA:
    MODULES += [
        f"distributions.{m.name}"
        for m in pkgutil.iter_modules(F.distributions.__path__)
        if m.name not in ("_binary", "exp_family")  # nothing to show on its own
    ]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, keep_random_state):
    module = importlib.import_module(f"{F.__name__}.{name}")
    tests = [t for t in doctest.DocTestFinder().find(module) if t.examples]
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in tests:
        test.globs["facula"] = F
        runner.run(test, out=output.append)
    assert tests
    assert runner.failures == 0, "".join(output)
