"""CUDA devices: which there are, their memory, waiting for them.

The driver and the libraries are opened when first used; without them ``is_available()`` is False
and ``unavailable_reason()`` says what is missing.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from facula import _C

__all__ = [
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "synchronize",
    "unavailable_reason",
]

_C._cuda_search_paths([p for p in sys.path if p.endswith("site-packages")])
_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_C._cuda_kernel_directory(os.path.join(_package, "_kernels"))


def _index(which: Any) -> int:
    if which is None:
        return _C._cuda_current_device()
    if isinstance(which, int):
        return which
    found = which if isinstance(which, _C.device) else _C.device(which)
    return _C._cuda_current_device() if found.index is None else found.index


def is_available() -> bool:
    """True when a CUDA device can be used.

    Example::

        >>> isinstance(facula.cuda.is_available(), bool)
        True
    """
    return _C._cuda_is_available()


def unavailable_reason() -> str:
    """Why ``is_available()`` is False, or an empty text."""
    return _C._cuda_unavailable_reason()


def device_count() -> int:
    """How many devices there are; 0 without a driver.

    Example::

        >>> facula.cuda.device_count() >= 0
        True
    """
    return _C._cuda_device_count()


def current_device() -> int:
    """The index of the device that ``'cuda'`` means in this thread."""
    return _C._cuda_current_device()


def set_device(device: Any) -> None:
    """Sets what ``'cuda'`` means in this thread."""
    _C._cuda_set_device(_index(device))


def synchronize(device: Any = None) -> None:
    """Waits until all work queued on the device is done."""
    _C._cuda_synchronize(_index(device))


class device:
    """Makes a device the current one inside ``with``."""

    def __init__(self, device: Any) -> None:
        self.index = _index(device)

    def __enter__(self) -> None:
        self.before = _C._cuda_current_device()
        _C._cuda_set_device(self.index)

    def __exit__(self, *exc: object) -> None:
        _C._cuda_set_device(self.before)


class _Properties:
    """The facts about a device, as attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return (
            "CudaDeviceProperties("
            + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items())
            + ")"
        )


def get_device_properties(device: Any = None) -> Any:
    """Name, compute capability, memory and multiprocessors of a device."""
    return _Properties(_C._cuda_properties(_index(device)))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device, such as (9, 0)."""
    p = get_device_properties(device)
    return p.major, p.minor


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device's memory."""
    return _C._cuda_memory_info(_index(device))


def memory_allocated(device: Any = None) -> int:
    """Bytes that live tensors hold."""
    return _C._cuda_memory_stats(_index(device))["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that live tensors have held."""
    return _C._cuda_memory_stats(_index(device))["peak_allocated"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds from the driver."""
    return _C._cuda_memory_stats(_index(device))["reserved"]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held from the driver."""
    return _C._cuda_memory_stats(_index(device))["peak_reserved"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts ``max_memory_allocated`` anew."""
    _C._cuda_reset_peak(_index(device))


def empty_cache() -> None:
    """Gives unused device memory back to the driver."""
    for d in range(device_count()):
        _C._cuda_empty_cache(d)


def is_initialized() -> bool:
    """True when a device can be used: nothing else needs to be prepared."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16, in hardware where emulation is excluded.

    Example::

        >>> facula.cuda.is_available() or not facula.cuda.is_bf16_supported()
        True
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


# ---- random numbers: each device has a default generator. Without a device these change nothing.


def _generator(device: Any = None) -> _C.Generator:
    return _C._default_generator(_index(device))


def manual_seed(seed: int) -> None:
    """Starts the current device's generator at ``seed``; without a device it changes nothing.

    Example::

        >>> facula.cuda.manual_seed(7)
    """
    seed = int(seed)
    if is_available():
        _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Starts the generators of all devices at ``seed``."""
    seed = int(seed)
    if is_available():
        _C._seed_devices(seed)


def seed() -> None:
    """Starts the current device's generator at a number that the system chose."""
    if is_available():
        _generator().seed()


def seed_all() -> None:
    """Starts the generators of all devices at one number that the system chose."""
    if is_available():
        _C._seed_devices(_generator().seed())


def initial_seed() -> int:
    """The seed that the current device's generator was started from."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> _C.Tensor:
    """The state of a device's generator: its seed and its offset, 16 bytes on the host."""
    return _generator(device).get_state()


def set_rng_state(new_state: _C.Tensor, device: Any = "cuda") -> None:
    """Sets what :func:`get_rng_state` returned; without a device it changes nothing."""
    if is_available():
        _generator(device).set_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The state for each device.

    Example::

        >>> len(facula.cuda.get_rng_state_all()) == facula.cuda.device_count()
        True
    """
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: list[_C.Tensor]) -> None:
    """Sets what :func:`get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("facula.cuda.amp")
    if name.endswith("Tensor"):
        from facula._legacy_types import find

        found = find(name, cuda=True)
        if found is not None:
            return found
    raise AttributeError(f"module 'facula.cuda' has no attribute {name!r}")
