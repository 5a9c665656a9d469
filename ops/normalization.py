"""Normalisation: layer, RMS, batch, group, instance and local response norm.

Each norm is one row with the moments among its results, whose derivatives come from one row too; the
derivatives of that one are composites over moments that are computed anew, so that any order is right.
"""

from gen.rows import composite, kernel, op

_AFFINE = "``weight`` and ``bias`` scale and shift the result where they are given."

# ---- over the last dimensions

op("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
   kernel(), grad={"input, weight, bias": "_layer_norm_grad(grad_output, input, rstd, weight, normalized_shape, eps, wanted, mean)"},
   nondifferentiable=("mean", "rstd"), batch="layer_norm", out=False, samples="native_layer_norm",
   doc=f"``layer_norm`` together with the mean and the reciprocal standard deviation that it used. {_AFFINE}",
   example=">>> facula.native_layer_norm(facula.tensor([1., 3.]), [2], None, None, 0.).mean\ntensor([2.])")
op("_layer_norm_grad(Tensor grad_output, Tensor input, Tensor rstd, Tensor? weight, int[] normalized_shape, float eps, int wanted, Tensor? mean=None) -> (Tensor input_grad, Tensor weight_grad, Tensor bias_grad)",
   kernel(), grad={"grad_output, input, weight":
                   "_layer_norm_grad_grad(given_input_grad, given_weight_grad, given_bias_grad, grad_output, input, weight, normalized_shape, eps, mean)"},
   batch="layer_norm_grad", samples="none")
op("_layer_norm_grad_grad(Tensor? for_input, Tensor? for_weight, Tensor? for_bias, Tensor grad_output, Tensor input, Tensor? weight, int[] normalized_shape, float eps, Tensor? mean) -> (Tensor grad_output_grad, Tensor input_grad, Tensor weight_grad)",
   composite(), samples="none")
op("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
   composite(), aliases=("nn.functional.layer_norm",), out=False, samples="layer_norm",
   doc=f"Brings the last dimensions, whose sizes are ``normalized_shape``, to mean 0 and variance 1. {_AFFINE}",
   example=">>> facula.layer_norm(facula.tensor([1., 3.]), [2], eps=0.)\ntensor([-1.,  1.])")
op("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> (Tensor output, Tensor rstd)",
   kernel(), grad={"input, weight": "_layer_norm_grad(grad_output, input, rstd, weight, normalized_shape, eps, wanted)"},
   nondifferentiable=("rstd",), batch="layer_norm", out=False, samples="none", node="FusedRmsNormBackward0")
op("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
   composite(), aliases=("nn.functional.rms_norm",), out=False, samples="rms_norm",
   doc="Divides by the root of the mean square over the last dimensions, whose sizes are ``normalized_shape``, and\n"
       "multiplies with ``weight``. ``eps`` is the dtype's own by default.",
   example=">>> facula.rms_norm(facula.tensor([3., 3.]), [2])\ntensor([1., 1.])")

# ---- by channels, which are dimension 1

op("_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor output, Tensor mean, Tensor rstd, Tensor variance)",
   kernel(), grad={"input, weight, bias": "_batch_norm_grad(grad_output, input, mean, rstd, weight, eps, wanted)"},
   nondifferentiable=("mean", "rstd", "variance"), batch="batch_norm", out=False, samples="none", node="NativeBatchNormBackward0")
op("_batch_norm_grad(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, float eps, int wanted) -> (Tensor input_grad, Tensor weight_grad, Tensor bias_grad)",
   kernel(), grad={"grad_output, input, weight":
                   "_batch_norm_grad_grad(given_input_grad, given_weight_grad, given_bias_grad, grad_output, input, weight, eps)"},
   batch="batch_norm", samples="none")
op("_batch_norm_grad_grad(Tensor? for_input, Tensor? for_weight, Tensor? for_bias, Tensor grad_output, Tensor input, Tensor? weight, float eps) -> (Tensor grad_output_grad, Tensor input_grad, Tensor weight_grad)",
   composite(), samples="none")
