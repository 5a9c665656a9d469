"""Device memory: how much is used, giving it back, and who uses it.

``FACULA_CUDA_ALLOC_CONF`` (or ``PYTORCH_CUDA_ALLOC_CONF``) sets the allocator up, as
``max_split_size_mb:512,expandable_segments:True``.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

from facula import _C
from facula.cuda._devices import index_of

__all__ = [
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device's memory."""
    return _C._cuda_memory_info(index_of(device))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Figures of the allocator under PyTorch's names, such as ``"allocated_bytes.all.peak"``.

    A name has three parts: what is counted (``allocation``, ``segment``, ``active``,
    ``inactive_split``, ``allocated_bytes``, ``reserved_bytes``, ``active_bytes``,
    ``inactive_split_bytes``, ``requested_bytes``), for which requests (``all``, ``small_pool``,
    ``large_pool``), and which number (``current``, ``peak``, ``allocated`` and ``freed`` since the
    start). ``num_alloc_retries``, ``num_ooms``, ``num_device_alloc`` and ``num_device_free`` stand
    alone. Without a device the dict is empty.
    """
    if not _C._cuda_is_available():
        return {}
    return dict(sorted(_C._cuda_memory_stats(index_of(device)).items()))


def _nested(figures: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in figures.items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """:func:`memory_stats` with a dict for each part of a name."""
    return _nested(memory_stats(device))


def host_memory_stats() -> dict[str, Any]:
    """Figures of pinned memory, such as ``"allocated_bytes.peak"``.

    ``allocations`` and ``allocated_bytes`` count what comes from the system, in powers of two,
    ``active_requests`` and ``active_bytes`` what tensors have of it; each has ``current``,
    ``peak``, ``allocated`` and ``freed``. ``num_host_alloc`` and ``num_host_free`` stand alone.
    Without a device the dict is empty.

    Example::

        >>> before = facula.cuda.host_memory_stats().get("active_requests.current", 0)
        >>> if facula.cuda.is_available():
        ...     x = facula.ones(3).pin_memory()
        ...     now = facula.cuda.host_memory_stats()
        ...     assert now["active_requests.current"] == before + 1
    """
    if not _C._cuda_is_available():
        return {}
    return dict(sorted(_C._cuda_pinned_stats().items()))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """:func:`host_memory_stats` with a dict for each part of a name."""
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Starts the peaks of :func:`host_memory_stats` anew, at what is held now."""
    _C._cuda_reset_pinned_stats(True)


def reset_accumulated_host_memory_stats() -> None:
    """Starts the sums of :func:`host_memory_stats` anew."""
    _C._cuda_reset_pinned_stats(False)


