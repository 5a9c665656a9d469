"""RNN, LSTM, GRU, their cells, and sequences of different lengths."""

import itertools

import numpy as np
import pytest
from nn_comparison import flat, same_training, same_values, to_facula, twins
from package_under_test import IS_FACULA, F, assert_close, assert_equal, facula_module

nn = F.nn
rnn = nn.utils.rnn
checks = facula_module("autograd.gradcheck")
KINDS = ["LSTM", "GRU", "RNN"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_step(kind, x, h, c, w):
    """One step from the formulas of the docstrings; `w` has the parameters by name."""
    share, state = x @ w["weight_ih"].T + w["bias_ih"], h @ w["weight_hh"].T + w["bias_hh"]
    if kind == "LSTM":
        i, f, g, o = np.split(share + state, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (r, z, n), (hr, hz, hn) = np.split(share, 3, -1), np.split(state, 3, -1)
        r, z = sigmoid(r + hr), sigmoid(z + hz)
        n = np.tanh(n + r * hn)
        return (1 - z) * n + z * h, c
    return np.tanh(share + state), c


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [1, 5, 33])
def test_layer_repeats_the_step(kind, hidden):
    layer = getattr(nn, kind)(3, hidden, dtype=F.float64)
    w = {name.removesuffix("_l0"): p.detach().numpy() for name, p in layer.named_parameters()}
    x = np.random.default_rng(0).standard_normal((6, 19, 3))
    h = c = np.zeros((19, hidden))
    expected = []
    for step in x:
        h, c = numpy_step(kind, step, h, c, w)
        expected.append(h)
    output, last = layer(F.from_numpy(x))
    assert_close(output, F.from_numpy(np.stack(expected)), 1e-11, 1e-11)
    last = last if kind == "LSTM" else (last,)
    assert_close(last[0][0], F.from_numpy(h), 1e-11, 1e-11)
    if kind == "LSTM":
        assert_close(last[1][0], F.from_numpy(c), 1e-11, 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_cell_is_one_step_of_the_layer(kind):
    layer = getattr(nn, kind)(3, 4)
    cell = getattr(nn, f"{kind}Cell")(3, 4)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = F.randn(2, 3)
    _, last = layer(x[None])
    for ours, expected in zip(flat(cell(x)), flat(last), strict=True):
        assert_close(ours, expected[0], 1e-6, 1e-6)
    for one, both in zip(flat(cell(x[0])), flat(cell(x)), strict=True):
        assert_close(one, both[0], 1e-6, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_second_derivatives(kind):
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True, dtype=F.float64)
    x = F.randn(3, 2, 2, dtype=F.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def run(x, *weights):
        parameters = dict(zip(names, weights, strict=True))
        return tuple(flat(F.func.functional_call(layer, parameters, (x,))))

    assert checks.gradcheck(run, (x, *layer.parameters()))
    assert checks.gradgradcheck(lambda x: tuple(flat(layer(x))), (x,))


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_packed_sequences(kind):
    layer = getattr(nn, kind)(2, 3, bidirectional=True, dtype=F.float64)
    x = F.randn(4, 3, 2, dtype=F.float64, requires_grad=True)

    def run(x):
        packed = rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
        output, last = layer(packed)
        return (rnn.pad_packed_sequence(output)[0], *flat(last))

    assert checks.gradcheck(run, (x,))
    assert checks.gradgradcheck(run, (x,))


def test_second_derivative_reaches_the_weights():
    layer = nn.LSTM(2, 3, dtype=F.float64)
    x = F.randn(3, 2, 2, dtype=F.float64, requires_grad=True)
    (grad,) = F.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
    grad.square().sum().backward()
    assert all(float(p.grad.abs().sum()) > 0 for p in layer.parameters())


def test_packed_sequences_equal_each_sequence_alone():
    layer = nn.LSTM(3, 4, 2, bidirectional=True)
    sequences = [F.randn(n, 3) for n in (2, 5, 1)]
    packed, (h, c) = layer(rnn.pack_sequence(sequences, enforce_sorted=False))
    for i, (out, x) in enumerate(zip(rnn.unpack_sequence(packed), sequences, strict=True)):
        alone, (h_alone, c_alone) = layer(x)
        assert_close(out, alone, 1e-5, 1e-6)
        assert_close(h[:, i], h_alone, 1e-5, 1e-6)
        assert_close(c[:, i], c_alone, 1e-5, 1e-6)


def test_dropout_acts_between_layers_in_training_only():
    layer = nn.GRU(3, 4, 2, dropout=0.999999)
    x = F.randn(5, 2, 3)
    assert_close(layer.eval()(x)[0], layer(x)[0], 0, 0)
    layer.train()
    single = nn.GRU(4, 4)
    single.load_state_dict(
        {k.replace("_l1", "_l0"): v for k, v in layer.state_dict().items() if "_l1" in k}
    )
    assert_close(layer(x)[0], single(F.zeros(5, 2, 4))[0], 1e-5, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_computes_in_float(kind):
    layer = getattr(nn, kind)(4, 6, 2)
    x = F.randn(3, 2, 4)
    with F.no_grad():
        expected, _ = layer(x)
    output, _ = layer.bfloat16()(x.bfloat16())
    assert output.dtype == F.bfloat16
    assert_close(output, expected, 0.05, 0.05)
    output.sum().backward()
    assert layer.weight_hh_l0.grad.dtype == F.bfloat16


HALVES = {"bfloat16": 2.0**-7, "float16": 2.0**-9}


def twins_in_halves(kind, dtype, inside, hidden, **options):
    """A layer of `dtype`, and one in float32 with the same weights."""
    ours = getattr(nn, kind)(inside, hidden, **options).to(dtype)
    exact = getattr(nn, kind)(inside, hidden, **options)
    exact.load_state_dict({name: w.float() for name, w in ours.state_dict().items()})
    return ours, exact


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "projected", "relu"])
def test_layers_of_halves_are_close_to_those_of_float(kind, both, dtype):
    options = {"num_layers": 2, "bidirectional": both}
    if kind == "relu":
        options["nonlinearity"] = "relu"
    kind = {"relu": "RNN"}.get(kind, kind)
    for hidden, inside, batch, bias in [(6, 3, 1, True), (33, 64, 5, False), (70, 40, 19, True)]:
        if kind == "projected":
            options["proj_size"] = hidden // 2
        ours, exact = twins_in_halves(
            "LSTM" if kind == "projected" else kind,
            getattr(F, dtype),
            inside,
            hidden,
            bias=bias,
            **options,
        )
        x = F.randn(6, batch, inside).to(getattr(F, dtype))
        lengths = [6 - i % 6 for i in range(batch)]
        packed = [
            rnn.pack_padded_sequence(t, lengths, enforce_sorted=False) for t in (x, x.float())
        ]
        with F.no_grad():
            for given, wide in ((x, x.float()), packed):
                results, expected = flat(ours(given)), flat(exact(wide))
                assert len(results) == len(expected)
                for result, value in zip(results, expected, strict=True):
                    if not result.is_floating_point():  # how a sequence was packed
                        continue
                    assert str(result.dtype).endswith(dtype)
                    assert_close(result.float(), value, HALVES[dtype], HALVES[dtype])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_halves_are_close_to_those_of_float(kind, dtype):
    ours, exact = twins_in_halves(kind, getattr(F, dtype), 20, 40)
    x = F.randn(4, 9, 20).to(getattr(F, dtype))
    ours(x)[0].float().square().sum().backward()
    exact(x.float())[0].square().sum().backward()
    for w, v in zip(ours.parameters(), exact.parameters(), strict=True):
        assert w.grad.dtype == w.dtype
        error = (w.grad.float() - v.grad).abs().max()
        assert float(error) <= 2 * HALVES[dtype] * float(v.grad.abs().max())


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch rounds by the shape of a part")
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_halves_have_the_same_bits_with_any_number_of_threads(kind, dtype):
    before = F.get_num_threads()
    layer = getattr(nn, kind)(50, 70).to(getattr(F, dtype))
    x = F.randn(9, 37, 50).to(getattr(F, dtype))
    results = []
    try:
        for threads in (1, 2, 3):
            F.set_num_threads(threads)
            results.append(layer(x)[0])
    finally:
        F.set_num_threads(before)
    assert_equal(results[0], results[1])
    assert_equal(results[0], results[2])


@pytest.mark.parametrize("dtype", HALVES)
def test_infinite_inputs_stay_in_their_sequence(dtype):
    layer = nn.LSTM(40, 40).to(getattr(F, dtype))
    x = F.ones(5, 20, 40, dtype=getattr(F, dtype))
    expected = layer(x)[0]
    x[1, 7] = float("nan")
    result = layer(x)[0]
    assert result[1:, 7].isnan().all()
    rest = [i for i in range(20) if i != 7]
    assert_equal(result[:, rest], expected[:, rest])


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch has no rule for it")
def test_vmap_over_inputs_and_weights():
    x = F.randn(4, 5, 2, 3)
    layer = nn.LSTM(3, 4)
    each = F.stack([layer(one)[0] for one in x])
    assert_close(F.vmap(lambda one: layer(one)[0])(x), each, 1e-5, 1e-6)


def test_meta_gives_the_shapes():
    layer = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, device="meta")
    output, (h, c) = layer(F.ones(5, 6, 3, device="meta"))
    assert output.shape == (5, 6, 4)
    assert h.shape == (4, 6, 2)
    assert c.shape == (4, 6, 4)


def test_weights_are_listed_by_layer_and_direction():
    layer = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert [len(w) for w in layer.all_weights] == [5] * 4
    assert layer.all_weights[1][4] is layer.weight_hr_l0_reverse
    layer.flatten_parameters()
    assert layer._flat_weights_names[:2] == ["weight_ih_l0", "weight_hh_l0"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: nn.LSTM(3, 4)(F.ones(2, 2, 5)), RuntimeError, "Expected 3, got 5"),
        (lambda: nn.LSTM(3, 4)(F.ones(2)), ValueError, "Expected input to be 2D or 3D, got 1D"),
        (
            lambda: nn.GRU(3, 4)(F.ones(2, 2, 3), F.ones(1, 3, 4)),
            RuntimeError,
            "Expected hidden size",
        ),
        (
            lambda: nn.LSTM(3, 4)(F.ones(2, 2, 3), (F.ones(1, 4), F.ones(1, 4))),
            RuntimeError,
            "For batched 3-D input, hx and cx should also be 3-D",
        ),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
        (lambda: nn.LSTM(3, 4, dropout=2), ValueError, "dropout should be a number in range"),
        (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.LSTM(3, "a"), TypeError, "hidden_size should be of type int"),
        (lambda: nn.GRUCell(3, 4)(F.ones(2, 2)), RuntimeError, "got 2 expected 3"),
        (
            lambda: nn.LSTM(3, 4)(F.ones(0, 2, 3)),
            RuntimeError,
            "sequence length to be larger than 0",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch reads beyond its memory")
def test_operators_check_what_they_are_given():
    x, h = F.ones(2, 1, 3), F.zeros(1, 1, 4)
    w = [F.ones(16, 3), F.ones(16, 4)]
    options = (False, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="expected 2 weights"):
        F.lstm(x, (h, h), w[:1], *options)
    with pytest.raises(RuntimeError, match="two hidden states"):
        F.lstm(x, (h,), w, *options)
    with pytest.raises(RuntimeError, match="must have shape"):
        F.lstm(x, (h, F.zeros(1, 1, 3)), w, *options)
    with pytest.raises(RuntimeError, match="add up to 3"):
        F.gru(
            F.ones(2, 3),
            F.tensor([2, 1]),
            F.zeros(1, 2, 4),
            [F.ones(12, 3), F.ones(12, 4)],
            *options[:5],
        )
    with pytest.raises(RuntimeError, match="must not increase"):
        F.gru(
            F.ones(3, 3),
            F.tensor([1, 2]),
            F.zeros(1, 1, 4),
            [F.ones(12, 3), F.ones(12, 4)],
            *options[:5],
        )


def test_dropout_without_layers_between_warns():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.LSTM(3, 4, dropout=0.5)


# ---- sequences


def test_packing_leaves_out_the_padding():
    x = F.tensor([[1, 4, 6], [2, 5, 0], [3, 0, 0]])
    packed = rnn.pack_padded_sequence(x, [3, 2, 1])
    assert packed.data.tolist() == [1, 4, 6, 2, 5, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices is None
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert_equal(padded, x)
    assert lengths.tolist() == [3, 2, 1]


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_brings_back_the_order(batch_first):
    lengths = [2, 4, 1, 4]
    x = F.randn(4, 4, 2)
    for i, n in enumerate(lengths):
        x[n:, i] = 7.0
    x = x.transpose(0, 1) if batch_first else x
    packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    padded, again = rnn.pad_packed_sequence(packed, batch_first, padding_value=7.0)
    assert_equal(padded, x)
    assert again.tolist() == lengths
    longer, _ = rnn.pad_packed_sequence(packed, batch_first, 7.0, total_length=6)
    assert longer.shape[1 if batch_first else 0] == 6


def test_padding_on_either_side():
    a, b = F.ones(3), F.ones(1)
    right = rnn.pad_sequence([a, b], True, 9.0)
    assert_equal(right, [[1.0, 1.0, 1.0], [1.0, 9.0, 9.0]])
    assert_equal(rnn.pad_sequence([a, b], True, 9.0, "left")[1], [9.0, 9.0, 1.0])
    assert [len(t) for t in rnn.unpad_sequence(right, F.tensor([3, 1]), True)] == [3, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rnn.pack_padded_sequence(F.ones(3, 2), [2, 3]), RuntimeError, "decreasing order"),
        (lambda: rnn.pack_padded_sequence(F.ones(3, 2), [2, 0]), RuntimeError, "greater than 0"),
        (lambda: rnn.pack_padded_sequence(F.ones(3, 2), [2]), RuntimeError, "len.lengths."),
        (lambda: rnn.pad_sequence(3), RuntimeError, "Expected iterable"),
        (lambda: rnn.pad_sequence([F.ones(1)], padding_side="x"), RuntimeError, "left or right"),
        (
            lambda: rnn.pad_packed_sequence(rnn.pack_sequence([F.ones(2)]), total_length=1),
            ValueError,
            "total_length",
        ),
    ],
)
def test_wrong_sequences_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch cuts the length")
def test_lengths_beyond_the_input_are_refused():
    with pytest.raises(RuntimeError, match="a length of 4 was given, but the input has 3 steps"):
        rnn.pack_padded_sequence(F.ones(3, 2), [4, 1])


def test_packed_sequence_converts_its_data():
    packed = rnn.pack_sequence([F.tensor([1.0, 2.0]), F.tensor([3.0])], enforce_sorted=False)
    assert packed.double().data.dtype == F.float64
    assert packed.to(F.float32) is packed
    assert packed.batch_sizes.dtype == F.int64
    assert not packed.is_cuda


CASES = [
    (kind, layers, both, bias, first, projected, packed)
    for kind, layers, both, bias, first, projected, packed in itertools.product(
        [*KINDS, "relu"], (1, 2), (False, True), (True, False), (False, True), (0, 3), (False, True)
    )
    if not projected or kind == "LSTM"
]


@pytest.mark.parametrize(("kind", "layers", "both", "bias", "first", "projected", "packed"), CASES)
def test_training_equals_pytorch(kind, layers, both, bias, first, projected, packed):
    torch = pytest.importorskip("torch")
    options = {"num_layers": layers, "bidirectional": both, "bias": bias, "batch_first": first}
    if projected:
        options["proj_size"] = projected
    if kind == "relu":
        kind, options["nonlinearity"] = "RNN", "relu"
    ours, theirs = twins(torch, kind, 5, 7, **options)
    x = torch.randn(3, 4, 5) if first else torch.randn(4, 3, 5)

    class Packed:
        """The module on sequences of lengths 2, 4 and 1."""

        def __init__(self, module, package):
            self.module, self.sequences = module, package.nn.utils.rnn
            self.parameters = module.parameters

        def __call__(self, x):
            inputs = self.sequences.pack_padded_sequence(x, [2, 4, 1], first, enforce_sorted=False)
            output, last = self.module(inputs)
            return self.sequences.pad_packed_sequence(output, first)[0], last

    if packed:
        ours, theirs = Packed(ours, F), Packed(theirs, torch)
    same_training(torch, ours, theirs, x)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_equal_pytorch(kind):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, kind, 5, 7)
    same_training(torch, ours, theirs, torch.randn(3, 5))


