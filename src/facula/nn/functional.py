"""The layers of ``facula.nn`` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facula._namespaces import add_operators
from facula.nn import _reduction as _Reduction  # noqa: F401

if TYPE_CHECKING:
    from facula._op_nn_functional import *  # noqa: F403

__all__ = [*add_operators("nn.functional", globals())]

# These use the operators.
from facula.nn._functions import activations as _activations
from facula.nn._functions import attention as _attention
from facula.nn._functions import grouped as _grouped
from facula.nn._functions import interpolation as _interpolation
from facula.nn._functions import losses as _losses
from facula.nn._functions import pooling as _pooling
from facula.nn._functions.activations import *  # noqa: F403
from facula.nn._functions.attention import *  # noqa: F403
from facula.nn._functions.attention import _canonical_mask as _canonical_mask
from facula.nn._functions.attention import _none_or_dtype as _none_or_dtype
from facula.nn._functions.grouped import *  # noqa: F403
from facula.nn._functions.interpolation import *  # noqa: F403
from facula.nn._functions.losses import *  # noqa: F403
from facula.nn._functions.pooling import *  # noqa: F403
from facula.overrides import handle_torch_function as handle_torch_function
from facula.overrides import has_torch_function as has_torch_function
from facula.overrides import has_torch_function_unary as has_torch_function_unary
from facula.overrides import has_torch_function_variadic as has_torch_function_variadic

__all__ += _activations.__all__
__all__ += _attention.__all__
__all__ += _grouped.__all__
__all__ += _interpolation.__all__
__all__ += _losses.__all__
__all__ += _pooling.__all__
