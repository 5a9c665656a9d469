"""New tensors."""

from gen.rows import composite, op

_KW = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       "bool requires_grad=False")


def _new(name, args, doc, example, extra="", **options):
    op(f"{name}({args}, *, {_KW}{extra}) -> Tensor", composite(), samples="none", doc=doc, example=example,
       **{"method": False, **options})


_FORMAT = ", MemoryFormat? memory_format=None"

_new("empty", "int[] size", "Uninitialised memory of the given shape.",
     ">>> facula.empty(2, 3).shape\nfacula.Size([2, 3])", _FORMAT)
op("empty_strided(int[] size, int[] stride, ScalarType? dtype=None, Device? device=None) -> Tensor", composite(), python="")
_new("empty_strided.public", "int[] size, int[] stride", "Uninitialised memory with given strides.",
     ">>> facula.empty_strided((2, 2), (1, 2)).stride()\n(1, 2)", python="empty_strided", out=False)
_new("zeros", "int[] size", "Zeros of the given shape.", ">>> facula.zeros(2)\ntensor([0., 0.])")
_new("ones", "int[] size", "Ones of the given shape.", ">>> facula.ones(2)\ntensor([1., 1.])")
_new("full", "int[] size, Scalar fill_value", "One value in the given shape.",
     ">>> facula.full((2,), 7)\ntensor([7, 7])")
_new("arange", "Scalar end", "Numbers from 0 up to, not including, ``end``.", ">>> facula.arange(3)\ntensor([0, 1, 2])")
_new("arange.start", "Scalar start, Scalar end, Scalar step=1", "Numbers from ``start`` in steps.",
     ">>> facula.arange(1, 6, 2)\ntensor([1, 3, 5])")
_new("linspace", "Scalar start, Scalar end, int steps", "``steps`` numbers from ``start`` to ``end``, both included.",
     ">>> facula.linspace(0, 1, 3)\ntensor([0.0000, 0.5000, 1.0000])")
_new("logspace", "Scalar start, Scalar end, int steps, float base=10.0", "Powers of ``base`` with evenly spaced exponents.",
     ">>> facula.logspace(0, 2, 3)\ntensor([  1.,  10., 100.])")
_new("eye", "int n", "The identity matrix.", ">>> facula.eye(2)\ntensor([[1., 0.],\n        [0., 1.]])")
_new("eye.m", "int n, int m", "Ones on the diagonal of an ``n`` by ``m`` matrix.",
     ">>> facula.eye(1, 2)\ntensor([[1., 0.]])")
_new("scalar_tensor", "Scalar s", "A tensor without dimensions.", ">>> facula.scalar_tensor(2.5)\ntensor(2.5000)", out=False)
_new("tril_indices", "int row, int col, int offset=0", "Row and column indices of the lower triangle.",
     ">>> facula.tril_indices(2, 2)\ntensor([[0, 1, 1],\n        [0, 0, 1]])", out=False)
_new("triu_indices", "int row, int col, int offset=0", "Row and column indices of the upper triangle.",
     ">>> facula.triu_indices(2, 2)\ntensor([[0, 0, 1],\n        [0, 1, 1]])", out=False)


def _like(name, args, doc, shown):
    _new(name, args, doc, f">>> facula.{name}(facula.tensor([1., 2.]){shown[0]})\n{shown[1]}", _FORMAT, out=False, batch="leading")


_new("empty_like", "Tensor self", "Uninitialised memory in the shape, dtype and layout of another tensor.",
     ">>> facula.empty_like(facula.ones(2)).shape\nfacula.Size([2])", _FORMAT, out=False, batch="leading")
_like("zeros_like", "Tensor self", "Zeros like another tensor.", ("", "tensor([0., 0.])"))
_like("ones_like", "Tensor self", "Ones like another tensor.", ("", "tensor([1., 1.])"))
_like("full_like", "Tensor self, Scalar fill_value", "One value in the shape of another tensor.", (", 3", "tensor([3., 3.])"))


def _method(name, args, doc, example):
    _new(name, args, doc, example, method=True, function=False, out=False, batch="dims")


_method("new_empty", "Tensor self, int[] size", "Uninitialised memory with this tensor's dtype and device.",
        ">>> facula.ones(1).new_empty(2).shape\nfacula.Size([2])")
_method("new_empty_strided", "Tensor self, int[] size, int[] stride", "Uninitialised memory with given strides.",
        ">>> facula.ones(1).new_empty_strided((2,), (2,)).stride()\n(2,)")
_method("new_zeros", "Tensor self, int[] size", "Zeros with this tensor's dtype and device.",
        ">>> facula.ones(1).new_zeros(2)\ntensor([0., 0.])")
_method("new_ones", "Tensor self, int[] size", "Ones with this tensor's dtype and device.",
        ">>> facula.zeros(1).new_ones(2)\ntensor([1., 1.])")
_method("new_full", "Tensor self, int[] size, Scalar fill_value", "One value with this tensor's dtype and device.",
        ">>> facula.zeros(1).new_full((2,), 3)\ntensor([3., 3.])")
