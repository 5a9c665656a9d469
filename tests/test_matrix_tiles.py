"""The loops for matrix tiles (AMX), also where the processor has none.

tests/cpp/tile_emulator.cpp carries out the instructions that the processor does not know. The
choice is made when the library is loaded, so each file of tests runs in a process of its own.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from facula import _C

TESTS = Path(__file__).resolve().parent
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
PRODUCT = "import facula; x = facula.ones(64, 64).bfloat16(); print((x @ x).float().sum().item())"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        platform.system() != "Linux" or _C._isa() < 2, reason="tiles come with AVX-512 on Linux"
    ),
    # The runtime of a sanitizer has to be the first library of a process, and so has the emulator.
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="another library is loaded first"),
]


def processor_has_tiles() -> bool:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return " amx_tile" in file.read()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The emulator's library; None where the processor needs none."""
    if processor_has_tiles():
        return None
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    library = tmp_path_factory.mktemp("tiles") / "tile_emulator.so"
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC"]
    source = TESTS / "cpp" / "tile_emulator.cpp"
    subprocess.run([COMPILER, *flags, str(source), "-o", str(library)], check=True)
    return library


def with_tiles(command: list[str], emulator: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FACULA_ISA": "tiles"}
    if emulator:
        environment["LD_PRELOAD"] = str(emulator)
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )


def test_products_use_tiles_where_they_are(emulator: Path | None) -> None:
    if emulator is None:
        pytest.skip("the processor has tiles")
    ran = with_tiles(["-c", PRODUCT], emulator)
    assert (ran.returncode, float(ran.stdout)) == (0, 64.0**3), ran.stderr
    assert with_tiles(["-c", PRODUCT], None).returncode == -signal.SIGILL


FILES = {
    "test_products_of_halves.py": "float16",
    "test_convolution_direct.py": "float16",
    "test_nn_attention.py": "float16",
    "test_nn_recurrent.py": "halves or half",
}


@pytest.mark.parametrize("file", FILES)
def test_loops_pass_their_tests(emulator: Path | None, file: str) -> None:
    # pytest's own handler of faults would take the place of the emulator's.
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-k", FILES[file]]
    ran = with_tiles(["-m", "pytest", *options, str(TESTS / file)], emulator)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
