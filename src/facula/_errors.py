"""Exception types beyond Python's own."""


class LinAlgError(RuntimeError):
    """Raised when a matrix factorisation fails, for example on a singular matrix."""


class OutOfMemoryError(RuntimeError):
    """Raised when a device has no memory left for a request."""


class AcceleratorError(RuntimeError):
    """Raised when work on a device failed; :class:`OutOfMemoryError` has the lack of memory."""


class FatalError(Exception):
    """Raised when a program cannot go on."""


LinAlgError.__module__ = "facula.linalg"
OutOfMemoryError.__module__ = "facula"
AcceleratorError.__module__ = "facula"
FatalError.__module__ = "facula"
