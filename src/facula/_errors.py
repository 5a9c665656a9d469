"""Exception types beyond Python's own."""


class LinAlgError(RuntimeError):
    """Raised when a matrix factorisation fails, for example on a singular matrix."""


class OutOfMemoryError(RuntimeError):
    """Raised when a device has no memory left for a request."""


LinAlgError.__module__ = "facula.linalg"
OutOfMemoryError.__module__ = "facula"
