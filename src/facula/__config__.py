"""How the package was built and what it runs on."""

from __future__ import annotations

from facula import _C

__all__ = ["parallel_info", "show"]

_ISA = ("baseline", "x86-64-v3 (AVX2)", "x86-64-v4 (AVX-512)")


def show() -> str:
    """A description of the build and the machine, for reports of errors.

    Example::

        >>> print(facula.__config__.show().splitlines()[0].split()[0])
        Facula
    """
    import platform

    from facula import cuda, version

    devices = (
        ", ".join(cuda.get_device_name(i) for i in range(cuda.device_count()))
        if cuda.is_available()
        else cuda.unavailable_reason()
    )
    return "\n".join(
        [
            f"Facula {version.__version__}, Python {platform.python_version()}, "
            f"{platform.platform()}",
            f"  loops: {_ISA[_C._isa()]}",
            f"  threads: {_C.get_num_threads()}",
            f"  CUDA: {devices}",
        ]
    )


def parallel_info() -> str:
    """How work is shared over threads."""
    return f"facula.get_num_threads(): {_C.get_num_threads()}"