op("_scale_channels(Tensor input, Tensor scale, Tensor? shift=None) -> Tensor", kernel(),
   grad=dict(input="_scale_channels(grad, scale)", scale="_sum_to_channels(grad * input)", shift="_sum_to_channels(grad)"),
   batch="scale_channels", node="NativeBatchNormBackward0", samples="none")

_STATS = "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps"
_WORDS = ("Brings each channel (dimension 1) to mean 0 and variance 1, by the moments of the input while ``training``,\n"
          "which also move ``running_mean`` and ``running_var`` by ``momentum``, else by these two.\n" + _AFFINE)
_SHOWN = "tensor([[-1.],\n        [ 1.]])"
op(f"batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, bool cudnn_enabled) -> Tensor", composite(), out=False,
   samples="none", doc=_WORDS,
   example=">>> facula.batch_norm(facula.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0., False)\n" + _SHOWN)
op("batch_norm.functional(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
   composite(), python="nn.functional.batch_norm", out=False, samples="batch_norm", doc=_WORDS,
   example=">>> facula.nn.functional.batch_norm(facula.tensor([[1.], [3.]]), None, None, training=True, eps=1e-12)\n" + _SHOWN)
_THREE = "(Tensor output, Tensor save_mean, Tensor save_invstd)"
op(f"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATS}) -> {_THREE}", composite(), out=False,
   samples="native_batch_norm", nondifferentiable=("save_mean", "save_invstd"),
   doc="``batch_norm`` together with the mean and the reciprocal standard deviation that it used (empty without\n``training``).",
   example=">>> facula.native_batch_norm(facula.tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 0.).save_mean\ntensor([2.])")
op(f"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, {_STATS}) -> {_THREE}", composite(), out=False,
   python="_native_batch_norm_legit", samples="none", doc="``native_batch_norm``.",
   example=">>> facula._native_batch_norm_legit(facula.tensor([[1.], [3.]]), None, None, facula.zeros(1), facula.ones(1), True, 0.1, 0.)[1]\ntensor([2.])")
op(f"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> {_THREE}",
   composite(), out=False, python="_native_batch_norm_legit", samples="none")
op("batch_norm_stats(Tensor input, float eps) -> (Tensor mean, Tensor invstd)", composite(), out=False, samples="none",
   doc="The mean and the reciprocal standard deviation of each channel.",
   example=">>> facula.batch_norm_stats(facula.tensor([[1.], [3.]]), 0.).mean\ntensor([2.])")
op("batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor mean, Tensor var)",
   composite(), out=False, samples="none",
   doc="Moves the running moments towards those of the input, which it returns.",
   example=">>> facula.batch_norm_update_stats(facula.tensor([[1.], [3.]]), None, None, 0.1)[1]\ntensor([1.])")
op("batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) -> Tensor", composite(),
   out=False, samples="none",
   doc="``(input - mean) * invstd * weight + bias``, channel by channel; ``eps`` has no effect.",
   example=">>> facula.batch_norm_elemt(facula.tensor([[1.], [3.]]), None, None, facula.tensor([2.]), facula.ones(1), 0.)\n" + _SHOWN)
_GATHER = "Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float momentum, float eps"
op(f"batch_norm_gather_stats({_GATHER}, int count) -> (Tensor mean, Tensor invstd)", composite(), out=False, samples="none",
   doc="Joins the moments (rows of ``mean`` and ``invstd``) of parts with ``count`` values each, and moves the running\nmoments.",
   example=">>> facula.batch_norm_gather_stats(facula.ones(2, 1), facula.tensor([[1.], [3.]]), facula.ones(2, 1), None, None, 0.1, 0., 2).mean\ntensor([2.])")
op(f"batch_norm_gather_stats_with_counts({_GATHER}, Tensor counts) -> (Tensor mean, Tensor invstd)", composite(), out=False,
   samples="none", doc="``batch_norm_gather_stats`` for parts of different sizes.",
   example=">>> facula.batch_norm_gather_stats_with_counts(facula.ones(2, 1), facula.tensor([[1.], [4.]]), facula.ones(2, 1), None, None, 0.1, 0., facula.tensor([1., 2.])).mean\ntensor([3.])")
