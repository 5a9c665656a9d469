"""Exception types beyond Python's own."""


class LinAlgError(RuntimeError):
    """Raised when a matrix factorisation fails, for example on a singular matrix."""


class OutOfMemoryError(RuntimeError):
    """Raised when a device has no memory left for a request."""


class AcceleratorError(RuntimeError):
    """Raised when work on a device failed; :class:`OutOfMemoryError` has the lack of memory.

    ``error_code`` is the number that the device's runtime gives the failure.
    """

    error_code: int


class DeviceIndexError(AcceleratorError, IndexError):
    """Raised when a kernel met an index out of range: PyTorch's type and that of the CPU in one."""


class FatalError(Exception):
    """Raised when a program cannot go on."""


def in_layer(kind: type[Exception], text: str) -> Exception:
    """An error about the arguments of a layer: modules that it passes put their path before it."""
    error = kind(text)
    error._from_operator = True  # type: ignore[attr-defined]
    return error


LinAlgError.__module__ = "facula.linalg"
OutOfMemoryError.__module__ = "facula"
AcceleratorError.__module__ = "facula"
DeviceIndexError.__module__ = "facula"
FatalError.__module__ = "facula"
