"""The examples in the docstrings of Python modules print what they say."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the examples are Facula's")


def modules_with_examples():
    """Every module of the package whose text has a prompt in it, found without importing it."""
    root = Path(F.__file__).parent
    for found in pkgutil.walk_packages([str(root)], f"{F.__name__}.", onerror=lambda name: None):
        path = root.joinpath(*found.name.split(".")[1:])
        source = path / "__init__.py" if found.ispkg else path.with_suffix(".py")
        if source.exists() and source.name != "_op_docs.py" and ">>> " in source.read_text():
            yield found.name


@pytest.mark.parametrize("name", modules_with_examples() if IS_FACULA else [])
def test_examples(name, keep_random_state):
    module = importlib.import_module(name)
    tests = [t for t in doctest.DocTestFinder().find(module) if t.examples]
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in tests:
        test.globs["facula"] = F
        runner.run(test, out=output.append)
    assert tests or name.rpartition(".")[2].startswith("_"), "its objects say they are elsewhere"
    assert runner.failures == 0, "".join(output)
