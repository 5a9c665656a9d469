"""Functions that stand in ``facula`` and in ``facula.nn.functional``."""

from __future__ import annotations

from facula import _C

__all__ = ["celu_", "relu_", "rrelu_", "selu_", "sigmoid", "tanh", "threshold_"]

celu_ = _C._operators["celu_"]
relu_ = _C._operators["relu_"]
rrelu_ = _C._operators["rrelu_"]
selu_ = _C._operators["selu_"]
sigmoid = _C._operators["sigmoid"]
tanh = _C._operators["tanh"]
threshold_ = _C._operators["threshold_"]
