"""The names of the ways to quantize a tensor."""

from __future__ import annotations


class qscheme:
    """How scale and zero point belong to the elements of a quantized tensor.

    Example::

        >>> x = facula.quantize_per_tensor(facula.tensor([1.]), 0.5, 0, facula.quint8)
        >>> x.qscheme() is facula.per_tensor_affine
        True
    """

    def __init__(self, name: str) -> None:
        self.__module__ = "facula"  # where pickles find it by its name
        self._name = name

    def __repr__(self) -> str:
        return f"facula.{self._name}"

    def __reduce__(self) -> str:
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
SCHEMES = {
    repr(scheme).rpartition(".")[2]: scheme
    for scheme in (
        per_tensor_affine,
        per_channel_affine,
        per_tensor_symmetric,
        per_channel_symmetric,
        per_channel_affine_float_qparams,
    )
}
