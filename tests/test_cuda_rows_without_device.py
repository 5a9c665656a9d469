"""No operator reads or writes device memory from the host, and none crashes on CUDA tensors.

Every row is called, and its derivative taken, on a driver that is not one (fake_cuda_driver.cpp),
whose memory can not be touched: code that takes a device pointer for a host pointer ends with a
segmentation fault. Kernels are not run, so values mean nothing here (test_cuda_rows.py compares
them on a device); any Python exception will do.

Every row runs with one of the dtypes, so that neighbours in the table take turns;
``FACULA_TEST_ALL_DTYPES=1`` runs all rows with all of them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
PROCESSES = os.cpu_count() or 1
DTYPES = ("float32", "int64", "complex64", "bfloat16")


def check_row(row, dtype: str) -> None:
    """In a process of its own: all samples, forward and backward."""
    from package_under_test import F
    from row_cases import callable_of, results
    from test_cuda_rows import chosen_samples, on_device, with_dtypes

    function = callable_of(row)
    for sample in chosen_samples(row, dtype, "forward", at_most=4):
        with contextlib.suppress(Exception):
            args, kwargs = with_dtypes(F, *sample.map(on_device))
            results(function(*args, **kwargs))
        with contextlib.suppress(Exception):
            args, kwargs = with_dtypes(F, *sample.map(on_device))
            for tensor in [*args, *kwargs.values()]:
                if isinstance(tensor, F.Tensor) and tensor.is_floating_point():
                    tensor.requires_grad_()
            outputs = [r for r in results(function(*args, **kwargs)) if r.requires_grad]
            F.autograd.backward(outputs, [F.ones_like(r) for r in outputs])


def chosen_cases() -> list:
    """(row, dtype): each row once, with a dtype that it has."""
    from row_cases import cases, row_id

    found: dict[str, list] = {}
    for case in cases(only=DTYPES):
        found.setdefault(row_id(case.values[0]), []).append(case.values)
    if os.environ.get("FACULA_TEST_ALL_DTYPES"):
        return [pair for pairs in found.values() for pair in pairs]
    return [pairs[i % len(pairs)] for i, pairs in enumerate(found.values())]


def crashed(groups: list[list]) -> list[list]:
    """The groups of cases that crash; each runs in a fork, PROCESSES at a time."""
    running: dict[int, list] = {}
    found = []

    def wait() -> None:
        pid, status = os.wait()
        group = running.pop(pid)
        if os.WIFSIGNALED(status):
            found.append([*group, signal.Signals(os.WTERMSIG(status)).name])
        elif status:
            found.append([*group, f"exit status {os.waitstatus_to_exitcode(status)}"])

    for group in groups:
        if len(running) >= PROCESSES:
            wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60 * len(group))  # a hang is a failure, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for row, dtype in group:
                check_row(row, dtype)
            os._exit(0)
        running[pid] = group
    while running:
        wait()
    return found


def main() -> None:
    """Prints the rows that crash."""
    from package_under_test import F
    from row_cases import row_id

    assert F.ones(2).cuda().cpu().shape == (2,), "the fake driver works"
    cases = chosen_cases()
    # Forks take time: rows share one, and are alone only where it crashed.
    groups = [cases[i : i + 12] for i in range(0, len(cases), 12)]
    for (row, dtype), reason in crashed(
        [[case] for group in crashed(groups) for case in group[:-1]]
    ):
        print(f"{row_id(row)} ({dtype}): {reason}", flush=True)


@pytest.mark.skipif(
    not COMPILER or not sys.platform.startswith("linux"), reason="needs a C++ compiler"
)
def test_device_memory_is_left_to_the_device(tmp_path):
    for source, library in (
        ("fake_cuda_driver.cpp", "libcuda.so.1"),
        ("fake_nvrtc.cpp", "libnvrtc.so.12"),
    ):
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", tmp_path / library, SOURCES / source], check=True)
    from package_under_test import F

    path = os.pathsep.join([str(Path(F.__file__).parents[1]), *sys.path])
    env = {
        **os.environ,
        "FACULA_CUDA_PATH": str(tmp_path),
        "FACULA_CACHE_DIR": str(tmp_path / "cache"),
        "FAKE_CUDA_GUARD": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": path,
    }
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    crashed = done.stdout.splitlines()
    assert not crashed, f"{len(crashed)} crashed:\n" + "\n".join(crashed)


if __name__ == "__main__":
    main()
