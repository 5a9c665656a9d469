"""For tests: comparisons that say what differs, and tensors of random numbers."""

from facula.testing._comparison import assert_allclose, assert_close
from facula.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
