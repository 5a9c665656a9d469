"""What NVIDIA's management library knows about a device: load, temperature, power, clocks."""

from __future__ import annotations

import ctypes
from typing import Any

from facula import _C
from facula.cuda._devices import index_of

_GPU_TEMPERATURE, _SM_CLOCK = 0, 1  # NVML_TEMPERATURE_GPU, NVML_CLOCK_SM
_library: Any = None


def _nvml() -> Any:
    """The library, opened when first asked; it comes with the driver."""
    global _library
    if _library is None:
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise RuntimeError(
                "NVIDIA's management library (libnvidia-ml.so.1) is missing; it comes with the "
                "driver"
            ) from error
        library.nvmlErrorString.restype = ctypes.c_char_p
        _check(library, library.nvmlInit_v2())
        _library = library
    return _library


def _check(library: Any, status: int) -> None:
    if status != 0:
        raise RuntimeError(f"NVML: {library.nvmlErrorString(status).decode()}")


def _ask(device: Any, function: str, *before: Any, answer: Any = None) -> Any:
    """The answer of ``function(handle, *before, &answer)`` for a device."""
    uuid = _C._cuda_properties(index_of(device))["uuid"]
    library, handle = _nvml(), ctypes.c_void_p()
    answer = ctypes.c_uint() if answer is None else answer
    name = f"GPU-{uuid}".encode()
    _check(library, library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)))
    _check(library, getattr(library, function)(handle, *before, ctypes.byref(answer)))
    return answer


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def utilization(device: Any = None) -> int:
    """Percent of the last sampling period in which a kernel ran on the device."""
    return _ask(device, "nvmlDeviceGetUtilizationRates", answer=_Utilization()).gpu


def memory_usage(device: Any = None) -> int:
    """Percent of the last sampling period in which the device's memory was read or written."""
    return _ask(device, "nvmlDeviceGetUtilizationRates", answer=_Utilization()).memory


def device_memory_used(device: Any = None) -> int:
    """Bytes of the device's memory that all processes together use."""
    return _ask(device, "nvmlDeviceGetMemoryInfo", answer=_Memory()).used


def temperature(device: Any = None) -> int:
    """The temperature of the chip in degrees Celsius."""
    return _ask(device, "nvmlDeviceGetTemperature", _GPU_TEMPERATURE).value


def power_draw(device: Any = None) -> int:
    """The power that the device draws now, in milliwatts."""
    return _ask(device, "nvmlDeviceGetPowerUsage").value


def clock_rate(device: Any = None) -> int:
    """The clock of the multiprocessors now, in MHz."""
    return _ask(device, "nvmlDeviceGetClockInfo", _SM_CLOCK).value
