"""Products of inputs with the weights of a layer."""

from gen.rows import composite, kernel, op

op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", kernel(), python="nn.functional.linear",
   method=False, batch="linear", samples="linear",
   grad=dict(input="_linear_input_gradient(grad, weight)", weight="_linear_weight_gradient(grad, input, weight.sizes())",
             bias="grad"),
   doc="``input @ weight.t() + bias``. ``input`` is (*, in_features), ``weight`` (out_features, in_features) or\n"
       "(in_features,), ``bias`` (out_features,) or without dimensions; the result is (*, out_features) or (*).",
   example=">>> x, w = facula.ones(1, 2), facula.tensor([[1., 2.], [3., 4.]])\n"
           ">>> facula.nn.functional.linear(x, w, facula.tensor([10., 20.]))\ntensor([[13., 27.]])")
op("_linear_input_gradient(Tensor grad, Tensor weight) -> Tensor", composite(), samples="none")
op("_linear_weight_gradient(Tensor grad, Tensor input, int[] weight_size) -> Tensor", composite(), samples="none")

op("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", composite(), method=False,
   out=False, aliases=("nn.functional.bilinear",), samples="bilinear",
   doc="``input1[n] @ weight[k] @ input2[n] + bias[k]`` for all n and k. ``input1`` is (*, in1), ``input2`` (*, in2)\n"
       "with the same leading sizes, ``weight`` (out, in1, in2) and ``bias`` (out,).",
   example=">>> a, b = facula.tensor([[1., 2.]]), facula.tensor([[3., 4.]])\n"
           ">>> facula.bilinear(a, b, facula.ones(1, 2, 2), facula.tensor([1.]))\ntensor([[22.]])")
