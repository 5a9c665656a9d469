"""Recurrent layers on CUDA against the host."""

import pytest
from cuda_comparison import close, is_half, needs_cuda, random
from package_under_test import F

pytestmark = needs_cuda


@pytest.fixture(autouse=True)
def full_precision():
    """Products in TF32, the default of cuDNN, have three digits."""
    with F.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


MAKERS = {
    "lstm": lambda **o: F.nn.LSTM(5, 6, **o),
    "lstm_projected": lambda **o: F.nn.LSTM(5, 6, proj_size=3, **o),
    "gru": lambda **o: F.nn.GRU(5, 6, **o),
    "tanh": lambda **o: F.nn.RNN(5, 6, **o),
    "relu": lambda **o: F.nn.RNN(5, 6, nonlinearity="relu", **o),
}
VARIANTS = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}]


def run(layer, x, device):
    layer = layer.to(device)
    layer.zero_grad()
    x = x.detach().to(device).requires_grad_()
    out, state = layer(x)
    states = state if isinstance(state, tuple) else (state,)
    F.manual_seed(3)
    loss = sum((t.float() * F.randn(t.shape).to(device)).sum() for t in (out, *states))
    loss.backward()
    grads = [p.grad.clone() for p in layer.parameters()]
    return [out, *states, x.grad, *grads]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.bfloat16])
def test_layers_and_their_gradients(kind, options, dtype):
    F.manual_seed(0)
    layer = MAKERS[kind](**options).to(dtype)
    x = random(4, 3, 5, dtype=dtype)
    host = [t.detach() for t in run(layer, x, "cpu")]
    slack = {"rtol": 5e-2, "atol": 5e-2} if is_half(dtype) else {"rtol": 1e-4, "atol": 1e-4}
    for a, b in zip(run(layer, x, "cuda"), host, strict=True):
        close(a, b, **slack)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(kind, bidirectional):
    F.manual_seed(0)
    layer = MAKERS[kind](bidirectional=bidirectional)
    x = random(5, 3, 5)
    results = []
    for device in ("cpu", "cuda"):
        on = layer.to(device)
        on.zero_grad()
        given = x.detach().to(device).requires_grad_()
        packed = F.nn.utils.rnn.pack_padded_sequence(given, F.tensor([5, 3, 1]))
        out, state = on(packed)
        states = state if isinstance(state, tuple) else (state,)
        F.manual_seed(3)
        loss = sum((t * F.randn(t.shape).to(device)).sum() for t in (out.data, *states))
        loss.backward()
        results.append(
            [out.data.detach(), *states, given.grad, *(p.grad.clone() for p in on.parameters())]
        )
    for a, b in zip(results[1], results[0], strict=True):
        close(a, b, rtol=1e-4, atol=1e-4)


def test_cells():
    F.manual_seed(0)
    x, h, c = random(3, 5), random(3, 6, seed=1), random(3, 6, seed=2)
    cell = F.nn.LSTMCell(5, 6)
    host = cell(x, (h, c))
    for a, b in zip(cell.cuda()(x.cuda(), (h.cuda(), c.cuda())), host, strict=True):
        close(a, b)
    cell = F.nn.GRUCell(5, 6)
    host = cell(x, h)
    close(cell.cuda()(x.cuda(), h.cuda()), host)


def test_gradients_cross_devices_with_the_tensors():
    x = random(3, 4).requires_grad_()
    (x.cuda().exp().sum() + x.cuda()[0].cpu().sum()).backward()
    expected = x.detach().exp()
    expected[0] += 1
    assert x.grad.device.type == "cpu" and F.allclose(x.grad, expected, rtol=1e-5)


def test_float32_is_rounded_where_cudnn_may():
    F.manual_seed(0)
    layer = F.nn.LSTM(64, 64).cuda()
    x = random(8, 16, 64).cuda()
    exact = layer(x)[0]
    with F.backends.cudnn.flags(enabled=True, allow_tf32=True):
        rounded = layer(x)[0]
    close(rounded, exact.cpu(), rtol=1e-2, atol=1e-2)
    assert not F.equal(rounded, exact)