def test_dropped_elements_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "LSTM", 5, 7, num_layers=3, dropout=0.4)
    x = torch.randn(4, 3, 5)
    torch.manual_seed(9)
    expected, _ = theirs(x)
    F.manual_seed(9)
    same_values(ours(to_facula(x))[0], expected)


def test_pad_sequence_has_the_dtype_of_the_first_sequence():
    padded = rnn.pad_sequence([F.ones(2), F.ones(1, dtype=F.float64)])
    assert padded.dtype == F.float32


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layers_of_complex_numbers(kind):
    F.manual_seed(0)
    layer = getattr(F.nn, kind)(3, 2, 2, bidirectional=True, dtype=F.complex128)
    x = F.randn(4, 2, 3, dtype=F.complex128)
    y, _ = layer(x)
    cell = getattr(F.nn, f"{kind}Cell")(3, 2, dtype=F.complex128)
    state = {k.removesuffix("_l0"): v for k, v in layer.state_dict().items() if k.endswith("_l0")}
    cell.load_state_dict(state)
    first = getattr(F.nn, kind)(3, 2, dtype=F.complex128)
    first.load_state_dict({f"{k}_l0": v for k, v in state.items()})
    outputs, hidden = [], None
    for step in x:
        hidden = cell(step, hidden)
        outputs.append(hidden[0] if kind == "LSTM" else hidden)
    F.testing.assert_close(first(x)[0], F.stack(outputs))
    assert y.dtype == F.complex128 and y.shape == (4, 2, 4)
    gates = first.weight_ih_l0.shape[0] // 2
    if kind == "RNN":
        weights = [getattr(first, f"{n}_l0") for n in ("weight_ih", "bias_ih", "bias_hh")]
        assert gates == 1
        F.testing.assert_close(outputs[0], (x[0] @ weights[0].t() + weights[1] + weights[2]).tanh())
    y.abs().sum().backward()
    assert layer.weight_ih_l0.grad.abs().sum() > 0


