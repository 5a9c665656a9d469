"""The Python array API standard, version 2025.12: what ``Tensor.__array_namespace__()`` returns.

The standard's functions differ from PyTorch's of the same name: arguments are called ``x`` and
``axis``, tensors without dimensions take full part in promotion, sums of small integers are large
integers. Tensors are the same, so programs may mix both.

Example::

    >>> import facula.array_api as xp
    >>> x = xp.asarray([[1, 2], [3, 4]], dtype=xp.uint8)
    >>> xp.sum(x, axis=0)
    tensor([4, 6], dtype=facula.uint64)
    >>> xp.permute_dims(x, (1, 0))
    tensor([[1, 3],
            [2, 4]], dtype=facula.uint8)
"""

# ruff: noqa: F401, F403  (a namespace: everything here is for others)
from math import e, inf, nan, pi

from facula import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from facula.array_api import fft, linalg
from facula.array_api._creation import *
from facula.array_api._dtypes import *
from facula.array_api._elementwise import *
from facula.array_api._info import __array_namespace_info__
from facula.array_api._linear import *
from facula.array_api._manipulation import *
from facula.array_api._searching import *
from facula.array_api._statistics import *

__array_api_version__ = "2025.12"
newaxis = None
