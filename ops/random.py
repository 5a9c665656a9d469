"""Random numbers. For a seed, a dtype and a memory layout they are PyTorch's CPU numbers."""

from gen.rows import kernel, op

_GENERATOR = "Generator? generator=None"
_KW = (
    f"{_GENERATOR}, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool requires_grad=False"
)
_LIKE = f"{_KW}, MemoryFormat? memory_format=None"
_NOTE = " ``generator`` replaces the default generator."


def _seeded(call, shown):
    return f">>> _ = facula.manual_seed(0)\n>>> facula.{call}\n{shown}"


# ---- new tensors


def _new(name, args, doc, call, shown):
    op(
        f"{name}({args}, *, {_KW}) -> Tensor",
        kernel(own_out=True),
        method=False,
        samples="none",
        doc=doc + _NOTE,
        example=_seeded(call, shown),
    )


_new(
    "rand",
    "int[] size",
    "Numbers uniform on [0, 1).",
    "rand(3)",
    "tensor([0.4963, 0.7682, 0.0885])",
)
_new(
    "randn",
    "int[] size",
    "Standard normal numbers. In a complex dtype both parts have variance 1/2.",
    "randn(3)",
    "tensor([ 1.5410, -0.2934, -2.1788])",
)
_new(
    "randint",
    "int high, int[] size",
    "Integers uniform on [0, ``high``).",
    "randint(10, (4,))",
    "tensor([4, 9, 3, 0])",
)
_new(
    "randint.low",
    "int low, int high, int[] size",
    "Integers uniform on [``low``, ``high``).",
    "randint(-5, 5, (4,))",
    "tensor([-1,  4, -2, -5])",
)
_new(
    "randperm",
    "int n",
    "A random order of the integers from 0 to ``n`` - 1.",
    "randperm(5)",
    "tensor([4, 0, 1, 3, 2])",
)


def _like(name, args, doc, call, shown):
    op(
        f"{name}({args}, *, {_LIKE}) -> Tensor",
        kernel(),
        method=False,
        out=False,
        samples="none",
        doc=f"{doc} in the shape, dtype and layout of another tensor.{_NOTE}",
        example=_seeded(call, shown),
    )


_like(
    "rand_like",
    "Tensor self",
    "Numbers uniform on [0, 1)",
    "rand_like(facula.zeros(2))",
    "tensor([0.4963, 0.7682])",
)
_like(
    "randn_like",
    "Tensor self",
    "Standard normal numbers",
    "randn_like(facula.zeros(2))",
    "tensor([ 1.5410, -0.2934])",
)
_like(
    "randint_like",
    "Tensor self, int high",
    "Integers uniform on [0, ``high``)",
    "randint_like(facula.zeros(3), 10)",
    "tensor([4., 9., 3.])",
)
_like(
    "randint_like.low",
    "Tensor self, int low, int high",
    "Integers uniform on [``low``, ``high``)",
    "randint_like(facula.zeros(3), 5, 10)",
    "tensor([9., 9., 8.])",
)

# ---- around tensors: samples do not depend on their parameters smoothly, so gradients are zero

_ZERO = "zeros_like(grad)"

