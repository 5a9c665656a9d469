"""The loops of instruction sets below this machine's own, which other machines run.

The choice is made when the library is loaded, so each file of tests runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from facula import _C

BELOW = ["baseline", "v3"][: _C._isa()]  # a build for one machine has level 0 only
FILES = [
    "test_block_conversions.py",
    "test_convolution_direct.py",
    "test_distances.py",
    "test_grids.py",
    "test_half_conversions.py",
    "test_half_tables.py",
    "test_image_paths.py",
    "test_kernel_paths.py",
    "test_layer_kernels.py",
    "test_loops_of_halves.py",
    "test_norms.py",
    "test_rows_forward.py",
    "test_short_lines.py",
    "test_spectral_lanes.py",
    "test_vector_math.py",
]


@pytest.mark.timeout(900)
@pytest.mark.skipif(not BELOW, reason="built for one instruction set")
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("isa", BELOW)
def test_loops_pass_their_tests(isa: str, file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, str(Path(__file__).parent / file)],
        capture_output=True,
        text=True,
        env={**os.environ, "FACULA_ISA": isa},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
