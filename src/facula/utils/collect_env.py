"""A report on the machine, for descriptions of problems: ``python -m facula.utils.collect_env``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import facula

__all__ = ["get_pretty_env_info", "main"]

_PACKAGES = ("facula", "numpy", "scipy-openblas32", "safetensors", "torch")


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.lower().startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _installed() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def get_pretty_env_info() -> str:
    """Versions, system, processor and devices, one in a line.

    Example::

        >>> facula.utils.collect_env.get_pretty_env_info().splitlines()[0].startswith("Facula")
        True
    """
    cuda = facula.cuda.is_available()
    lines = {
        "Facula version": facula.__version__,
        "Python version": sys.version.replace("\n", " "),
        "Python platform": platform.platform(),
        "CPU": _processor(),
        "CPUs": str(os.cpu_count()),
        "Threads": str(facula.get_num_threads()),
        "Is CUDA available": str(cuda),
        "CUDA devices": str(facula.cuda.device_count() if cuda else 0),
        "Packages": ", ".join(_installed()) or "none",
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main() -> None:
    """Prints the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