op(
    f"normal.tensor_tensor(Tensor mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    kernel(own_out=True),
    samples="none",
    grad={"mean": _ZERO, "std": _ZERO},
    node="NormalBackward3",
    doc="Normal numbers with a mean and a standard deviation for each." + _NOTE,
    example=_seeded(
        "normal(facula.tensor([0., 10.]), facula.tensor([1., 2.]))", "tensor([1.5410, 9.4131])"
    ),
)
op(
    f"normal.tensor_float(Tensor mean, float std=1, *, {_GENERATOR}) -> Tensor",
    kernel(own_out=True),
    samples="none",
    grad={"mean": _ZERO},
    node="NormalBackward1",
    doc="Normal numbers with a mean for each and one standard deviation." + _NOTE,
    example=_seeded("normal(facula.tensor([0., 10.]), 2.)", "tensor([3.0820, 9.4131])"),
)
op(
    f"normal.float_tensor(float mean, Tensor std, *, {_GENERATOR}) -> Tensor",
    kernel(own_out=True),
    samples="none",
    grad={"std": _ZERO},
    node="NormalBackward2",
    doc="Normal numbers with one mean and a standard deviation for each." + _NOTE,
    example=_seeded("normal(5., facula.tensor([1., 2.]))", "tensor([6.5410, 4.4131])"),
)
_new(
    "normal.float_float",
    "float mean, float std, int[] size",
    "Normal numbers with one mean and one standard deviation.",
    "normal(2., 3., (2,))",
    "tensor([6.6230, 1.1197])",
)
op(
    f"bernoulli(Tensor self, *, {_GENERATOR}) -> Tensor",
    kernel(own_out=True),
    grad=_ZERO,
    samples="none",
    doc="1 with the probability that each element gives, else 0." + _NOTE,
    example=_seeded("bernoulli(facula.tensor([0.1, 0.5, 0.9]))", "tensor([0., 0., 1.])"),
)
op(
    f"bernoulli.p(Tensor self, float p, *, {_GENERATOR}) -> Tensor",
    kernel(),
    grad=_ZERO,
    out=False,
    node="BernoulliBackward3",
    samples="none",
    doc="1 with probability ``p``, else 0, in the shape and dtype of another tensor." + _NOTE,
    example=_seeded("bernoulli(facula.zeros(4), 0.5)", "tensor([0., 0., 1., 0.])"),
)
op(
    f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_GENERATOR}) -> Tensor",
    kernel(own_out=True),
    samples="none",
    doc="Indices drawn with probabilities in proportion to the weights in each row. Without "
    "``replacement`` no index comes twice." + _NOTE,
    example=_seeded("multinomial(facula.tensor([0.1, 0.2, 0.3, 0.4]), 3)", "tensor([2, 1, 3])"),
)
op(
    f"poisson(Tensor self, {_GENERATOR}) -> Tensor",
    kernel(),
    grad=_ZERO,
    method=False,
    out=False,
    samples="none",
    doc="Counts from Poisson distributions with the given rates." + _NOTE,
    example=_seeded("poisson(facula.tensor([1., 5., 20.]))", "tensor([ 2.,  6., 19.])"),
)
op(
    f"binomial(Tensor count, Tensor prob, {_GENERATOR}) -> Tensor",
    kernel(),
    method=False,
    out=False,
    samples="none",
    doc="How many of ``count`` trials succeed, each with the probability ``prob``." + _NOTE,
    example=_seeded(
        "binomial(facula.tensor([10., 100.]), facula.tensor([0.5, 0.1]))", "tensor([ 7., 11.])"
    ),
)

# ---- in place


def _fill(name, args, doc, call, shown, **options):
    args = args + ", *" if args else "*"
    op(
        f"{name}(Tensor(a!) self, {args}, {_GENERATOR}) -> Tensor(a!)",
        kernel(),
        samples="none",
        doc=doc + _NOTE,
        example=_seeded(call, shown),
        **options,
    )


_fill(
    "uniform_",
    "float from=0, float to=1",
    "Fills with numbers uniform on [``from``, ``to``).",
    "zeros(2).uniform_(-1, 1)",
    "tensor([-0.0075,  0.5364])",
)
_fill(
    "normal_",
    "float mean=0, float std=1",
    "Fills with normal numbers.",
    "zeros(2).normal_(2, 3)",
    "tensor([6.6230, 1.1197])",
)
_fill(
    "log_normal_",
    "float mean=1, float std=2",
    "Fills with numbers whose logarithm is normal.",
    "zeros(2).log_normal_()",
    "tensor([59.2634,  1.5116])",
)
_fill(
    "exponential_",
    "float lambd=1",
    "Fills with exponential numbers of the rate ``lambd``.",
    "zeros(2).exponential_()",
    "tensor([3.5083, 1.2304])",
)
_fill(
    "cauchy_",
    "float median=0, float sigma=1",
    "Fills with Cauchy numbers.",
    "zeros(2).cauchy_()",
    "tensor([10.5977,  0.7648])",
)
_fill(
    "geometric_",
    "float p",
    "Fills with the number of trials until the first success, of probability ``p``.",
    "zeros(3).geometric_(0.3)",
    "tensor([1., 1., 3.])",
)
_fill(
    "bernoulli_.tensor",
    "Tensor p",
    "Fills with 1 or 0; ``p``, broadcast, has the probability of each 1.",
    "zeros(3).bernoulli_(facula.tensor([0.1, 0.5, 0.9]))",
    "tensor([0., 0., 1.])",
    grad={"self": "", "p": _ZERO},
    node="BernoulliBackward1",
)
_fill(
    "bernoulli_",
    "float p=0.5",
    "Fills with 1, with probability ``p``, or 0.",
    "zeros(4).bernoulli_(0.5)",
    "tensor([0., 0., 1., 0.])",
    node="BernoulliBackward2",
)
_fill(
    "random_.from_to",
    "int from, int? to",
    "Fills with integers uniform on [``from``, ``to``); None goes to the end of what the dtype "
    "holds.",
    "zeros(3).random_(5, 10)",
    "tensor([9., 9., 8.])",
    node="RandomBackward0",
)
_fill(
    "random_.to",
    "int to",
    "Fills with integers uniform on [0, ``to``).",
    "zeros(3).random_(10)",
    "tensor([4., 9., 3.])",
    node="RandomBackward1",
)
_fill(
    "random_",
    "",
    "Fills with integers uniform on what the dtype holds from 0 on (floats: up to where they hold "
    "every integer).",
    "zeros(3, dtype=facula.uint8).random_()",
    "tensor([172,  47, 117], dtype=facula.uint8)",
    node="RandomBackward2",
)
