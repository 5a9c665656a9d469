"""Every layer and function of nn under CPU autocast: dtypes and values are PyTorch's."""

import warnings

import numpy as np
import pytest
from package_under_test import F

torch = pytest.importorskip("torch")

LOWER = {"bfloat16": 3e-2, "float16": 6e-3}


def rand(*shape, low=-1.0, high=1.0):
    """A tensor that both packages can make: (package, dtype) -> tensor."""

    def make(T, dtype):
        values = np.random.default_rng(sum(shape) + 7).uniform(low, high, shape).astype(np.float32)
        return T.from_numpy(values).to(dtype)

    return make


def ints(high, *shape):
    def make(T, dtype):
        return T.from_numpy(np.random.default_rng(3).integers(0, high, shape))

    return make


X2, X3, X4, X5 = rand(4, 6), rand(2, 4, 8), rand(2, 4, 8, 8), rand(1, 2, 6, 6, 6)
LAYERS = {
    "Linear": ((6, 5), X2),
    "Bilinear": ((6, 6, 3), X2, X2),
    "Conv1d": ((4, 6, 3), X3),
    "Conv2d": ((4, 6, 3), X4),
    "Conv3d": ((2, 3, 3), X5),
    "ConvTranspose1d": ((4, 6, 3), X3),
    "ConvTranspose2d": ((4, 6, 3), X4),
    "ConvTranspose3d": ((2, 3, 3), X5),
    "BatchNorm1d": ((4,), X3),
    "BatchNorm2d": ((4,), X4),
    "BatchNorm3d": ((2,), X5),
    "InstanceNorm1d": ((4,), X3),
    "InstanceNorm2d": ((4,), X4),
    "LayerNorm": ((6,), X2),
    "RMSNorm": ((6,), X2),
    "GroupNorm": ((2, 4), X4),
    "LocalResponseNorm": ((2,), X4),
    "AvgPool1d": ((2,), X3),
    "AvgPool2d": ((2,), X4),
    "AvgPool3d": ((2,), X5),
    "MaxPool1d": ((2,), X3),
    "MaxPool2d": ((2,), X4),
    "MaxPool3d": ((2,), X5),
    "LPPool2d": ((2.0, 2), X4),
    "AdaptiveAvgPool1d": ((3,), X3),
    "AdaptiveAvgPool2d": ((3,), X4),
    "AdaptiveAvgPool3d": ((3,), X5),
    "AdaptiveMaxPool1d": ((3,), X3),
    "AdaptiveMaxPool2d": ((3,), X4),
    "AdaptiveMaxPool3d": ((3,), X5),
    "ReflectionPad1d": ((2,), X3),
    "ReflectionPad2d": ((2,), X4),
    "ReflectionPad3d": ((2,), X5),
    "ReplicationPad1d": ((2,), X3),
    "ReplicationPad2d": ((2,), X4),
    "ReplicationPad3d": ((2,), X5),
    "ZeroPad2d": ((2,), X4),
    "ConstantPad1d": ((2, 0.5), X3),
    "CircularPad1d": ((2,), X3),
    "CircularPad2d": ((2,), X4),
    "CircularPad3d": ((2,), X5),
    "ReLU": ((), X2),
    "ReLU6": ((), X2),
    "ELU": ((), X2),
    "SELU": ((), X2),
    "CELU": ((), X2),
    "GELU": ((), X2),
    "SiLU": ((), X2),
    "Mish": ((), X2),
    "Softplus": ((), X2),
    "Softsign": ((), X2),
    "Softshrink": ((), X2),
    "Hardshrink": ((), X2),
    "Hardtanh": ((), X2),
    "Hardsigmoid": ((), X2),
    "Hardswish": ((), X2),
    "LeakyReLU": ((), X2),
    "LogSigmoid": ((), X2),
    "PReLU": ((), X2),
    "Sigmoid": ((), X2),
    "Tanh": ((), X2),
    "Tanhshrink": ((), X2),
    "Threshold": ((0.1, 0.2), X2),
    "GLU": ((), X2),
    "Softmax": ((-1,), X2),
    "Softmin": ((-1,), X2),
    "LogSoftmax": ((-1,), X2),
    "Softmax2d": ((), X4),
    "PixelShuffle": ((2,), X4),
    "PixelUnshuffle": ((2,), X4),
    "ChannelShuffle": ((2,), X4),
    "Upsample": ((None, 2, "bilinear"), X4),
    "UpsamplingNearest2d": ((None, 2), X4),
    "Fold": (((4, 4), 2), rand(2, 8, 9)),
    "Unfold": ((2,), X4),
    "Flatten": ((), X4),
    "CosineSimilarity": ((), X2, X2),
    "PairwiseDistance": ((), X2, X2),
    "Embedding": ((9, 4), ints(9, 3, 2)),
    "EmbeddingBag": ((9, 4), ints(9, 3, 2)),
    "RNN": ((8, 5), X3),
    "LSTM": ((8, 5), X3),
    "GRU": ((8, 5), X3),
    "RNNCell": ((6, 5), X2),
    "LSTMCell": ((6, 5), X2),
    "GRUCell": ((6, 5), X2),
    "MultiheadAttention": ((8, 2), X3, X3, X3),
    "TransformerEncoderLayer": ((8, 2, 16, 0.0), X3),
    "L1Loss": ((), X2, X2),
    "MSELoss": ((), X2, rand(4, 6, low=0.0)),
    "SmoothL1Loss": ((), X2, rand(4, 6, low=0.0)),
    "HuberLoss": ((), X2, rand(4, 6, low=0.0)),
    "BCEWithLogitsLoss": ((), X2, rand(4, 6, low=0.0)),
    "BCELoss": ((), rand(4, 6, low=0.1, high=0.9), rand(4, 6, low=0.0)),
    "KLDivLoss": ((), X2, rand(4, 6, low=0.1)),
    "CrossEntropyLoss": ((), X2, ints(6, 4)),
    "NLLLoss": ((), X2, ints(6, 4)),
    "PoissonNLLLoss": ((), X2, rand(4, 6, low=0.1)),
    "GaussianNLLLoss": ((), X2, rand(4, 6, low=0.1), rand(4, 6, low=0.5)),
    "SoftMarginLoss": ((), X2, X2),
    "MultiMarginLoss": ((), X2, ints(6, 4)),
    "MultiLabelMarginLoss": ((), X2, ints(6, 4, 6)),
    "MultiLabelSoftMarginLoss": ((), X2, rand(4, 6, low=0.0)),
    "HingeEmbeddingLoss": ((), X2, X2),
    "CosineEmbeddingLoss": ((), X2, X2, rand(4)),
    "MarginRankingLoss": ((), X2, X2, rand(4, 6)),
    "TripletMarginLoss": ((), X2, X2, rand(4, 6, low=0.0)),
}
FUNCTIONS = {
    "addmv": lambda T, x: T.addmv(x[:4, 0], x[:4], x[0]),
    "addmm": lambda T, x: T.addmm(x[:4, :4], x, x.t()),
    "mv": lambda T, x: T.mv(x, x[0]),
    "dot": lambda T, x: T.dot(x[0], x[1]),
    "outer": lambda T, x: T.outer(x[0], x[1]),
    "matmul": lambda T, x: x @ x.t(),
    "einsum": lambda T, x: T.einsum("ij,kj->ik", x, x),
    "tensordot": lambda T, x: T.tensordot(x, x, dims=([1], [1])),
    "chain": lambda T, x: T.linalg.multi_dot([x, x.t(), x]),
    "addbmm": lambda T, x: T.addbmm(x[:4, :4], x[None], x.t()[None]),
    "addr": lambda T, x: T.addr(x, x[:, 0], x[0]),
    "cdist": lambda T, x: T.cdist(x, x),
    "pad_circular": lambda T, x: T.nn.functional.pad(x[None], (1, 1), mode="circular"),
    "pad_reflect": lambda T, x: T.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "pad_replicate": lambda T, x: T.nn.functional.pad(x[None], (1, 1), mode="replicate"),
    "pad_constant": lambda T, x: T.nn.functional.pad(x[None], (1, 1), value=0.5),
    "interpolate": lambda T, x: T.nn.functional.interpolate(x[None], scale_factor=2),
    "interpolate_bicubic": lambda T, x: T.nn.functional.interpolate(
        x[None, None], scale_factor=2, mode="bicubic"
    ),
    "grid_sample": lambda T, x: T.nn.functional.grid_sample(
        x[None, None], x[None, :, :2, None].expand(1, 4, 2, 2), align_corners=False
    ),
    "affine_grid": lambda T, x: T.nn.functional.affine_grid(
        x[None, :2, :3], [1, 1, 3, 3], align_corners=False
    ),
    "normalize": lambda T, x: T.nn.functional.normalize(x),
    "attention": lambda T, x: T.nn.functional.scaled_dot_product_attention(x, x, x),
    "softmax": lambda T, x: x.softmax(-1),
    "logsumexp": lambda T, x: x.logsumexp(-1),
    "sum": lambda T, x: x.sum(0),
    "prod": lambda T, x: x.prod(0),
    "cumsum": lambda T, x: x.cumsum(0),
    "norm": lambda T, x: x.norm(),
    "var": lambda T, x: x.var(0),
    "exp": lambda T, x: x.exp(),
    "pow": lambda T, x: x**2,
    "cat": lambda T, x: T.cat([x, x.float()]),
    "stack": lambda T, x: T.stack([x, x.float()]),
    "where": lambda T, x: T.where(x > 0, x, x.float()),
    "lerp": lambda T, x: T.lerp(x, x, 0.5),
    "kron": lambda T, x: T.kron(x, x),
    "bilinear": lambda T, x: T.nn.functional.bilinear(
        x, x, x[None, :, :, None].expand(2, 4, 6, 6)[:, 0]
    ),
    "glu": lambda T, x: T.nn.functional.glu(x),
    "index_copy": lambda T, x: x.index_copy(0, T.tensor([0]), x[1:2]),
    "quantile": lambda T, x: T.quantile(x, 0.5),
    "trace": lambda T, x: T.trace(x),
    "gumbel": lambda T, x: T.nn.functional.cosine_similarity(x, x + 1),
    "pdist": lambda T, x: T.nn.functional.pdist(x),
    "fold": lambda T, x: T.nn.functional.unfold(x[None, None], 2),
    "linalg_inv": lambda T, x: T.linalg.inv(x[:4, :4] + 3 * T.eye(4, dtype=x.dtype)),
    "atan2": lambda T, x: T.atan2(x, x + 2),
}


