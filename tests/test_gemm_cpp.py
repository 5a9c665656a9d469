"""Matrix products, the thread pool and the host allocator, checked from C++.

tests/cpp/check_gemm.cpp is compiled with the sources it checks, for this machine's instruction set,
and run: products of every dtype against a plain loop (strides, transposes, broadcast batches, alpha
and beta), parallel loops, blocks of memory, all of it from several threads and in forked children.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
SOURCES = [
    "tests/cpp/check_gemm.cpp",
    "csrc/core/host_allocator.cpp",
    "csrc/core/thread_pool.cpp",
    "csrc/core/per_thread.cpp",
    "csrc/core/thread_scratch.cpp",
    "csrc/cpu/amx.cpp",
    "csrc/cpu/blas.cpp",
    "csrc/cpu/gemm.cpp",
    "csrc/cpu/gemm_amx.cpp",
    "csrc/cpu/gemm_amx_isa.cpp",
    "csrc/cpu/gemm_bf16.cpp",
    "csrc/cpu/gemm_blas.cpp",
    "csrc/cpu/gemm_micro_isa.cpp",
    "csrc/cpu/gemm_packed.cpp",
    "csrc/cpu/gemm_panels_double_isa.cpp",
    "csrc/cpu/gemm_panels_float_isa.cpp",
    "csrc/cpu/gemm_vector_isa.cpp",
]
FLAGS = ["-std=c++20", "-O1", "-pthread", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"]


def openblas_library() -> Path | None:
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in ("libscipy_openblas.so", "libscipy_openblas.dylib"):
            if (path := Path(folder) / "lib" / name).exists():
                return path
    return None


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("gemm")
    flags = [*FLAGS, f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'src/facula'}", "-DFACULA_ISA=baseline"]
    if platform.machine() in ("x86_64", "AMD64"):
        flags.append("-march=native")

    def build(source: str) -> str:
        target = folder / (Path(source).stem + ".o")
        command = [str(COMPILER), *flags, "-c", str(ROOT / source), "-o", str(target)]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0 and "c++20" in built.stderr:
            pytest.skip("the C++ compiler has no C++20")
        assert built.returncode == 0, built.stderr
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, SOURCES))
    linked = folder / "check_gemm"
    subprocess.run([str(COMPILER), *objects, "-pthread", "-ldl", "-o", str(linked)], check=True)
    return linked


def test_products_pool_and_allocator_hold_against_plain_loops(program: Path) -> None:
    library = openblas_library()
    if library is None:
        pytest.skip("needs scipy-openblas32")
    done = subprocess.run([program, str(library)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


def test_missing_library_names_the_package_to_install(program: Path, tmp_path: Path) -> None:
    missing = tmp_path / "libmissing.so"
    done = subprocess.run([program, str(missing)], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "pip install scipy-openblas32" in done.stdout + done.stderr
