"""Tells the CUDA backend where NVIDIA's wheels and the kernels' texts lie; nothing is opened."""

import os
import sys

from facula import _C

_C._cuda_search_paths([path for path in sys.path if path.endswith("site-packages")])
_C._cuda_kernel_directory(os.path.join(os.path.dirname(os.path.abspath(__file__)), "_kernels"))
