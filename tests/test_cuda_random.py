"""Random numbers on CUDA devices. Skipped where there is no device."""

import pytest
from package_under_test import F

pytestmark = pytest.mark.skipif(not F.cuda.is_available(), reason="no CUDA device")

N = 200_000


def moments(x):
    x = x.double()
    return x.mean().item(), x.std().item()


@pytest.mark.parametrize("dtype", [F.float32, F.float64, F.float16, F.bfloat16])
def test_uniform_and_normal_numbers_have_their_moments(dtype):
    F.manual_seed(0)
    x = F.rand(N, device="cuda", dtype=dtype)
    assert x.is_cuda and x.dtype == dtype
    assert x.min().item() >= 0 and x.max().item() < 1
    mean, std = moments(x)
    assert abs(mean - 0.5) < 5e-3 and abs(std - 0.2887) < 5e-3
    mean, std = moments(F.randn(N, device="cuda", dtype=dtype))
    assert abs(mean) < 1e-2 and abs(std - 1) < 1e-2
    mean, std = moments(F.empty(N, device="cuda", dtype=dtype).normal_(3, 0.5))
    assert abs(mean - 3) < 1e-2 and abs(std - 0.5) < 1e-2


def test_numbers_are_those_of_pytorch():
    F.manual_seed(0)
    expected = F.tensor([0.3990, 0.5167, 0.0249, 0.9401])
    assert F.allclose(F.rand(4, device="cuda").cpu(), expected, atol=6e-5)
    F.manual_seed(0)
    expected = F.tensor([-0.9247, -0.4253, -2.6438, 0.1452])
    assert F.allclose(F.randn(4, device="cuda").cpu(), expected, atol=6e-5)


def test_seeds_and_states_repeat_numbers():
    F.manual_seed(7)
    a = F.rand(1000, device="cuda")
    state = F.cuda.get_rng_state()
    assert state.numel() == 16 and state.device.type == "cpu"
    b, c = F.randn(1000, device="cuda"), F.randint(0, 9, (100,), device="cuda")
    F.cuda.set_rng_state(state)
    assert (F.randn(1000, device="cuda") == b).all()
    assert (F.randint(0, 9, (100,), device="cuda") == c).all()
    F.cuda.manual_seed(7)
    assert (F.rand(1000, device="cuda") == a).all()
    assert not (F.rand(1000, device="cuda") == a).all()


def test_a_generator_of_its_own():
    g = F.Generator(device="cuda").manual_seed(3)
    before = F.cuda.get_rng_state()
    a = F.rand(100, device="cuda", generator=g)
    assert (F.cuda.get_rng_state() == before).all()
    assert g.get_offset() % 4 == 0 and g.get_offset() > 0
    assert (F.rand(100, device="cuda", generator=g.manual_seed(3)) == a).all()
    with pytest.raises(RuntimeError, match="generator"):
        F.rand(3, device="cuda", generator=F.Generator())


def test_host_numbers_do_not_depend_on_the_device():
    F.manual_seed(0)
    expected = F.rand(5)
    F.manual_seed(0)
    F.rand(5, device="cuda")
    assert (F.rand(5) == expected).all()


def test_strided_destinations_are_filled_completely():
    x = F.zeros(64, 64, device="cuda")
    x[::2, 1::2].uniform_(1, 2)
    assert (x[::2, 1::2] >= 1).all() and x[1::2].abs().sum().item() == 0
    assert x[:, ::2].abs().sum().item() == 0
    assert F.randn(3, 5, device="cuda", dtype=F.complex64).abs().min().item() > 0


@pytest.mark.parametrize("dtype", [F.int64, F.int32, F.uint8, F.float32, F.bfloat16])
def test_integers(dtype):
    x = F.randint(-0 if dtype == F.uint8 else -3, 7, (N,), device="cuda", dtype=dtype)
    low = 0 if dtype == F.uint8 else -3
    assert x.min().item() == low and x.max().item() == 6
    counts = F.bincount((x - low).long().cpu())
    assert (counts > 0.9 * N / len(counts)).all()
    wide = F.randint(-(2**40), 2**40, (N,), device="cuda")
    assert wide.abs().max().item() > 2**39
    assert F.empty(N, device="cuda", dtype=F.uint8).random_().max().item() == 255


def test_permutations():
    for n in (0, 1, 5, 4096, 100_000):
        p = F.randperm(n, device="cuda")
        assert p.is_cuda and (p.sort()[0].cpu() == F.arange(n)).all()
    assert not (F.randperm(1000, device="cuda").cpu() == F.arange(1000)).all()


