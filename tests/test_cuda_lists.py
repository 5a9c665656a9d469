"""Optimisers, clipping and loss scaling on a CUDA device against the host."""

import pytest
from package_under_test import F
from test_cuda_device import close, pytestmark  # noqa: F401  (the mark skips without a device)

OPTIMIZERS = {
    "SGD": dict(lr=0.1),
    "SGD nesterov": dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": dict(lr=0.01),
    "Adam amsgrad": dict(lr=0.01, amsgrad=True, weight_decay=0.1, maximize=True),
    "AdamW": dict(lr=0.01, weight_decay=0.1),
    "Adamax": dict(lr=0.01),
    "NAdam": dict(lr=0.01),
    "RAdam": dict(lr=0.01),
    "Adagrad": dict(lr=0.01, lr_decay=0.1),
    "Adadelta": dict(lr=0.5),
    "RMSprop": dict(lr=0.01),
    "RMSprop centered": dict(lr=0.01, centered=True, momentum=0.5),
    "Rprop": dict(lr=0.01),
    "ASGD": dict(lr=0.01, t0=2),
}
SHAPES = [(3,), (64, 33), (1,), (8192,), (20_000,), (5, 4, 3), (0, 3)]


def parameters(dtype):
    F.manual_seed(0)
    host = [F.randn(*shape).to(dtype) for shape in SHAPES]
    host.append(F.randn(6, 5).to(dtype).t())  # dense in another order
    return [t.cuda().requires_grad_() for t in host], [t.requires_grad_() for t in host]


@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.bfloat16, F.float16, F.complex64])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_host(name, dtype):
    if dtype == F.complex64 and name.split()[0] not in ("SGD", "Adam", "AdamW"):
        pytest.skip("complex parameters are tested with the common rules")
    cuda, host = parameters(dtype)
    make = getattr(F.optim, name.split()[0])
    left, right = make(cuda, **OPTIMIZERS[name]), make(host, **OPTIMIZERS[name])
    for step in range(4):
        F.manual_seed(step + 1)
        for a, b in zip(cuda, host, strict=True):
            # Squares of small gradients would be subnormal in float16, where a last digit decides.
            gradient = F.randn(*b.shape)
            b.grad = (gradient + gradient.sign()).to(dtype)
            a.grad = b.grad.cuda()
        left.step()
        right.step()
    for a, b in zip(cuda, host, strict=True):
        real = (F.view_as_real(t.detach()) if t.is_complex() else t.detach() for t in (a, b))
        close(*real, rtol=2e-2 if dtype in (F.float16, F.bfloat16) else 1e-4)


@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n.split()[0] not in ("SGD", "Adagrad")])
def test_steps_that_count_on_the_device(name):
    cuda, host = parameters(F.float32)
    make = getattr(F.optim, name.split()[0])
    left = make(cuda, capturable=True, **OPTIMIZERS[name])
    right = make(host, **OPTIMIZERS[name])
    for step in range(8):  # RAdam changes its rule at the sixth
        F.manual_seed(step + 1)
        for a, b in zip(cuda, host, strict=True):
            b.grad = F.randn(*b.shape)
            a.grad = b.grad.cuda()
        left.step()
        right.step()
    for a, b in zip(cuda, host, strict=True):
        close(a.detach(), b.detach(), rtol=1e-4)
        for key, value in right.state[b].items():
            close(left.state[a][key], value, rtol=1e-4)
            assert left.state[a][key].is_cuda


@pytest.mark.parametrize("name", ["Adam", "RAdam", "SGD"])
def test_steps_in_a_graph(name):
    host = F.ones(1000).requires_grad_()
    w = F.ones(1000, device="cuda").requires_grad_()
    rate = F.full((), 0.01, device="cuda")
    options = {} if name == "SGD" else {"capturable": True}
    left = getattr(F.optim, name)([w], lr=rate, **options)
    right = getattr(F.optim, name)([host], lr=0.01)

    def step(p, optimizer):
        p.grad = None
        (p * p).sum().backward()
        optimizer.step()

    side = F.cuda.Stream()
    side.wait_stream(F.cuda.current_stream())
    with F.cuda.stream(side):
        for _ in range(3):
            step(w, left)
    F.cuda.current_stream().wait_stream(side)
    g = F.cuda.CUDAGraph()
    w.grad = None
    with F.cuda.graph(g):
        (w * w).sum().backward()
        left.step()
    for _ in range(5):
        g.replay()
    rate.fill_(0.1)  # the graph reads it
    for _ in range(10):
        g.replay()
    for i in range(18):
        right.param_groups[0]["lr"] = 0.01 if i < 8 else 0.1
        step(host, right)
    close(w.detach(), host.detach(), rtol=1e-4)


def test_a_step_over_hundreds_of_tensors():
    cuda = [F.full((1000,), float(i), device="cuda").requires_grad_() for i in range(300)]
    for p in cuda:
        p.grad = F.ones_like(p)
    F.optim.SGD(cuda, lr=0.5).step()
    assert all(p.detach().cpu().eq(i - 0.5).all() for i, p in enumerate(cuda))