def _figure(name: str, device: Any) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Any = None) -> int:
    """Bytes that live tensors hold."""
    return _figure("allocated_bytes.all.current", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that live tensors have held since :func:`reset_peak_memory_stats`."""
    return _figure("allocated_bytes.all.peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds from the driver."""
    return _figure("reserved_bytes.all.current", device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held from the driver."""
    return _figure("reserved_bytes.all.peak", device)


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Starts all peaks anew, at what is held now."""
    if _C._cuda_is_available():
        _C._cuda_reset_peak(index_of(device))


reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Starts the sums (``allocated``, ``freed`` and the ``num_`` figures) anew, at 0."""
    if _C._cuda_is_available():
        _C._cuda_reset_accumulated(index_of(device))


def empty_cache() -> None:
    """Gives unused device memory back to the driver, and unused pinned memory to the system."""
    for d in range(_C._cuda_device_count()):
        _C._cuda_empty_cache(d)


_fractions: dict[int, float] = {}


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Beyond this share of a device's memory, requests fail as if there were no more."""
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = index_of(device)
    _C._cuda_memory_fraction(index, float(fraction))
    _fractions[index] = float(fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """What :func:`set_per_process_memory_fraction` has set; 1.0 at first."""
    return _fractions.get(index_of(device), 1.0)


def get_allocator_backend() -> str:
    """``"native"``: the allocator is the package's own."""
    return "native"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of ``size`` bytes for another library, to be given back with
    :func:`caching_allocator_delete`."""
    index = index_of(device)
    if stream is None:
        handle = _C._cuda_stream_current(index)
    else:
        handle = stream if isinstance(stream, int) else stream.cuda_stream
    return _C._cuda_allocate(int(size), index, handle)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back what :func:`caching_allocator_alloc` returned.

    Example::

        >>> if facula.cuda.is_available():
        ...     address = facula.cuda.caching_allocator_alloc(1024)
        ...     facula.cuda.caching_allocator_delete(address)
    """
    if mem_ptr:  # no bytes have no address
        _C._cuda_deallocate(int(mem_ptr))


class MemPool:
    """Memory apart from the common cache, which :func:`use_mem_pool` takes from.

    The cache of a pool serves that pool only, and is given back to the driver when the pool and all
    tensors in it are gone and the cache is emptied.

    Args:
        allocator: must be None: there are no other allocators.
        use_on_oom: must be False: pools do not help out when other memory ends.
        no_split: must be False: blocks of a pool are cut as all others.

    Example::

        >>> if facula.cuda.is_available():
        ...     pool = facula.cuda.MemPool()
        ...     with facula.cuda.use_mem_pool(pool):
        ...         x = facula.zeros(3, device="cuda")
        ...     assert pool.snapshot()[0]["allocated_size"] == 512
    """

    def __init__(
        self, allocator: None = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError("MemPool() takes no allocator, use_on_oom or no_split")
        self._devices: set[int] = set()  # where it holds its memory
        self._number = _C._cuda_new_memory_pool()

    @property
    def id(self) -> tuple[int, int]:
        """What graphs take as ``pool``, and :func:`memory_snapshot` as ``mempool_id``."""
        return (self._number, 0)

    @property
    def allocator(self) -> None:
        """None: the memory is the package's own."""
        return

    def use_count(self) -> int:
        """How many hold the pool: this object and graphs that share it."""
        held = [_C._cuda_pool_users(d, self._number) for d in self._devices]
        return 1 + sum(users - 1 for users in held)

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """:func:`memory_snapshot` of this pool."""
        return memory_snapshot(self.id)

    def _hold(self, device: int) -> None:
        if device not in self._devices:
            _C._cuda_hold_pool(device, self._number)
            self._devices.add(device)

    def __del__(self, release: Any = _C._cuda_release_pool) -> None:
        for device in getattr(self, "_devices", ()):
            release(device, self._number)


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Inside ``with``, what this thread allocates on the device comes from ``pool``.

    Example::

        >>> if facula.cuda.is_available():
        ...     with facula.cuda.use_mem_pool(facula.cuda.MemPool()):
        ...         x = facula.zeros(3, device="cuda")
    """
    index = index_of(device)
    pool._hold(index)
    _C._cuda_route(index, pool.id[0], True)
    try:
        yield
    finally:
        _C._cuda_route(index, pool.id[0], False)


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Every segment of every device with its blocks, and the lines that made them where
    :func:`_record_memory_history` is on.

    Args:
        mempool_id: only those of a pool, by ``MemPool.id`` or ``CUDAGraph.pool()``.
        include_traces: whether to name the lines.
    """
    found = [s for d in range(_C._cuda_device_count()) for s in _C._cuda_memory_snapshot(d)]
    if mempool_id is not None:
        found = [s for s in found if s["segment_pool_id"] == tuple(mempool_id)]
    if not include_traces:
        for segment in found:
            for block in segment["blocks"]:
                block["frames"] = []
    return found


def _record_memory_history(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
    """From now on blocks remember the line that made them; None or False ends that.

    Snapshots and the report of an ``OutOfMemoryError`` name these lines.
    """
    _C._cuda_track_allocations(bool(enabled))


def _snapshot(device: Any = None) -> dict[str, Any]:
    """:func:`memory_snapshot` in the form of PyTorch's snapshot files."""
    return {"segments": memory_snapshot(), "device_traces": [], "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Writes :func:`_snapshot` to a file."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _set_allocator_settings(settings: str) -> None:
    """Sets the allocator up from a text such as ``"max_split_size_mb:512"``."""
    _C._cuda_configure_allocator(settings)


def list_gpu_processes(device: Any = None) -> str:
    """Asking for the processes of a GPU needs NVIDIA's management library, which is not used."""
    return "pynvml module not found, please install pynvml"


def _units(amount: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if abs(amount) >= 10 << shift or (unit == "KiB" and abs(amount) >= 1 << shift):
            return f"{amount / (1 << shift):.0f} {unit}"
    return f"{amount} B"


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures of :func:`memory_stats` as a table."""
    stats = memory_stats(device)
    if not stats:
        return "no CUDA device"
    rows = [
        ("Allocated memory", "allocated_bytes", _units),
        ("Active memory", "active_bytes", _units),
        ("Requested memory", "requested_bytes", _units),
        ("GPU reserved memory", "reserved_bytes", _units),
        ("Non-releasable memory", "inactive_split_bytes", _units),
        ("Allocations", "allocation", str),
        ("Active allocs", "active", str),
        ("GPU reserved segments", "segment", str),
        ("Non-releasable allocs", "inactive_split", str),
    ]
    width = 22
    line = "|" + "=" * (width + 2) + ("|" + "=" * 12) * 4 + "|"
    head = f"| {'Metric':{width}} |" + "".join(
        f" {title:>10} |" for title in ("Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")
    )
    title = f"facula CUDA memory summary, device ID {index_of(device)}"
    note = f"CUDA OOMs: {stats['num_ooms']}    cudaMalloc retries: {stats['num_alloc_retries']}"
    text = [line, f"| {title:^{len(line) - 4}} |", f"| {note:^{len(line) - 4}} |", line, head, line]
    for name, key, show in rows:
        pools = [("all", name)]
        if not abbreviated:
            pools += [("large_pool", "  from large pool"), ("small_pool", "  from small pool")]
        for pool, label in pools:
            cells = [stats[f"{key}.{pool}.{m}"] for m in ("current", "peak", "allocated", "freed")]
            text.append(f"| {label:{width}} |" + "".join(f" {show(c):>10} |" for c in cells))
        text.append(line)
    return "\n".join(text)
