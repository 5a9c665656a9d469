"""What is done to positions on devices, run on the host: the results are those of the host's loops.

Both forms of csrc/sparse/pattern.h are there: loops, and operators (device_pattern.cpp).
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from package_under_test import IS_FACULA, F
from sparse_calls import CASES, Inputs, cases, compare, gradients, outcome

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="about Facula's own two forms")
DTYPES = [F.float32, F.float64, F.bfloat16, F.complex64, F.int64]
FILES = ["", "_batches", "_derived", "_gradients", "_meta", "_random"]


@contextmanager
def as_on_a_device():
    before = F._C._sparse_host_as_device(True)
    try:
        yield
    finally:
        F._C._sparse_host_as_device(before)


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_both_forms_give_the_same(layout, name):
    call = cases(layout)[name]
    for dtype in DTYPES:
        inputs, others = Inputs(layout, dtype=dtype), Inputs(layout, dtype=dtype)
        expected = outcome(call, inputs)
        with as_on_a_device():
            found = outcome(call, others)
        compare(found, expected)
        if isinstance(expected, Exception):
            continue
        expected = gradients(expected, inputs)
        with as_on_a_device():
            found = gradients(found, others)
        compare(found, expected)


@pytest.mark.parametrize("rows", FILES)
def test_operators_pass_the_tests_of_loops(rows, tmp_path):
    (tmp_path / "as_on_a_device.py").write_text(
        "import facula\n"
        "facula._C._sparse_host_as_device(True)\n"
        "def pytest_sessionfinish(session):\n"
        "    assert facula._C._sparse_host_as_device(True) and session.testscollected\n"
    )
    file = Path(__file__).parent / f"test_sparse{rows}.py"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    path = os.pathsep.join([str(tmp_path), str(Path(F.__file__).parents[1]), *sys.path])
    ran = subprocess.run(
        [*command, "-p", "as_on_a_device", str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
