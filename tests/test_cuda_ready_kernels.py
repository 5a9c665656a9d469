"""Kernels that were compiled with the package: made by gen/ready_kernels.py, found by their text.

Runs on a driver and an NVRTC that are not ones, so nothing is compiled here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(
        not COMPILER or not sys.platform.startswith("linux"), reason="needs a C++ compiler"
    ),
    pytest.mark.skipif(
        "libasan" in os.environ.get("LD_PRELOAD", ""), reason="the build's tool runs without it"
    ),
]

ADD = "import facula as F; F.zeros(4, 4, device='cuda').T + 1"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder with both libraries."""
    folder = tmp_path_factory.mktemp("cuda")
    for source, library in (
        ("fake_cuda_driver.cpp", "libcuda.so.1"),
        ("fake_nvrtc.cpp", "libnvrtc.so.12"),
    ):
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", folder / library, SOURCES / source], check=True)
    return folder


def run(libraries: Path, cache: Path, ready: Path | None = None, program: str = ADD) -> set[str]:
    """The names of the kernels that a program had to compile."""
    env = {
        **os.environ,
        "FACULA_CUDA_PATH": str(libraries),
        "FACULA_CACHE_DIR": str(cache),
        "FACULA_READY_KERNELS": str(ready or ""),
        "PYTHONPATH": package_path(),
    }
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    folder = cache / "kernels"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def package_path() -> str:
    from package_under_test import F

    return os.pathsep.join([str(Path(F.__file__).parents[1]), *sys.path])


def make_ready(
    libraries: Path, to: Path, *options: str, **env: str
) -> subprocess.CompletedProcess[str]:
    from package_under_test import F

    package = Path(F.__file__).parent
    env = {
        **os.environ,
        "CUDA_HOME": str(libraries),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        **env,
    }
    return subprocess.run(
        [sys.executable, "-m", "gen.ready_kernels", "--extension", F._C.__file__]
        + ["--generated", str(package), "--to", str(to), "--required", *options],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )


def test_a_ready_kernel_is_not_compiled(libraries, tmp_path):
    compiled = run(libraries, tmp_path / "first")
    assert compiled and all(name.endswith("-12.9") for name in compiled)
    ready = tmp_path / "ready"
    ready.mkdir()
    for name in compiled:
        shutil.copy(tmp_path / "first" / "kernels" / name, ready / name.removesuffix("-12.9"))
    assert run(libraries, tmp_path / "second", ready) == set()
    # Another kernel, a damaged one and no folder at all: what is wanted is compiled.
    other = run(libraries, tmp_path / "third", ready, ADD.replace("+ 1", "* 2"))
    assert other and not other & compiled
    for path in ready.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert run(libraries, tmp_path / "fourth", ready) == compiled
    assert run(libraries, tmp_path / "fifth", tmp_path / "nowhere") == compiled


def test_the_calls_that_make_them_work(libraries, tmp_path):
    to = tmp_path / "ready"
    done = make_ready(libraries, to)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8.0" in done.stdout and "9.0" in done.stdout
    attention = """
import facula as F
q = F.zeros(2, 3, 40, 64, dtype=F.bfloat16, device='cuda', requires_grad=True)
F.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
"""
    assert run(libraries, tmp_path / "cache", to, attention) == set()
    # Nothing has changed since, so nothing is done.
    before = {path: path.stat().st_mtime_ns for path in to.iterdir()}
    again = make_ready(libraries, to)
    assert again.returncode == 0 and again.stdout == ""
    assert {path: path.stat().st_mtime_ns for path in to.iterdir()} == before
    other = make_ready(libraries, to, "--capabilities", "90")
    assert other.returncode == 0 and len(list(to.iterdir())) < len(before)


def test_without_a_compiler_the_reason_is_told(libraries, tmp_path):
    nothing = tmp_path / "bin"
    nothing.mkdir()
    done = make_ready(libraries, tmp_path / "ready", PATH=str(nothing), CXX="")
    assert done.returncode == 1 and "first use: no C++ compiler" in done.stdout
    assert not (tmp_path / "ready").exists()
