"""Copies, fills and conversions."""

from gen.rows import composite, elementwise, kernel, op

op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", kernel(), batch="clone", jvp="linear", grad="grad", out=False, samples="unary",
   doc="A copy with its own memory.", example=">>> facula.ones(2).clone()\ntensor([1., 1.])")
op("contiguous(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)", composite(), function=False, out=False, samples="unary",
   doc="The tensor itself if its memory is in order, else a copy.",
   example=">>> facula.ones(2, 3).t().contiguous().stride()\n(2, 1)")
op("copy_(Tensor(a!) self, Operand src, bool non_blocking=False) -> Tensor(a!)", kernel(), batch="copy", jvp="linear", samples="none",
   grad=dict(self="zeros_like(grad)", src="grad"), node="CopyBackwards",
   doc="Writes the elements of ``src``, or a number, into this tensor, with broadcasting and conversion.",
   example=">>> facula.zeros(2).copy_(facula.tensor([1, 2]))\ntensor([1., 2.])")
op("_to_copy(Tensor self, ScalarType? dtype=None, Device? device=None, MemoryFormat? memory_format=None) -> Tensor",
   kernel(), batch="clone", jvp="linear", grad="_to_copy(grad, self.dtype())" , node="ToCopyBackward0", samples="none")
op("fill_(Tensor(a!) self, Operand value) -> Tensor(a!)", kernel(), batch="fill", jvp="linear", grad=dict(self="zeros_like(grad)", value="sum(grad)"), function=True, samples="none",
   doc="Sets every element to ``value``.", example=">>> facula.zeros(2).fill_(3)\ntensor([3., 3.])")
op("zero_(Tensor(a!) self) -> Tensor(a!)", kernel(), batch="leading", jvp="linear", function=True, samples="none", doc="Sets every element to 0.",
   example=">>> facula.ones(2).zero_()\ntensor([0., 0.])")
op("where(Tensor condition, Tensor self, Tensor other) -> Tensor", elementwise(masks=("condition",), numbers=True),
   f="select(a, b, c)", grad=dict(self="where(condition, grad, 0)", other="where(condition, 0, grad)"),
   method=False, inplace=False, samples="where",
   doc="Elements of ``input`` where ``condition`` is true, of ``other`` elsewhere.",
   example=">>> facula.where(facula.tensor([True, False]), 1., 2.)\ntensor([1., 2.])")
op("masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
   elementwise(promote="First", masks=("mask",), check="fill_value_fits", into_repeated="masked_fill"),
   f="select(b, c, a)", grad=dict(self="where(mask, 0, grad)", value="where(mask, grad, 0)"), samples="masked_fill", batch="masked_fill",
   doc="``value`` where ``mask`` is true, ``self`` elsewhere.", out=False,
   example=">>> facula.ones(2).masked_fill(facula.tensor([True, False]), 0)\ntensor([0., 1.])")
op("relu(Tensor self) -> Tensor",
   elementwise("if", halves=True, refuses=("b", "Runtime", "Boolean inputs not supported for relu")),
   f="0 if a < 0 else a", grad="_relu_grad(grad, result)", out=False,
   doc="The larger of 0 and each element.", example=">>> facula.relu(facula.tensor([-1., 2.]))\ntensor([0., 2.])", node="ReluBackward0")
op("_relu_grad(Tensor grad_out, Tensor result_in) -> Tensor", elementwise("if", halves=True), f="0 if b <= 0 else a",
   grad=dict(grad_out="_relu_grad(grad, result_in)", result_in="zeros_like(grad)"), samples="none")
