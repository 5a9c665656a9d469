"""Settings of PyTorch's code generator as scripts give them. They are kept; nothing reads them.

Example::

    >>> import facula._inductor.config
    >>> facula._inductor.config.coordinate_descent_tuning = True
    >>> facula._inductor.config.triton.unique_kernel_names = True
"""

from types import SimpleNamespace

coordinate_descent_tuning = False
debug = False
epilogue_fusion = True
freezing = False
fx_graph_cache = True
max_autotune = False
max_autotune_gemm = False
shape_padding = True
cpp = SimpleNamespace()
triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=True)