@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf"), 3.0])
@pytest.mark.parametrize("dtype", [F.float32, F.bfloat16, F.float64])
def test_clipping_by_the_norm(norm, dtype):
    cuda, host = parameters(dtype)
    if norm == float("inf"):  # an empty tensor has no largest element
        cuda, host = ([p for p in side if p.numel()] for side in (cuda, host))
    for a, b in zip(cuda, host, strict=True):
        b.grad = b.detach().clone()
        a.grad = a.detach().clone()
    left = F.nn.utils.clip_grad_norm_(cuda, 1.0, norm)
    right = F.nn.utils.clip_grad_norm_(host, 1.0, norm)
    assert left.is_cuda and left.dtype == right.dtype
    close(left, right, rtol=2e-2 if dtype == F.bfloat16 else 1e-5)
    for a, b in zip(cuda, host, strict=True):
        close(a.grad, b.grad, rtol=2e-2 if dtype == F.bfloat16 else 1e-5)


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_loss_scaling_skips_steps_with_infinite_gradients(bad):
    w = F.ones(1000, device="cuda").requires_grad_()
    optimizer = F.optim.SGD([w], lr=1.0)
    scaler = F.amp.GradScaler("cuda", init_scale=4.0, growth_interval=1)
    scaler.scale((w * 0.5).sum()).backward()
    if bad is not None:
        w.grad[17] = bad
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == (8.0 if bad is None else 2.0)
    assert w.detach().cpu().eq(0.5 if bad is None else 1.0).all()


@pytest.mark.parametrize("dtype", [F.float16, F.bfloat16])
def test_autocast_computes_products_in_half_precision(dtype):
    w = F.nn.Linear(16, 8).cuda()
    x = F.randn(4, 16, device="cuda")
    with F.autocast("cuda", dtype=dtype):
        y = w(x)
        assert y.dtype == dtype
        assert y.softmax(-1).dtype == F.float32
    y.float().sum().backward()
    assert w.weight.grad.dtype == F.float32
    close(y.detach(), w.cpu()(x.cpu()).detach().to(dtype), rtol=3e-2, atol=3e-2)


def test_the_largest_element_of_nothing_is_refused():
    empty = F.zeros(0, device="cuda").requires_grad_()
    empty.grad = F.zeros(0, device="cuda")
    with pytest.raises(RuntimeError, match="empty"):
        F.nn.utils.clip_grad_norm_([empty], 1.0, float("inf"))


@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.bfloat16])
def test_arithmetic_on_lists(dtype):
    def lists(seed):
        F.manual_seed(seed)
        host = [(F.rand(*shape) + 0.5).to(dtype) for shape in SHAPES]
        host.append((F.rand(6, 5) + 0.5).to(dtype).t())
        host.append((F.rand(101) + 0.5).to(dtype)[1:])  # addresses that are not aligned
        # Copies keep neither the order of dimensions nor the offset by themselves.
        cuda = [t.cuda() for t in host[:-2]]
        cuda += [host[-2].t().contiguous().cuda().t(), F.cat([host[-1][:1], host[-1]]).cuda()[1:]]
        return cuda, host

    (x, a), (y, b), (z, c) = lists(0), lists(1), lists(2)
    numbers = [0.25 * (i + 1) for i in range(len(x))]
    for name, left, right in [
        ("add", (y,), (b,)),
        ("sub", (y,), (b,)),
        ("mul", (y,), (b,)),
        ("div", (y,), (b,)),
        ("add", (1.5,), (1.5,)),
        ("sub", (numbers,), (numbers,)),
        ("mul", (numbers,), (numbers,)),
        ("div", (3,), (3,)),
        ("maximum", (y,), (b,)),
        ("minimum", (y,), (b,)),
        ("addcmul", (y, z, 0.5), (b, c, 0.5)),
        ("addcdiv", (y, z, numbers), (b, c, numbers)),
        ("lerp", (y, 0.3), (b, 0.3)),
        ("lerp", (y, 0.7), (b, 0.7)),
        ("neg", (), ()),
        ("abs", (), ()),
        ("sqrt", (), ()),
        ("reciprocal", (), ()),
    ]:
        got = getattr(F, f"_foreach_{name}")(x, *left)
        wanted = getattr(F, f"_foreach_{name}")(a, *right)
        for one, other in zip(got, wanted, strict=True):
            close(one, other, rtol=2e-2 if dtype == F.bfloat16 else 1e-5)
            assert one.dtype == dtype and one.shape == other.shape
    F._foreach_mul_(x, y)
    F._foreach_add_(x, z, alpha=-2)
    for one, p, q, r in zip(x, a, b, c, strict=True):
        close(one, p * q - 2 * r, rtol=2e-2, atol=2e-2 if dtype == F.bfloat16 else 1e-5)