def test_other_distributions_have_their_moments():
    def empty():
        return F.empty(N, device="cuda")

    assert abs(empty().exponential_(2).mean().item() - 0.5) < 0.01
    assert empty().exponential_().min().item() > 0
    assert abs(empty().geometric_(0.25).mean().item() - 4) < 0.1
    assert abs(empty().log_normal_(0, 0.5).log().std().item() - 0.5) < 0.01
    assert abs(empty().cauchy_().median().item()) < 0.02
    assert abs(F.poisson(F.full((N,), 3.0, device="cuda")).mean().item() - 3) < 0.05
    assert abs(F.poisson(F.full((N,), 50.0, device="cuda")).var().item() - 50) < 2
    g = F._standard_gamma(F.full((N,), 2.5, device="cuda"))
    assert abs(g.mean().item() - 2.5) < 0.05 and abs(g.var().item() - 2.5) < 0.1
    small = F._standard_gamma(F.full((N,), 0.3, device="cuda"))
    assert abs(small.mean().item() - 0.3) < 0.02
    b = F.binomial(F.full((N,), 40.0, device="cuda"), F.full((N,), 0.7, device="cuda"))
    assert abs(b.mean().item() - 28) < 0.2 and abs(b.var().item() - 8.4) < 0.4
    d = F._sample_dirichlet(F.ones(1000, 4, device="cuda"))
    assert F.allclose(d.sum(-1).cpu(), F.ones(1000), atol=1e-5)


def test_coins():
    assert abs(F.empty(N, device="cuda").bernoulli_(0.3).mean().item() - 0.3) < 0.01
    assert F.empty(N, device="cuda").bernoulli_(1.0).min().item() == 1
    assert F.empty(N, device="cuda").bernoulli_(0.0).max().item() == 0
    p = F.linspace(0, 1, N).cuda()
    x = p.bernoulli()
    assert abs((x - p).mean().item()) < 0.01 and x[-1].item() == 1
    with pytest.raises(RuntimeError, match="bernoulli"):
        F.full((4,), 2.0, device="cuda").bernoulli()
        F.cuda.synchronize()
    assert F.ones(2, device="cuda").sum().item() == 2  # the device is still usable


def test_categories():
    w = F.tensor([0.0, 1.0, 3.0, 0.0, 4.0]).cuda()
    x = F.multinomial(w, N, replacement=True)
    share = F.bincount(x.cpu(), minlength=5) / N
    assert F.allclose(share, w.cpu() / 8, atol=0.01)
    y = F.multinomial(w.expand(1000, 5), 3)
    assert (y.sort(-1)[0].cpu() == F.tensor([1, 2, 4])).all()
    with pytest.raises(RuntimeError, match="probability"):
        F.multinomial(F.tensor([-1.0, 2.0]).cuda(), 1)


@pytest.mark.parametrize("dtype", [F.float32, F.bfloat16])
def test_dropout_keeps_and_scales(dtype):
    x = F.ones(N, device="cuda", dtype=dtype).requires_grad_()
    y = F.nn.functional.dropout(x, 0.25)
    kept = y != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.01
    assert F.allclose(y[kept].float().cpu(), F.tensor(1 / 0.75), rtol=1e-2)
    y.sum().backward()
    assert ((x.grad != 0) == kept).all()
    z = F.nn.functional.dropout2d(F.ones(64, 32, 4, 4, device="cuda"), 0.5)
    assert ((z == 0).flatten(2).all(-1) | (z != 0).flatten(2).all(-1)).all()


def test_normals_around_tensors():
    mean, std = F.linspace(0, 5, N).cuda(), F.linspace(0.1, 1, N).cuda()
    x = F.normal(mean, std)
    assert abs(((x - mean) / std).std().item() - 1) < 0.02
    with pytest.raises(RuntimeError, match="std"):
        F.normal(mean, -std)


def test_fork_rng_restores_the_device():
    F.manual_seed(0)
    state = F.cuda.get_rng_state()
    with F.random.fork_rng():
        F.rand(100, device="cuda")
    assert (F.cuda.get_rng_state() == state).all()


def test_gamma_and_dirichlet_samples_have_derivatives():
    F.manual_seed(0)
    shape = F.rand(500) * 20 + 0.1
    sample = F._standard_gamma(shape)
    expected = F._standard_gamma_grad(shape, sample)
    found = F._standard_gamma_grad(shape.cuda(), sample.cuda())
    assert F.allclose(found.cpu(), expected, rtol=1e-4)
    c = F.rand(50, 4) * 3 + 0.2
    x = F._sample_dirichlet(c)
    total = c.sum(-1, keepdim=True).expand(50, 4)
    found = F._dirichlet_grad(x.cuda(), c.cuda(), total.cuda())
    assert F.allclose(found.cpu(), F._dirichlet_grad(x, c, total), rtol=1e-4)
