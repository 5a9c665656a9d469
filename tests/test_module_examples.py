"""The examples in the docstrings of Python modules print what they say."""

import doctest
import importlib

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the examples are Facula's")

MODULES = [
    "__config__",
    "_checks",
    "_legacy_types",
    "_settings",
    "_symbolic",
    "amp.autocast_mode",
    "amp.grad_scaler",
    "autograd.grad_mode",
    "autograd.graph",
    "autograd.profiler",
    "autograd.profiler_util",
    "autograd.variable",
    "cpu",
    "nn.utils.clip_grad",
    "nn.utils.convert_parameters",
    "nn.utils.fusion",
    "nn.utils.init",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "optim",
    "optim._stateless",
    "optim.adadelta",
    "optim.adagrad",
    "optim.adam",
    "optim.adamax",
    "optim.adamw",
    "optim.asgd",
    "optim.lbfgs",
    "optim.lr_scheduler",
    "optim.nadam",
    "optim.optimizer",
    "optim.radam",
    "optim.rmsprop",
    "optim.rprop",
    "optim.sgd",
    "optim.sparse_adam",
    "optim.swa_utils",
    "random",
    "serialization",
    "storage",
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
