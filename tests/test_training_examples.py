"""The examples in the docstrings of the modules around training print what they say."""

import doctest
import importlib

import pytest

import facula

MODULES = [
    "_summary",
    "hub",
    "multiprocessing",
    "multiprocessing.spawn",
    "profiler",
    "safetensors",
    "utils.benchmark",
    "utils.collect_env",
    "utils.benchmark.utils.common",
    "utils.benchmark.utils.compare",
    "utils.benchmark.utils.timer",
    "utils.data",
    "utils.data._utils.collate",
    "utils.data._utils.pin_memory",
    "utils.data._utils.worker",
    "utils.data.dataloader",
    "utils.data.dataset",
    "utils.data.distributed",
    "utils.data.sampler",
    "utils.tensorboard",
    "utils.tensorboard.writer",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, keep_random_state):
    module = importlib.import_module(f"facula.{name}")
    tests = [t for t in doctest.DocTestFinder().find(module) if t.examples]
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in tests:
        test.globs["facula"] = facula
        runner.run(test, out=output.append)
    assert tests
    assert runner.failures == 0, "".join(output)
