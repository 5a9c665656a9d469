"""Files that are compiled together must not see each other's names."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gen.batches import batches, leaves_macros, own_names  # noqa: E402


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_own_names(write):
    path = write(
        "a.cpp",
        """#include "x.h"
namespace facula {
namespace {

struct Plan {
  int inner;
};
constexpr int64_t kGrain = 1 << 10;
using Key = std::pair<int, int>;
template <class T, int N>
FACULA_INLINE void
long_name(T* a,
          int b) {
  call(a);
}
std::mutex lock;
int table[4] = {1, 2, 3, 4};

}  // namespace

static int helper(int x) { return x; }
void shared() {}
}  // namespace facula
""",
    )
    assert own_names(path) == {"Plan", "kGrain", "Key", "long_name", "lock", "table", "helper"}


def test_equal_names_are_kept_apart(write):
    text = "namespace {\n\nint f() { return %d; }\n\n}  // namespace\n"
    a, b = write("a.cpp", text % 1), write("b.cpp", text % 2)
    c = write("c.cpp", "int g() { return 3; }\n")
    assert batches([a, b, c], 5) == [[a, c], [b]]
    assert batches([a, c], 1) == [[a], [c]]


def test_a_macro_left_behind_keeps_a_file_alone(write):
    a = write("a.cpp", "#define N 3\nint x = N;\n")
    b = write("b.cpp", "#define N 4\nint y = N;\n#undef N\n")
    c = write("c.cpp", "int z;\n")
    assert leaves_macros(a) and not leaves_macros(b)
    assert batches([a, b, c], 5) == [[b, c], [a]]


def test_every_file_is_in_one_batch():
    files = [f for f in (ROOT / "csrc/kernels").glob("*.cpp") if not f.name.endswith("_isa.cpp")]
    made = batches(files, 5)
    assert sorted(f for batch in made for f in batch) == sorted(files)
    assert len(made) < len(files) / 3
