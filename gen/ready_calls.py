"""The calls whose kernels come with the package: see ready_kernels.py, which runs them.

A kernel's text depends on dtypes, on whether elements lie one after the other, and for rows on how
many threads share one (``cuda/line.cpp``); so the sizes here stand for all that are treated alike. What an ordinary program
uses in training comes in the three dtypes of training, long series in single and double precision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

HALVES = ("bfloat16", "float16")
FLOATS = ("float32", *HALVES)
Call = Callable[[Any], Any]
Body = Callable[..., Any]


def on_device(F: Any, dtype: str, *shape: int) -> Any:
    """Numbers that want a gradient."""
    return F.zeros(*shape, dtype=getattr(F, dtype), device="cuda", requires_grad=True)


def forward_and_backward(F: Any, out: Any) -> None:
    for part in out if isinstance(out, tuple) else (out,):
        if part.requires_grad:
            part.backward(F.zeros_like(part), retain_graph=True)


def of_shapes(body: Body, *shapes: tuple[int, ...], dtype: str) -> Call:
    """``body`` of tensors of these shapes, and its gradients."""

    def call(F: Any) -> None:
        forward_and_backward(F, body(F, *(on_device(F, dtype, *shape) for shape in shapes)))

    return call


# ---- attention


def attention(dtype: str, width: int, kind: str) -> Call:
    """Forward and gradients; ``kind`` is "plain", "causal", "bool" or "float", after the mask."""

    def call(F: Any) -> None:
        q, k, v = (on_device(F, dtype, 1, 1, 64, width) for _ in range(3))
        mask = None
        if kind in ("bool", "float"):
            mask_dtype = F.bool if kind == "bool" else q.dtype
            mask = F.zeros(64, 64, dtype=mask_dtype, device="cuda")
        out = F.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=kind == "causal"
        )
        forward_and_backward(F, out)

    return call


# ---- functions that are long series or have many cases, by how many arguments they take
ONE = ["digamma", "lgamma", "sinc", "special.airy_ai", "special.log_ndtr"]
ONE += [f"special.{name}" for name in ("i0", "i0e", "i1", "i1e", "spherical_bessel_j0")]
ONE += [f"special.bessel_{kind}{n}" for kind in "jy" for n in (0, 1)]
ONE += [f"special.modified_bessel_{kind}{n}" for kind in "ik" for n in (0, 1)]
ONE += [f"special.scaled_modified_bessel_k{n}" for n in (0, 1)]
TWO = ["logaddexp", "special.gammainc", "special.gammaincc", "special.zeta"]
TWO += [f"special.{name}chebyshev_polynomial_{k}" for name in ("", "shifted_") for k in "tuvw"]
TWO += [f"special.hermite_polynomial_{kind}" for kind in ("h", "he")]
TWO += ["special.laguerre_polynomial_l", "special.legendre_polynomial_p"]


def function(name: str, dtype: str) -> Call:
    """A function of elements of one dtype that lie one after the other; gradients if it has them."""

    def call(F: Any) -> None:
        arguments = [on_device(F, dtype, 64) for _ in range(2 if name in TWO else 1)]
        of = F
        for part in name.split("."):
            of = getattr(of, part)
        with contextlib.suppress(NotImplementedError):
            forward_and_backward(F, of(*arguments))

    return call


# ---- functions that every program has, one call for all of a dtype
ELEMENTARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "square",
    "abs",
    "neg",
    "sign",
]
ELEMENTARY += [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
]
ELEMENTARY += ["erf", "erfc", "erfinv", "sigmoid", "floor", "ceil", "round", "trunc", "frac"]
OF_TWO = [
    "add",
    "sub",
    "mul",
    "div",
    "atan2",
    "hypot",
    "maximum",
    "minimum",
    "fmod",
    "remainder",
    "xlogy",
    "special.xlog1py",
]
OF_TWO += ["eq", "ne", "lt", "le", "gt", "ge"]


def elementary(dtype: str) -> Call:
    def call(F: Any) -> None:
        a, b, c = (on_device(F, dtype, 64) for _ in range(3))
        for name in ELEMENTARY:
            forward_and_backward(F, getattr(F, name)(a))
        for name in OF_TWO:
            of = F.special if name.startswith("special.") else F
            forward_and_backward(F, getattr(of, name.removeprefix("special."))(a, b))
        forward_and_backward(F, F.lerp(a, b, 0.5))
        forward_and_backward(F, F.lerp(a, b, c))
        forward_and_backward(F, F.addcmul(a, b, c))
        forward_and_backward(F, F.addcdiv(a, b, c))
        forward_and_backward(F, a.clamp(0, 1))
        forward_and_backward(F, a.clamp(min=0))
        for number in (a + 1, a * 2, a / 3, 1 - a, 1 / a, a**2, a**3, 2**a, -a, a > 0):
            forward_and_backward(F, number)

    return call


# ---- what models are made of: a body, then the shapes of its arguments
ROWS = (64, 768)
WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
IMAGE = (2, 8, 16, 16)
BODIES: list[tuple[Any, ...]] = []


def functional(name: str, *shapes: tuple[int, ...], **options: Any) -> None:
    BODIES.append((lambda F, *args: getattr(F.nn.functional, name)(*args, **options), *shapes))


def of_tensor(body: Body, *shapes: tuple[int, ...]) -> None:
    BODIES.append((lambda F, *args: body(*args), *shapes))


for _width in WIDTHS:
    _rows = (4, _width)
    BODIES.append(
        (
            lambda F, x, w, b: F.nn.functional.layer_norm(x, w.shape, w, b),
            _rows,
            (_width,),
            (_width,),
        )
    )
    BODIES.append((lambda F, x, w: F.nn.functional.rms_norm(x, w.shape, w), _rows, (_width,)))
functional("layer_norm", ROWS, normalized_shape=ROWS[1:])
for _width in (10, *WIDTHS, 50304, 50257):
    functional("softmax", (4, _width), dim=1)
    functional("log_softmax", (4, _width), dim=1)
functional("softmax", ROWS, dim=0)
functional("log_softmax", IMAGE, dim=1)
functional("softmax", (4, 8, 64, 64), dim=-1)
for _name in ("gelu", "silu", "relu", "sigmoid", "tanh", "softplus", "elu", "leaky_relu", "mish"):
    functional(_name, ROWS)
for _name in ("hardswish", "hardsigmoid", "hardtanh", "relu6", "selu", "celu", "logsigmoid"):
    functional(_name, ROWS)
functional("gelu", ROWS, approximate="tanh")
functional("glu", ROWS)
functional("dropout", ROWS, p=0.1)
functional("prelu", ROWS, (1,))
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"):
    functional(_name, ROWS, ROWS)
functional("binary_cross_entropy_with_logits", ROWS, ROWS)
functional("kl_div", ROWS, ROWS, reduction="batchmean")
functional("cosine_similarity", ROWS, ROWS)
functional("normalize", ROWS)
functional("group_norm", IMAGE, num_groups=4)
BODIES.append(
    (lambda F, x, w, b: F.nn.functional.group_norm(x, 4, w, b), IMAGE, IMAGE[1:2], IMAGE[1:2])
)
functional("instance_norm", IMAGE)
functional("max_pool2d", IMAGE, kernel_size=2)
functional("max_pool2d", IMAGE, kernel_size=3, stride=2, padding=1)
functional("avg_pool2d", IMAGE, kernel_size=2)
functional("adaptive_avg_pool2d", IMAGE, output_size=1)
functional("adaptive_avg_pool2d", IMAGE, output_size=7)
functional("max_pool1d", (2, 8, 64), kernel_size=2)
for _name in ("nearest", "bilinear", "bicubic"):
    functional("interpolate", IMAGE, scale_factor=2, mode=_name)
functional("grid_sample", IMAGE, (2, 8, 8, 2), align_corners=False)
functional("grid_sample", IMAGE, (2, 8, 8, 2), align_corners=False, mode="bicubic")
functional("unfold", IMAGE, kernel_size=3)
functional("pad", IMAGE, pad=(1, 1, 1, 1))
functional("pad", IMAGE, pad=(1, 1, 1, 1), mode="reflect")
functional("pad", IMAGE, pad=(1, 1, 1, 1), mode="replicate")
functional("conv2d", IMAGE, (8, 1, 3, 3), padding=1, groups=8)
functional("pixel_shuffle", IMAGE, upscale_factor=2)
for _name in ("sum", "mean", "amax", "logsumexp", "prod", "var", "std", "norm", "max", "argmax"):
    for _dim in (0, 1):
        of_tensor(lambda x, name=_name, dim=_dim: getattr(x, name)(dim=dim), ROWS)
for _name in ("sum", "mean", "max", "min", "norm", "std", "var", "argmax"):
    of_tensor(lambda x, name=_name: getattr(x, name)(), (2048, 1024))
of_tensor(lambda x: x.sum((0, 2, 3)), IMAGE)
of_tensor(lambda x: x.mean((2, 3)), IMAGE)
for _name in ("cumsum", "cumprod", "cummax", "logcumsumexp"):
    for _rows in ((64, 48), ROWS):
        of_tensor(lambda x, name=_name: getattr(x, name)(1), _rows)
of_tensor(lambda x: x.cumsum(0), ROWS)
of_tensor(lambda x: x.cumsum(1), (4, 50304))
for _length in (64, 1000, 4000, 1 << 20):
    of_tensor(lambda x: x.sort(1)[0], (2, _length))
of_tensor(lambda x: x.argsort(1), ROWS)
of_tensor(lambda x: x.topk(5, 1)[0], (4, 50304))
of_tensor(lambda x: x.topk(5, 1)[0], ROWS)
of_tensor(lambda x: x.median(1)[0], ROWS)
of_tensor(lambda x: x.tril(), (64, 64))
of_tensor(lambda x: x.triu(), (64, 64))
of_tensor(lambda x: x.float(), ROWS)
of_tensor(lambda x: x.bfloat16(), ROWS)
of_tensor(lambda x: x.half(), ROWS)
of_tensor(lambda x: x.transpose(1, 2).contiguous(), (2, 64, 4, 32))
of_tensor(lambda x: x.permute(0, 2, 3, 1).contiguous(), IMAGE)
of_tensor(lambda x: x.permute(0, 3, 1, 4, 2).contiguous(), (2, 3, 4, 5, 6))
of_tensor(lambda a, b: a + b, ROWS, (768,))
of_tensor(lambda a, b: a * b, ROWS, (64, 1))
of_tensor(lambda a, b: a / b, ROWS, ROWS)
of_tensor(lambda a, b: a**b, ROWS, ROWS)
of_tensor(lambda x: x**2.5, ROWS)
of_tensor(lambda a, b: a % b, ROWS, ROWS)
of_tensor(lambda x: x.sin() + x.cos(), ROWS)
BODIES.append((lambda F, a, b: F.cat([a, b], 1), ROWS, ROWS))
BODIES.append((lambda F, a, b: F.stack([a, b]), ROWS, ROWS))
BODIES.append((lambda F, a, b: F.where(a > b, a, b), ROWS, ROWS))
BODIES.append((lambda F, a, b: F.cdist(a, b), (8, 16), (8, 16)))
BODIES.append((lambda F, a, b: F.cdist(a, b, p=1.0), (8, 16), (8, 16)))


# ---- with whole numbers beside them: the last of the arguments


def indexed(body: Body, shape: tuple[int, ...], index: tuple[int, ...], dtype: str) -> Call:
    def call(F: Any) -> None:
        whole = F.zeros(*index, dtype=F.int64, device="cuda")
        forward_and_backward(F, body(F, on_device(F, dtype, *shape), whole))

    return call


INDEXED: list[tuple[Body, tuple[int, ...], tuple[int, ...]]] = [
    *(
        (lambda F, x, i: F.nn.functional.cross_entropy(x, i), (64, classes), (64,))
        for classes in (2, 10, 65, 100, 1000, 32000, 50304, 50257)
    ),
    (lambda F, x, i: F.nn.functional.cross_entropy(x, i, label_smoothing=0.1), (64, 1000), (64,)),
    (lambda F, x, i: F.nn.functional.cross_entropy(x, i), IMAGE, (2, 16, 16)),
    (lambda F, x, i: F.nn.functional.nll_loss(x, i), (64, 1000), (64,)),
    (lambda F, x, i: F.nn.functional.embedding(i, x), (100, 768), (8, 16)),
    (lambda F, x, i: F.nn.functional.embedding_bag(i, x), (100, 768), (8, 16)),
    (lambda F, x, i: x[i], (64, 768), (32,)),
    (lambda F, x, i: x[:, i], (64, 768), (32,)),
    (lambda F, x, i: x[i, i], (64, 768), (32,)),
    (lambda F, x, i: x.gather(1, i), (64, 768), (64, 4)),
    (lambda F, x, i: x.scatter_add(1, i, x[:, :4]), (64, 768), (64, 4)),
    (lambda F, x, i: x.scatter(1, i, 1.0), (64, 768), (64, 4)),
    (lambda F, x, i: x.scatter_reduce(1, i, x[:, :4], "amax"), (64, 768), (64, 4)),
    (lambda F, x, i: x.index_select(0, i), (64, 768), (32,)),
    (lambda F, x, i: x.index_add(0, i, x), (64, 768), (64,)),
    (lambda F, x, i: x.index_put((i,), x), (64, 768), (64,)),
    (lambda F, x, i: x.index_put((i,), x, accumulate=True), (64, 768), (64,)),
    (lambda F, x, i: x[i > 0], (64, 768), (64, 768)),
    (lambda F, x, i: x.masked_fill(i > 0, 0.0), (64, 768), (64, 768)),
    (lambda F, x, i: F.where(i > 0, x, x.detach()), (64, 768), (64, 768)),
]


def batch_norm(dtype: str, training: bool) -> Call:
    def call(F: Any) -> None:
        norm = F.nn.BatchNorm2d(8).cuda().train(training)
        forward_and_backward(F, norm(on_device(F, dtype, *IMAGE)))

    return call


def ctc(F: Any) -> None:
    targets = F.zeros(4, 8, dtype=F.int64, device="cuda")
    x = on_device(F, "float32", 20, 4, 10)
    forward_and_backward(F, F.nn.functional.ctc_loss(x, targets, [20] * 4, [8] * 4))


# ---- random numbers, order of whole numbers, optimisers


def samples(F: Any) -> None:
    x = F.zeros(64, 48, device="cuda")
    for dtype in map(F.__getattribute__, FLOATS):
        F.rand(64, 48, dtype=dtype, device="cuda")
        F.randn(64, 48, dtype=dtype, device="cuda")
        F.zeros(64, 48, dtype=dtype, device="cuda").exponential_()
    F.randint(0, 9, (64, 48), device="cuda")
    for count in (99, 999, 1999, 3999, 99999):
        F.randperm(count, device="cuda")
    F.bernoulli(x)
    F.poisson(x)
    F.normal(x, x)
    F.distributions.Gamma(x, x, validate_args=False).sample()
    F.distributions.Beta(x, x, validate_args=False).sample()


def of_whole_numbers(F: Any) -> None:
    x = F.zeros(64, 768, dtype=F.int64, device="cuda")
    for length in (64, 1000, 4000, 1 << 20):
        x.new_zeros(2, length).sort(1)
    x.cumsum(0), x.cumsum(1), x[:, :48].cumsum(1), (x > 0).cumsum(1)
    for mask in (x, x > 0, x.float(), x[0] > 0, x.view(64, 24, 32) > 0):
        mask.nonzero(), mask[mask > 0]
    x.sum(), x.sum(0), x.sum(1), x.max(), x.max(1), x.argmax(1)
    (x == x).all(), (x == x).any(1), (x == x).sum(), (x == x).float().mean()
    x / x, x // 7, x % 7, x // x, x % x, x**x, x.float(), x.to(F.int32)
    F.nn.functional.one_hot(x[0], 10), x @ x.T
    images = x.view(4, 4, 64, 48)
    F.nn.functional.conv2d(images, images[..., :3, :3].contiguous())
    F.searchsorted(x, x), F.bincount(x[0], minlength=10), F.arange(9, device="cuda")
    F.searchsorted(x.float(), x.float()), F.eye(9, device="cuda")


def of_complex_numbers(F: Any) -> None:
    z = on_device(F, "complex64", 64, 48)
    for out in (z * z, z / z, z.exp(), z**z, z.sum(0), z.sum(), z.abs(), z.conj() + z):
        forward_and_backward(F, out)


def step(optimiser: str, dtype: str, **options: Any) -> Call:
    def call(F: Any) -> None:
        x = on_device(F, dtype, 64, 48)
        x.grad = F.zeros_like(x)
        F.nn.utils.clip_grad_norm_([x], 1.0)
        getattr(F.optim, optimiser)([x], lr=0.1, **options).step()

    return call


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("AdamW", {}),
    ("AdamW", {"capturable": True}),
    *((name, {}) for name in ("RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam")),
    *((name, {}) for name in ("Adamax", "Rprop")),
]


def calls() -> Iterator[Call]:
    """Long ones first, so that the last to run are short."""
    for dtype in FLOATS:
        for width in (64, 128):
            for kind in ("causal", "plain", "bool", "float"):
                yield attention(dtype, width, kind)
    for dtype in ("float32", "float64"):
        for name in (*TWO, *ONE):
            yield function(name, dtype)
        yield of_shapes(lambda F, x: F.polygamma(2, x), (64,), dtype=dtype)
        yield of_shapes(lambda F, a, b: a**b, (64,), (64,), dtype=dtype)
    for dtype in FLOATS:
        for width in (32,) if dtype == "float32" else (32, 256):
            for kind in ("causal", "plain"):
                yield attention(dtype, width, kind)
    for dtype in (*FLOATS, "float64"):
        yield elementary(dtype)
    yield samples
    yield of_whole_numbers
    yield of_complex_numbers
    yield ctc
    for dtype in FLOATS:
        for body, *shapes in BODIES:
            yield of_shapes(body, *shapes, dtype=dtype)
        for indexed_body, shape, index in INDEXED:
            yield indexed(indexed_body, shape, index, dtype)
        for training in (True, False):
            yield batch_norm(dtype, training)
        for name, options in STEPS:
            yield step(name, dtype, **options)
