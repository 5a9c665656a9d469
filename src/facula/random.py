"""Seeds and the state of the default random number generator.

Each CUDA device has a default generator of its own (``facula.cuda.get_rng_state``); the seeds that
are set here are theirs, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from facula import _C

if TYPE_CHECKING:
    from facula import Tensor

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]

default_generator: _C.Generator = _C._default_generator()


def manual_seed(seed: int) -> _C.Generator:
    """Starts the default generators of all devices from ``seed`` and returns the host's.

    Args:
        seed: an integer from -2**63 to 2**64 - 1; negative ones count from 2**64 downwards.

    Example::

        >>> _ = facula.manual_seed(0)
        >>> facula.rand(2)
        tensor([0.4963, 0.7682])
        >>> _ = facula.manual_seed(0)
        >>> facula.rand(2)
        tensor([0.4963, 0.7682])
    """
    seed = int(seed)
    default_generator.manual_seed(seed)
    _C._seed_devices(seed)
    return default_generator


def seed() -> int:
    """Starts the default generators from the system's entropy and returns the seed that it chose.

    Example::

        >>> facula.seed() == facula.initial_seed()
        True
    """
    chosen = default_generator.seed()
    _C._seed_devices(chosen)
    return chosen


def initial_seed() -> int:
    """The seed from which the default generator started.

    Example::

        >>> _ = facula.manual_seed(7)
        >>> facula.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as bytes in PyTorch's layout.

    Example::

        >>> facula.get_rng_state().shape
        facula.Size([5056])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Puts the default generator into a state that :func:`get_rng_state` returned.

    Example::

        >>> state = facula.get_rng_state()
        >>> first = facula.rand(3)
        >>> facula.set_rng_state(state)
        >>> bool((facula.rand(3) == first).all())
        True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[object] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Runs a block whose random numbers leave the default generators as they were before.

    Args:
        devices: the CUDA devices whose generators are kept, too; by default all of them.
        enabled: False runs the block without saving anything.
        device_type: accepted for PyTorch's sake.

    Example::

        >>> _ = facula.manual_seed(0)
        >>> with facula.random.fork_rng():
        ...     _ = facula.rand(100)
        >>> facula.rand(2)
        tensor([0.4963, 0.7682])
    """
    del device_type, _caller, _devices_kw
    if not enabled:
        yield
        return
    from facula import cuda

    kept = list(range(cuda.device_count())) if devices is None else list(devices)
    state = get_rng_state()
    states = [cuda.get_rng_state(device) for device in kept]
    try:
        yield
    finally:
        set_rng_state(state)
        for device, device_state in zip(kept, states, strict=True):
            cuda.set_rng_state(device_state, device)


def thread_safe_generator() -> _C.Generator | None:
    """The generator of this thread when it is a worker that loads data, else None.

    Example::

        >>> facula.random.thread_safe_generator() is None
        True
    """
    here = _C._acting_as()
    return None if here is None else here[1]
