"""Differences from PyTorch that programs written for it have shown, fourth part."""

import re
import warnings

import pytest
from package_under_test import F

nn = F.nn
f = F.nn.functional


# ---- random streams


@pytest.mark.parametrize(
    "drop", [f.dropout, f.alpha_dropout, f.dropout1d, f.dropout2d, f.feature_alpha_dropout]
)
@pytest.mark.parametrize("inplace", [False, True])
def test_dropping_everything_draws_no_numbers(drop, inplace):
    F.manual_seed(1)
    expected = F.rand(3)
    F.manual_seed(1)
    x = F.ones(2, 3, 4)
    assert drop(x, 1.0, training=True, inplace=inplace).tolist() == F.zeros(2, 3, 4).tolist()
    assert F.rand(3).tolist() == expected.tolist()


def test_dropping_everything_has_gradient_zero():
    x = F.ones(3, requires_grad=True)
    f.dropout(x, 1.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


# ---- names of nodes


IMAGE = (1, 2, 4, 4)
VOLUME = (1, 2, 4, 4, 4)
NODES = {
    "reflect": (IMAGE, lambda x: f.pad(x, (1, 1, 1, 1), "reflect"), "ReflectionPad2DBackward0"),
    "replicate": (VOLUME, lambda x: f.pad(x, (1,) * 6, "replicate"), "ReplicationPad3DBackward0"),
    "bilinear": (
        IMAGE,
        lambda x: f.interpolate(x, scale_factor=2, mode="bilinear"),
        "UpsampleBilinear2DBackward0",
    ),
    "antialias": (
        IMAGE,
        lambda x: f.interpolate(x, size=2, mode="bicubic", antialias=True),
        "UpsampleBicubic2DAaBackward0",
    ),
    "trilinear": (
        VOLUME,
        lambda x: f.interpolate(x, size=2, mode="trilinear"),
        "UpsampleTrilinear3DBackward0",
    ),
    "nearest": (VOLUME, lambda x: f.interpolate(x, size=2), "UpsampleNearest3DBackward0"),
    "exact": (
        IMAGE,
        lambda x: f.interpolate(x, size=2, mode="nearest-exact"),
        "UpsampleNearestExact2DBackward0",
    ),
    "max 1": ((1, 2, 4), lambda x: f.max_pool1d(x, 2), "SqueezeBackward1"),
    "max 2": (IMAGE, lambda x: f.max_pool2d(x, 2), "MaxPool2DWithIndicesBackward0"),
    "max 3": (VOLUME, lambda x: f.max_pool3d(x, 2), "MaxPool3DWithIndicesBackward0"),
    "avg 3": (VOLUME, lambda x: f.avg_pool3d(x, 2), "AvgPool3DBackward0"),
    "adaptive avg 3": (VOLUME, lambda x: f.adaptive_avg_pool3d(x, 2), "AdaptiveAvgPool3DBackward0"),
    "adaptive max 3": (VOLUME, lambda x: f.adaptive_max_pool3d(x, 2), "AdaptiveMaxPool3DBackward0"),
    "celu": (IMAGE, f.celu, "CeluBackward0"),
    "selu": (IMAGE, f.selu, "EluBackward0"),
    "instance norm": (IMAGE, f.instance_norm, "ViewBackward0"),
    "pairs": ((2, 3), lambda x: f.pairwise_distance(x, F.ones(2, 3)), "NormBackward1"),
    "nll": ((2, 3), lambda x: f.nll_loss(x, F.tensor([0, 1])), "NllLossBackward0"),
    "nll 2": (
        IMAGE,
        lambda x: f.cross_entropy(x, F.zeros(1, 4, 4, dtype=F.long)),
        "NllLoss2DBackward0",
    ),
    "smoothed": (
        (2, 3),
        lambda x: f.cross_entropy(x, F.tensor([0, 1]), label_smoothing=0.1),
        "AddBackward0",
    ),
    "probabilities": ((2, 3), lambda x: f.cross_entropy(x, F.ones(2, 3)), "DivBackward1"),
    "margins": (
        (2, 3),
        lambda x: f.multi_margin_loss(x, F.tensor([0, 1])),
        "MultiMarginLossBackward0",
    ),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes_of_layers_have_their_names(case):
    shape, layer, name = NODES[case]
    x = F.rand(shape, requires_grad=True)
    y = layer(x)
    assert y.grad_fn.name() == name
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_layers_with_backward_hooks_show_them():
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *_: None)
    assert layer(F.ones(1, 2)).grad_fn.name() == "BackwardHookFunctionBackward"


def test_nodes_list_what_they_keep():
    node = F.softmax(F.ones(3, requires_grad=True), 0).grad_fn
    saved = [name for name in dir(node) if name.startswith("_saved_")]
    assert saved == ["_saved_dim", "_saved_result"]
    assert "next_functions" in dir(node)
    assert all(hasattr(node, name) for name in saved)


def test_gradient_edges_have_three_fields():
    x = F.ones(2, requires_grad=True)
    edge = F.autograd.graph.get_gradient_edge((x * 3).sum())
    _, number, token = edge
    assert (number, token) == (0, None)
    assert F.autograd.grad(edge, x)[0].tolist() == [3.0, 3.0]


def test_an_ignored_argument_of_grad_is_told():
    x = F.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs"):
        F.autograd.grad(x.sum(), x, only_inputs=False)


# ---- results


def test_named_results_in_given_tensors_keep_their_names():
    values, indices = F.empty(0), F.empty(0, dtype=F.long)
    result = F.max(F.tensor([[1.0, 5.0], [3.0, 2.0]]), 0, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert values.tolist() == [3.0, 5.0] and indices.tolist() == [1, 0]
    assert type(result) is F.return_types.max_out
    assert repr(result).startswith("facula.return_types.max_out(\nvalues=tensor([3., 5.]),")


def test_there_is_no_type_of_results_that_nothing_returns():
    with pytest.raises(AttributeError):
        _ = F.return_types.add_out


def test_steps_between_integers_may_be_fractions():
    assert F.arange(0, 3, 0.5, dtype=F.int32).tolist() == [0] * 6
    assert F.arange(5, 4, -0.5, dtype=F.int16).tolist() == [5, 5]
    with pytest.raises(ValueError, match="step must be nonzero"):
        F.arange(0, 5, 0.5, dtype=F.int64)


# ---- errors


@pytest.mark.parametrize(
    "make",
    [
        lambda n: F.zeros(n),
        lambda n: F.empty(2, n),
        lambda n: F.ones(2).view(n),
        lambda n: F.ones(2).permute(n),
        lambda n: F.full((n,), 1.0),
    ],
)
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70)])
def test_sizes_of_more_than_64_bits_are_type_errors(make, number):
    with pytest.raises(TypeError, match="Overflow when unpacking long long"):
        make(number)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: F.ones(2).transpose(n, 0),
        lambda n: F.ones(2)[n],
        lambda n: F.randint(n, (2,)),
        lambda n: F.Size([n]),
    ],
)
def test_other_integers_of_more_than_64_bits_are_value_errors(use):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        use(2**70)


