"""``jit``, ``compiler`` and seeds of devices answer as PyTorch does in plain Python."""

import pytest
from package_under_test import F


def test_nothing_is_scripted_traced_or_compiled():
    assert not F.jit.is_scripting()
    assert not F.jit.is_tracing()
    assert not F.compiler.is_compiling()


@pytest.mark.parametrize(
    "mark",
    [
        F.jit.ignore,
        F.jit.ignore(),
        F.jit.unused,
        F.jit.export,
        F.jit.script_if_tracing,
        F.compiler.disable,
        F.compiler.disable(recursive=False),
    ],
)
def test_marked_functions_compute_what_they_did(mark):
    def double(x):
        return 2 * x

    assert mark(double)(3) == 6


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        ([1, 2], list[int], True),
        ([1, "a"], list[int], False),
        ({"a": 1.0}, dict[str, float], True),
        ({"a": 1}, dict[str, float], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        ((1,), tuple[int, str], False),
        (None, int | None, True),
        ("a", int | None, False),
        (1, (str, int), True),
    ],
)
def test_isinstance_looks_into_containers(value, kind, fits):
    assert F.jit.isinstance(value, kind) is fits


def test_seeding_absent_devices_leaves_the_stream_of_the_host():
    if F.cuda.is_available():
        pytest.skip("there is a device")
    F.manual_seed(3)
    want = F.rand(4)
    F.manual_seed(3)
    F.cuda.manual_seed_all(9)
    F.cuda.manual_seed(9)
    assert F.equal(F.rand(4), want)
    assert F.cuda.get_rng_state_all() == []


def test_modules_may_be_listed_as_often_as_they_are_used():
    shared = F.nn.ReLU()
    net = F.nn.Sequential(shared, shared)
    assert len(list(net.modules())) == 2
    assert len(list(net.modules(remove_duplicate=False))) == 3
