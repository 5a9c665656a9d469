"""Function transforms: derivatives and batching of functions, which nest in any order.

Example::

    >>> from facula.func import grad, vmap
    >>> slope = vmap(grad(lambda x: x ** 2))
    >>> slope(facula.tensor([1., 2., 3.]))
    tensor([2., 4., 6.])
"""

from facula.func.batching import vmap
from facula.func.forward_mode import jvp, linearize
from facula.func.functionalizing import functionalize
from facula.func.jacobians import hessian, jacfwd, jacrev
from facula.func.levels import debug_unwrap
from facula.func.module_state import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from facula.func.rearranging import rearrange
from facula.func.reverse_mode import grad, grad_and_value, vjp

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
