"""Finding where a wrong gradient comes from."""

from __future__ import annotations

import warnings

from facula import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Backward checks every gradient for NaN and names the line of the forward operation.

    Example::

        >>> with facula.autograd.detect_anomaly():
        ...     facula.is_anomaly_enabled()
        True
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly(*self.before)


class set_detect_anomaly:
    """Switches anomaly mode at once; as a context manager, sets it back at the end.

    Example::

        >>> with facula.autograd.set_detect_anomaly(True):
        ...     facula.is_anomaly_enabled()
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _C._set_anomaly(*self.before)