@pytest.mark.skipif(F.cuda.is_available(), reason="is about machines without an accelerator")
def test_a_number_is_no_device_without_an_accelerator():
    for make in (lambda: F.device(3), lambda: F.ones(1, device=0), lambda: F.ones(1).to(0)):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
            make()
    assert F.device("cuda:3").index == 3


def test_types_of_errors_of_layers():
    q = F.rand(2, 3, 4)
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        f.scaled_dot_product_attention(q, q, q, dropout_p=1.5)
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        F.ones(2).equal(1)
    for wrong, kind in (({"bias": 0}, TypeError), ({"batch_first": "no"}, TypeError)):
        with pytest.raises(kind, match="should be of type bool"):
            nn.LSTM(2, 3, **wrong)
    with pytest.raises(ValueError, match="input_size must be greater than zero"):
        nn.GRU(0, 3)
    with pytest.raises(TypeError, match="input_size should be of type int"):
        nn.RNN(2.0, 3)
    with pytest.raises(ValueError, match=re.escape("expected 3D or 4D input (got 2D input)")):
        nn.CircularPad2d(1)(F.ones(2, 3))


@pytest.mark.parametrize(("eps", "training"), [(0.0, True), (-1e-5, True), (-1e-5, False)])
def test_batch_norm_refuses_an_eps_that_divides_by_zero(eps, training):
    layer = nn.BatchNorm1d(2, eps=eps).train(training)
    with pytest.raises(ValueError, match="batch_norm eps must be"):
        layer(F.rand(3, 2))
    assert nn.BatchNorm1d(2, eps=0.0).eval()(F.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3


# ---- layers


@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (1, 3), (4,)])
def test_one_variance_along_a_dimension(shape):
    x, target, var = F.rand(4, 3), F.rand(4, 3), F.rand(shape) + 0.1
    wide = (var.unsqueeze(-1) if len(shape) == 1 else var).expand(4, 3)
    loss = f.gaussian_nll_loss(x, target, var)
    F.testing.assert_close(loss, f.gaussian_nll_loss(x, target, wide.clone()))