def test_unpadded_sequences_are_copies():
    padded = F.zeros(3, 2)
    first, second = rnn.unpad_sequence(padded, F.tensor([3, 1]))
    first.fill_(1), second.fill_(2)
    assert padded.eq(0).all() and first.is_contiguous() and second.shape == (1,)


def test_cells_refuse_states_of_another_kind_or_batch():
    with pytest.raises(TypeError, match=r"must be (a )?tuple"):
        F.nn.LSTMCell(1, 2)(F.ones(3, 1), F.ones(3, 2))
    with pytest.raises(RuntimeError, match=r"[Bb]atch size|hidden_size"):
        F.nn.GRUCell(1, 2)(F.ones(1), F.ones(3, 2))
    with pytest.raises(RuntimeError, match="batch size 3 doesn't match"):
        F.nn.RNNCell(1, 2)(F.ones(3, 1), F.ones(2, 2))


def test_states_without_a_permutation_stay_as_they_are():
    state = (F.zeros(1, 3, 2), F.ones(1, 3, 2))
    assert F.nn.LSTM(1, 2).permute_hidden(state, None) is state


def test_packing_refuses_lengths_and_inputs_of_another_rank():
    pack = F.nn.utils.rnn.pack_padded_sequence
    with pytest.raises(RuntimeError, match="1D"):
        pack(F.ones(4, 3, 2), F.tensor([[4, 3, 1]]))
    with pytest.raises(IndexError):
        pack(F.ones(4), [4])
