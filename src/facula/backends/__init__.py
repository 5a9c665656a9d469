"""Settings of the libraries behind the operators, and which of them there are.

Example::

    >>> facula.backends.mps.is_available()
    False
    >>> with facula.backends.cudnn.flags(benchmark=True):
    ...     facula.backends.cudnn.benchmark
    True
"""

from facula.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
