"""Functions that a loader takes to be harmless: none writes to its arguments, and what is said to
be new lies in no other's memory."""

import warnings

import numpy
import pytest

import facula
from facula import nn
from facula.utils.data._utils import harmless

SELF, INDEX, MASK = "self", "index", "mask"
SHAPES = ((4,), (2, 2), (), (1, 4))
ARGUMENTS = [
    *((), (0,), (1,), (0.5,), (0, 0), (0, 1), (1, 1), ((0,),), ((0, 1),), ((),), (2,), (0.0, 9.0)),
    *((SELF,), (SELF, SELF), (0, SELF), (INDEX,), (0, INDEX), (0, INDEX, SELF), (MASK, 1)),
    (MASK, SELF, SELF),
]
# From the third on, an array may be written to, so no call with one is read.
ARRAY_ARGUMENTS = [
    *((), (0,), (1,), (2,), (-1,), (0, 0), (0, 1), (1, 0), (0.0, 9.0), ((0,),), ((0, 1),), (SELF,)),
    *((None, None), ("float32",), ("int64",), ((0, 0),)),
]


def of(arguments, value, index, mask):
    stand_for = {SELF: value, INDEX: index, MASK: mask}
    return [stand_for.get(a, a) if isinstance(a, str) else a for a in arguments]


def outcomes(function, firsts, arguments):
    """What it returns wherever it takes the arguments."""
    for first in firsts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from flat(function(first, *arguments))
        except Exception:
            continue


def flat(result):
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from flat(part)
    else:
        yield result


FACULA = [
    *((facula, n) for n in harmless._COMPUTING + harmless._MAKING + harmless._PAIRS),
    *((facula, n) for n in harmless._OF_SEVERAL + harmless._DRAWN),
    *((facula.Tensor, n) for n in harmless._COMPUTING + harmless._PAIRS),
    *((nn.functional, n) for n in harmless._NN_FUNCTIONS),
]
NUMPY = [
    *((numpy, n) for n in (*harmless._ARRAY_COMPUTING, "sort")),
    *((numpy.ndarray, n) for n in harmless._ARRAY_COMPUTING),
]


@pytest.mark.parametrize("dtype", [facula.float32, facula.int64, facula.bool])
def test_tensors_that_are_new_are_nobody_elses(dtype):
    tried = set()
    for owner, name in FACULA:
        function = getattr(owner, name, None)
        if not callable(function):
            continue
        for shape in SHAPES:
            value = facula.ones(shape, dtype=dtype)
            before = value.clone()
            index = facula.zeros(shape, dtype=facula.int64)
            mask = facula.zeros(shape, dtype=facula.bool)
            for given in ARGUMENTS:
                if owner is nn.functional and 1 in given[1:]:
                    continue  # it may mean: in place
                for made in outcomes(function, [value, [value]], of(given, value, index, mask)):
                    tried.add(name)
                    if isinstance(made, facula.Tensor) and made.numel():
                        here = value.untyped_storage().data_ptr()
                        assert made.untyped_storage().data_ptr() != here, (name, shape, given)
                assert facula.equal(value, before), (name, shape, given)
    assert len(tried) > 100


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.int64, bool])
def test_arrays_that_are_new_are_nobody_elses(dtype):
    tried = set()
    for owner, name in NUMPY:
        function = getattr(owner, name, None)
        if not callable(function):
            continue
        for shape in SHAPES:
            value = numpy.ones(shape, dtype)
            before = value.copy()
            for given in ARRAY_ARGUMENTS:
                for made in outcomes(function, [value, [value]], of(given, value, None, None)):
                    tried.add(name)
                    if isinstance(made, numpy.ndarray) and made.size:
                        assert not numpy.shares_memory(made, value), (name, shape, given)
                assert numpy.array_equal(value, before), (name, shape, given)
    assert len(tried) > 50


def test_names_are_found_by_what_they_stand_for():
    assert harmless.sort_of(facula.sin) == "tensor"
    assert harmless.sort_of(facula.Tensor.view) == "view"
    assert harmless.sort_of(numpy.sin) == "ufunc"
    assert harmless.sort_of(numpy.float32) == "scalar"
    assert harmless.sort_of(numpy.diff) == "array view"  # of nothing, it gives what it is given

    def sin(x):
        return x

    class Odd:
        @property
        def __name__(self):
            raise AssertionError("nobody may ask")

    assert harmless.sort_of(sin) == "" and harmless.sort_of(Odd()) == ""
