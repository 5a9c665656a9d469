"""The classes that older programs make COO tensors on a device with.

Example::

    >>> facula.cuda.sparse.FloatTensor.dtype
    facula.float32
"""

from facula.sparse._legacy_types import classes as _classes

globals().update(_classes(cuda=True))
