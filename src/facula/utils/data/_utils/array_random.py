"""The state of ``numpy.random``, of which each worker process has its own."""

from __future__ import annotations

import functools
from typing import Any

from facula import _C

_shared: Any = None  # the generator of numpy.random whose words have been found
_size = 0  # bytes of its state


def can_exchange() -> bool:
    """Whether the state of ``numpy.random`` can be exchanged with that of a worker."""
    global _shared, _size
    import numpy.random

    state = numpy.random.mtrand._rand
    if _shared is None:
        bits = type(state._bit_generator) is numpy.random.MT19937
        plain = type(state) is numpy.random.RandomState
        _size = _C._find_array_random(state, numpy.random.RandomState(0)) if plain and bits else 0
        _shared = state._bit_generator
    # A program may give it another source of numbers.
    return _size > 0 and state._bit_generator is _shared


def seed_arrays(base_seed: int, worker: int) -> None:
    """Seeds ``numpy.random`` as a worker process does."""
    import numpy

    if can_exchange() and seeds_as_numpy():
        # A new process pays for each page of code that it comes upon, of which this takes few. That
        # numpy.random was seeded, NumPy knows.
        numpy.random.seed(0)
        _C._exchange_array_random(states_of_workers(base_seed, worker, 1)[0])
    else:
        _seed_by_numpy(base_seed, worker)


def prepare_to_seed() -> None:
    """Finds out, before there is a process, how it can be done there."""
    if can_exchange():
        seeds_as_numpy()


def _seed_by_numpy(base_seed: int, worker: int) -> None:
    import numpy

    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


def states_of_workers(base_seed: int, first: int, count: int) -> list[bytearray]:
    """What so many worker processes begin with."""
    if seeds_as_numpy():
        return _C._seeded_array_random(base_seed, first, count)
    return [_seeded_by_numpy(base_seed, first + i) for i in range(count)]


@functools.cache
def seeds_as_numpy() -> bool:
    """Whether NumPy seeds as ever, so that it can be done without it, which takes less time."""
    seed = 1 << 40 | 3
    return _C._seeded_array_random(seed, 5, 1) == [_seeded_by_numpy(seed, 5)]


def _seeded_by_numpy(base_seed: int, worker: int) -> bytearray:
    state = bytearray(_size)
    _C._exchange_array_random(state)
    try:
        _seed_by_numpy(base_seed, worker)
    finally:
        _C._exchange_array_random(state)
    return state


def state_now() -> bytearray:
    """The state that ``numpy.random`` is in."""
    state = bytearray(_size)
    _C._exchange_array_random(state)
    _C._exchange_array_random(bytearray(state))
    return state


class KeptArrays:
    """The state of ``numpy.random``, to go on from there."""

    def __init__(self) -> None:
        import numpy

        # To ask NumPy takes longer than all the rest.
        self._bytes = state_now() if can_exchange() else None
        self._state = numpy.random.get_state() if self._bytes is None else None

    def put_back(self) -> None:
        import numpy

        if self._bytes is not None and can_exchange():
            _C._exchange_array_random(self._bytes)
        elif self._state is not None:
            numpy.random.set_state(self._state)


def as_of_numpy(state: bytearray) -> Any:
    """The same in the form that ``numpy.random.set_state`` takes."""
    import numpy

    kept = bytearray(state)
    _C._exchange_array_random(kept)
    try:
        return numpy.random.get_state()
    finally:
        _C._exchange_array_random(kept)
