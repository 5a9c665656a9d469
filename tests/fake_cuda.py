"""Programs on a CUDA driver that is not one (cpp/fake_cuda_driver.cpp), where there is no GPU."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from package_under_test import F

SOURCES = Path(__file__).parent / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
needs_compiler = pytest.mark.skipif(
    not COMPILER or not sys.platform.startswith("linux"), reason="needs a C++ compiler"
)
# What programs begin with; fake_cuda_library.py has more.
HEAD = "import facula as F\nfrom facula import cuda\n"


@pytest.fixture(scope="session")
def fake_cuda_folder(tmp_path_factory):
    """Where the libraries of the fake driver lie."""
    folder = tmp_path_factory.mktemp("fake_cuda")
    command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC"]
    for source, library in (
        ("fake_cuda_driver.cpp", "libcuda.so.1"),
        ("fake_nvrtc.cpp", "libnvrtc.so.12"),
        ("fake_cupti.cpp", "libcupti.so.13"),
    ):
        subprocess.run([*command, "-o", folder / library, SOURCES / source], check=True)
    return folder


@pytest.fixture
def run_on_fake_cuda(fake_cuda_folder):
    """Runs a program on the fake driver; it fails by raising, by hanging, or by misuse."""
    package = str(Path(F.__file__).parents[1])

    def run(program: str, misuses: bool = False, **variables: str) -> str:
        path = os.pathsep.join([package, *sys.path])
        env = {
            **os.environ,
            "FACULA_CUDA_PATH": str(fake_cuda_folder),
            "FACULA_CACHE_DIR": str(fake_cuda_folder / "cache"),
            "PYTHONPATH": path,
            **variables,
        }
        text = HEAD + textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, "-c", text],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            lines = "\n".join(f"{n:3} {line}" for n, line in enumerate(text.splitlines(), 1))
            pytest.fail(f"{lines}\n{done.stderr}", pytrace=False)
        assert misuses or "misuse" not in done.stderr, done.stderr
        assert "Exception ignored" not in done.stderr, done.stderr
        return done.stdout

    return run
