"""No operator reads or writes device memory from the host, and none crashes on CUDA tensors.

Every row is called, and its derivative taken, on a driver that is not one (fake_cuda_driver.cpp),
whose memory can not be touched: code that takes a device pointer for a host pointer ends with a
segmentation fault. Kernels are not run, so values mean nothing here (test_cuda_rows.py compares
them on a device); any Python exception will do.
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


def main() -> None:
    """Prints the rows that crash; each runs in a fork, PROCESSES at a time."""
    from package_under_test import F
    from row_cases import cases, row_id

    assert F.ones(2).cuda().cpu().shape == (2,), "the fake driver works"
    running: dict[int, str] = {}

    def wait() -> None:
        pid, status = os.wait()
        name = running.pop(pid)
        if os.WIFSIGNALED(status):
            print(f"{name}: {signal.Signals(os.WTERMSIG(status)).name}", flush=True)

    for row, dtype in (case.values for case in cases(only=DTYPES)):
        if len(running) >= PROCESSES:
            wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a hang is a failure, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            check_row(row, dtype)
            os._exit(0)
        running[pid] = f"{row_id(row)} ({dtype})"
    while running:
        wait()


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
