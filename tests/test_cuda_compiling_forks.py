"""Processes that are forked off while others compile kernels, on a driver and with a compiler that
are none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")

# The kernels of attention's gradients are compiled on other threads. Each child exits as a program
# does, with the clean-up of all libraries.
FORKS = """
import os, sys
import facula as F
q, k, v = (F.rand(1, 1, 64, 64).to(F.bfloat16).cuda().requires_grad_() for _ in range(3))
F.nn.functional.scaled_dot_product_attention(q, k, v)
for _ in range(3):
    child = os.fork()
    if not child:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
F.autograd.grad(F.nn.functional.scaled_dot_product_attention(q, k, v), [q, k, v], F.empty_like(q))
"""


@pytest.mark.skipif(
    not COMPILER or not sys.platform.startswith("linux"), reason="needs a C++ compiler"
)
def test_a_forked_process_does_not_wait_for_the_compiler(tmp_path):
    from package_under_test import F

    for source, library in (("fake_cuda_driver", "libcuda.so.1"), ("slow_nvrtc", "libnvrtc.so.12")):
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", tmp_path / library]
        subprocess.run([*command, SOURCES / f"{source}.cpp"], check=True)
    env = {
        **os.environ,
        "FACULA_CUDA_PATH": str(tmp_path),
        "FACULA_CACHE_DIR": str(tmp_path / "cache"),
        "FACULA_READY_KERNELS": "",
        "PYTHONPATH": os.pathsep.join([str(Path(F.__file__).parents[1]), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", FORKS], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-3000:]