def tensors(result):
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in tensors(r)]
    return [] if result is None else [result]


def outcome(T, run, lower):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with T.autocast("cpu", dtype=getattr(T, lower)):
                return tensors(run())
        except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
            return error


def compare(make, lower):
    """``make(package)`` gives what is run under autocast."""
    wanted = outcome(torch, make(torch), lower)
    got = outcome(F, make(F), lower)
    if isinstance(wanted, Exception):
        return  # what PyTorch lacks in this dtype may work here
    assert not isinstance(got, Exception), got
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert str(g.dtype).split(".")[-1] == str(w.dtype).split(".")[-1]
        assert tuple(g.shape) == tuple(w.shape)
        a, b = (t.detach().double().numpy() for t in (g, w))
        np.testing.assert_allclose(a, b, rtol=LOWER[lower], atol=LOWER[lower])


@pytest.mark.parametrize("given", ["float32", "lower"])
@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, lower, given):
    arguments, *inputs = LAYERS[name]

    def make(T):
        torch.manual_seed(0)
        layer = getattr(torch.nn, name)(*arguments)
        state = {k: v.numpy() for k, v in layer.state_dict().items()}
        if T is not torch:
            layer = getattr(T.nn, name)(*arguments)
            layer.load_state_dict({k: T.from_numpy(v.copy()) for k, v in state.items()})
        dtype = getattr(T, lower if given == "lower" else "float32")
        made = [make_input(T, dtype) for make_input in inputs]
        return lambda: layer(*made)

    compare(make, lower)


@pytest.mark.parametrize("given", ["float32", "lower"])
@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, lower, given):
    def make(T):
        x = X2(T, getattr(T, lower if given == "lower" else "float32"))
        return lambda: FUNCTIONS[name](T, x)

    compare(make, lower)


@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize(
    "name", ["Linear", "Conv2d", "LSTM", "GRUCell", "LayerNorm", "BatchNorm2d"]
)
def test_layers_in_the_lower_precision_themselves(name, lower):
    """model.bfloat16() under autocast."""
    arguments, *inputs = LAYERS[name]

    def make(T):
        torch.manual_seed(0)
        layer = getattr(torch.nn, name)(*arguments)
        state = {k: v.numpy() for k, v in layer.state_dict().items()}
        if T is not torch:
            layer = getattr(T.nn, name)(*arguments)
            layer.load_state_dict({k: T.from_numpy(v.copy()) for k, v in state.items()})
        layer = layer.to(getattr(T, lower))
        made = [make_input(T, T.float32) for make_input in inputs]
        return lambda: layer(*made)

    compare(make, lower)