@pytest.mark.parametrize("shape", [(1, 1), (3,), (4, 2), (2, 4, 3)])
def test_variances_of_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="var is of incorrect size"):
        f.gaussian_nll_loss(F.rand(4, 3), F.rand(4, 3), F.ones(shape))


def test_fractional_pools_may_have_more_samples_than_they_need():
    x, samples = F.rand(2, 6, 6, 6), F.rand(3, 2, 3)
    pool = nn.FractionalMaxPool3d(2, output_size=3, _random_samples=samples)
    exact = nn.FractionalMaxPool3d(2, output_size=3, _random_samples=samples[:1])
    assert F.equal(pool(x), exact(x))


def test_plain_dicts_of_parameters_are_sorted():
    made = nn.ParameterDict({"b": F.ones(1), "a": F.zeros(1)})
    assert list(made) == ["a", "b"]
    assert [name for name, _ in made.named_parameters()] == ["a", "b"]
    made.update({"d": F.ones(1), "c": F.ones(1)})
    assert list(made) == ["a", "b", "c", "d"]
    pairs = nn.ParameterDict([("b", F.ones(1)), ("a", F.zeros(1))])
    assert list(pairs) == list(pairs.copy()) == ["b", "a"]


def test_subclasses_of_parameter_have_arguments_of_their_own():
    class Tagged(nn.Parameter):
        def __new__(cls, data=None, requires_grad=True, tag=None):
            made = super().__new__(cls, data, requires_grad)
            made.tag = tag
            return made

    p = Tagged(F.ones(2), tag="first")
    module = nn.Module()
    module.p = p
    assert p.tag == "first" and p.requires_grad and dict(module.named_parameters())["p"] is p


def test_helpers_that_copied_layers_use():
    from facula.nn.modules import rnn, transformer

    causal = transformer._generate_square_subsequent_mask(3)
    assert causal.tolist()[0] == [0.0, float("-inf"), float("-inf")]
    assert transformer._detect_is_causal_mask(causal)
    assert not transformer._detect_is_causal_mask(causal, is_causal=False, size=3)
    assert transformer._get_seq_len(F.ones(2, 5, 4), batch_first=True) == 5
    mask = f._canonical_mask(
        mask=F.tensor([True, False]),
        mask_name="mask",
        other_type=f._none_or_dtype(None),
        other_name="",
        target_type=F.float32,
    )
    assert mask.tolist() == [float("-inf"), 0.0]
    with pytest.warns(UserWarning, match="mismatched mask and other"):
        f._canonical_mask(F.tensor([True]), "mask", F.float32, "other", F.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f._canonical_mask(F.tensor([True]), "mask", F.float32, "other", F.float32, False)
    with pytest.warns(FutureWarning, match="index_select"):
        turned = rnn.apply_permutation(F.tensor([[1, 2, 3]]), F.tensor([2, 0, 1]))
    assert turned.tolist() == [[3, 1, 2]]
