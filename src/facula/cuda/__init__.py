"""CUDA devices: which there are, their memory, streams, graphs, waiting for them.

The driver and the libraries are opened when first used; without them ``is_available()`` is False
and ``unavailable_reason()`` says what is missing.
"""

from __future__ import annotations

from typing import Any

from facula import _C
from facula._errors import AcceleratorError, OutOfMemoryError
from facula.cuda import memory, nvtx, streams
from facula.cuda._devices import index_of as _index
from facula.cuda.memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from facula.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "clock_rate",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graphs",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "jiterator",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nvtx",
    "power_draw",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "tunable",
    "unavailable_reason",
    "use_mem_pool",
    "utilization",
]


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
    init()
    return _C._cuda_current_device()


def set_device(device: Any) -> None:
    """Sets what ``'cuda'`` means in this thread; a negative index changes nothing."""
    index = _index(device)
    if index >= 0:
        _C._cuda_set_device(index)


def init() -> None:
    """Opens the driver now; raises where there is none. It happens by itself on first use."""
    if not is_available():
        raise RuntimeError("CUDA is not available: " + unavailable_reason())


_lazy_init = init


def ipc_collect() -> None:
    """Frees memory shared by other processes: there is none, since tensors on devices stay."""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device reads the memory of another one directly."""
    return _C._cuda_can_access_peer(_index(device), _index(peer_device))


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for: all that the installed NVRTC knows."""
    if not is_available():
        return []
    return [f"sm_{number}" for number in _C._cuda_architectures()]


def get_gencode_flags() -> str:
    """What NVCC is to be given to compile for :func:`get_arch_list`; empty without a device.

    Example::

        >>> facula.cuda.is_available() or facula.cuda.get_gencode_flags() == ""
        True
    """
    numbers = [arch.removeprefix("sm_") for arch in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)


_SYNC_DEBUG_MODES = ("default", "warn", "error")


def get_sync_debug_mode() -> int:
    """0, 1 or 2: operations that wait for the device say nothing, warn, or raise."""
    return _C._cuda_wait_report()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What operations do that make the program wait for the device, such as ``item()``.

    0 or ``"default"``: nothing, 1 or ``"warn"``: a warning, 2 or ``"error"``: an exception.

    Example::

        >>> facula.cuda.set_sync_debug_mode("default")
        >>> facula.cuda.get_sync_debug_mode()
        0
    """
    modes = {**{name: i for i, name in enumerate(_SYNC_DEBUG_MODES)}, **{i: i for i in range(3)}}
    if debug_mode not in modes:
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of {', '.join(_SYNC_DEBUG_MODES)}, "
            f"0, 1 or 2, got {debug_mode!r}"
        )
    _C._cuda_set_wait_report(modes[debug_mode])


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


class device_of(device):
    """Makes the device of a tensor the current one inside ``with``; others change nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else None)


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
    index = _index(device)
    if index >= device_count() > 0:
        raise AssertionError(f"Invalid device id {index}: this machine has {device_count()}")
    return _Properties(_C._cuda_properties(index))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device, such as (9, 0)."""
    p = get_device_properties(device)
    return p.major, p.minor


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


def is_tf32_supported() -> bool:
    """Whether the current device has matrix units for TF32."""
    return is_available() and get_device_capability()[0] >= 8


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


# facula.cuda.graphs needs modules and trees, which are imported after this module.
_GRAPHS = {
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
}
# facula.cuda._nvml needs ctypes, which nothing else does.
_NVML = {
    "clock_rate",
    "device_memory_used",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("amp", "graphs", "jiterator", "profiler", "random", "sparse", "tunable"):
        return import_module(f"facula.cuda.{name}")
    if name == "default_generators":
        return tuple(_C._default_generator(i) for i in range(device_count()))
    for module, names in (("graphs", _GRAPHS), ("_nvml", _NVML)):
        if name in names:
            return getattr(import_module(f"facula.cuda.{module}"), name)
    if name.endswith("Tensor"):
        from facula._legacy_types import find

        found = find(name, cuda=True)
        if found is not None:
            return found
    raise AttributeError(f"module 'facula.cuda' has no attribute {name!r}")
