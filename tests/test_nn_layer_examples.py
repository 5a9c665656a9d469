"""The examples in the docstrings of layers print what they say."""

import doctest
import importlib

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the examples are Facula's")

MODULES = [
    "_functions.attention",
    "attention",
    "modules.adaptive",
    "modules.attention",
    "modules.conv",
    "modules.lazy",
    "modules.linear",
    "modules.rnn",
    "modules.sparse",
    pytest.param(
        "modules.transformer",
        marks=pytest.mark.skipif(not hasattr(F.nn, "LayerNorm"), reason="needs LayerNorm"),
    ),
    "utils.rnn",
]


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name, keep_random_state):
    module = importlib.import_module(f"facula.nn.{name}")
    runner = doctest.DocTestRunner(verbose=False)
    output: list[str] = []
    tests = [t for t in doctest.DocTestFinder().find(module) if t.examples]
    assert tests
    for test in tests:
        test.globs["facula"] = F
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