op("batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, bool input_g, bool weight_g, bool bias_g) -> (Tensor sum_dy, Tensor sum_dy_xmu, Tensor grad_weight, Tensor grad_bias)",
   composite(), out=False, samples="none",
   doc="The sums over each channel that the gradients of ``batch_norm_elemt`` need, and those of its parameters.",
   example=">>> x = facula.tensor([[1.], [3.]])\n>>> facula.batch_norm_backward_reduce(x, x, facula.tensor([2.]), facula.ones(1), None, True, True, True)[0]\ntensor([4.])")
op("batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor",
   composite(), out=False, samples="none",
   doc="The gradient of ``batch_norm_elemt`` by its input, from the sums of ``batch_norm_backward_reduce`` over all parts,\n"
       "which had ``count`` values.",
   example=">>> x, one = facula.tensor([[1.], [3.]]), facula.ones(1)\n>>> facula.batch_norm_backward_elemt(x, x, one, one, None, one * 4, one * 0, facula.tensor([2]))\n" + _SHOWN)

op("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
   kernel(), grad={"input, weight, bias": "_group_norm_grad(grad_output, input, mean, rstd, weight, group, eps, wanted)"},
   nondifferentiable=("mean", "rstd"), batch="group_norm", out=False, samples="native_group_norm",
   doc="``group_norm`` of an input with N * C * HxW elements, together with the mean and the reciprocal standard deviation of\n"
       "each group.",
   example=">>> facula.native_group_norm(facula.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.).mean\ntensor([[2.]])")
op("_group_norm_grad(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int group, float eps, int wanted) -> (Tensor input_grad, Tensor weight_grad, Tensor bias_grad)",
   kernel(), grad={"grad_output, input, weight":
                   "_group_norm_grad_grad(given_input_grad, given_weight_grad, given_bias_grad, grad_output, input, weight, group, eps)"},
   batch="group_norm_grad", samples="none")
op("_group_norm_grad_grad(Tensor? for_input, Tensor? for_weight, Tensor? for_bias, Tensor grad_output, Tensor input, Tensor? weight, int group, float eps) -> (Tensor grad_output_grad, Tensor input_grad, Tensor weight_grad)",
   composite(), samples="none")
_GROUPS = f"Brings each of ``num_groups`` groups of channels (dimension 1) to mean 0 and variance 1. {_AFFINE}"
op("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
   composite(), out=False, samples="group_norm", doc=_GROUPS,
   example=">>> facula.group_norm(facula.tensor([[1., 3.]]), 1, eps=0.)\ntensor([[-1.,  1.]])")
op("group_norm.functional(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
   composite(), python="nn.functional.group_norm", out=False, samples="group_norm", doc=_GROUPS,
   example=">>> facula.nn.functional.group_norm(facula.tensor([[1., 3.]]), 1, eps=0.)\ntensor([[-1.,  1.]])")

_INSTANCE = ("Brings each channel of each element of the batch to mean 0 and variance 1; with ``use_input_stats=False`` by\n"
             "``running_mean`` and ``running_var``, which otherwise move by ``momentum`` where they are given.\n" + _AFFINE)
_ONE = "tensor([[[-1.,  1.]]])"
op("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
   composite(), out=False, samples="none", doc=_INSTANCE, node="ViewBackward0",
   example=">>> facula.instance_norm(facula.tensor([[[1., 3.]]]), None, None, None, None, True, 0.1, 0., False)\n" + _ONE)
op("instance_norm.functional(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
   composite(), python="nn.functional.instance_norm", out=False, samples="instance_norm", doc=_INSTANCE, node="ViewBackward0",
   example=">>> facula.nn.functional.instance_norm(facula.tensor([[[1., 3.]]]), eps=0.)\n" + _ONE)
op("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor", composite(),
   python="nn.functional.local_response_norm", out=False, samples="local_response_norm",
   doc="Divides by ``(k + alpha * m)**beta``, where m is the mean square over ``size`` neighbouring channels.",
   example=">>> facula.nn.functional.local_response_norm(facula.ones(1, 1, 1), 1, alpha=1., beta=1.)\ntensor([[[0.5000]]])")
