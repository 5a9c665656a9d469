"""Thread-local storage of the library: small enough to lie beside the thread's own."""

import platform
import struct
import sys

import pytest

import facula._C

PT_TLS = 7
# What the dynamic linker of glibc sets aside for libraries loaded later, for all of them together.
RESERVED = 512


def thread_storage(path):
    """Bytes that each thread holds for the 64-bit little-endian ELF file at `path`."""
    with open(path, "rb") as file:
        header = file.read(64)
        (table,) = struct.unpack_from("<Q", header, 32)
        entry_size, entries = struct.unpack_from("<HH", header, 54)
        file.seek(table)
        for _ in range(entries):
            entry = file.read(entry_size)
            if struct.unpack_from("<I", entry)[0] == PT_TLS:
                return struct.unpack_from("<Q", entry, 40)[0]
    return 0


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="ELF of 64 bits",
)
def test_it_fits_what_is_reserved():
    # Some forty reads of it in every call are two instructions each while it fits, and 10 % of an
    # addition when it does not. Other libraries loaded before may have taken a part.
    assert 0 < thread_storage(facula._C.__file__) <= RESERVED * 3 // 4
