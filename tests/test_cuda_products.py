"""Products of matrices and convolutions on CUDA against the host."""

import pytest
from cuda_comparison import FLOATS, close, is_half, needs_cuda, random, same_with_gradients
from package_under_test import F

pytestmark = needs_cuda

INTEGERS = [F.uint8, F.int8, F.int16, F.int32, F.int64, F.uint16, F.uint32]


def slack(dtype):
    return {"rtol": 3e-2, "atol": 1e-1} if is_half(dtype) else {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5, 8), (3, 4, 8), (8,), (70, 8), (2, 0, 8)], ids=str)
def test_linear_with_and_without_bias(shape, dtype):
    x, w, b = random(*shape, dtype=dtype), random(6, 8, dtype=dtype, seed=1), random(6, dtype=dtype)
    f = F.nn.functional.linear
    same_with_gradients(lambda x, w, b: f(x, w, b), x, w, b, **slack(dtype))
    same_with_gradients(lambda x, w: f(x, w), x, w, **slack(dtype))


def test_linear_of_strided_operands():
    x, w, b = random(8, 10), random(8, 6, seed=1), random(12, seed=2)
    f = F.nn.functional.linear
    same_with_gradients(lambda x, w, b: f(x.t(), w.t(), b[::2]), x, w, b)
    same_with_gradients(lambda x, w: f(x[::2, ::2], w.t()[:, ::2][:, :5]), x[:, :10], random(10, 6))
    same_with_gradients(lambda x, w: f(x, w), x[:, :8], random(8))


@pytest.mark.parametrize("dtype", [*FLOATS, F.complex64, F.int32, F.int64])
def test_addmm_and_baddbmm(dtype):
    a, b = random(4, 5).mul(3).to(dtype), random(5, 6, seed=1).mul(3).to(dtype)
    for c in (random(4, 6, seed=2), random(6, seed=3), random(4, 1, seed=4)):
        c = c.mul(3).to(dtype)
        for beta, alpha in ((1, 1), (2, 3), (0, 2)):
            got = F.addmm(c.cuda(), a.cuda(), b.cuda(), beta=beta, alpha=alpha)
            close(got, F.addmm(c, a, b, beta=beta, alpha=alpha), **slack(dtype))
    x, y, z = (
        random(3, *s, seed=i).mul(3).to(dtype) for i, s in enumerate([(4, 5), (5, 2), (4, 2)])
    )
    close(
        F.baddbmm(z.cuda(), x.cuda(), y.cuda(), beta=2), F.baddbmm(z, x, y, beta=2), **slack(dtype)
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_integers_wrap_around(dtype):
    F.manual_seed(0)
    a, b = F.randint(0, 100, (70, 33)).to(dtype), F.randint(0, 100, (33, 65)).to(dtype)
    assert ((a.cuda() @ b.cuda()).cpu() == a @ b).all().item()
    assert ((a.cuda().t() @ a.cuda()).cpu() == a.t() @ a).all().item()
    c = F.randint(0, 9, (3, 4, 5)).to(dtype)
    assert ((c.cuda() @ c.cuda().mT).cpu() == c @ c.mT).all().item()


# ---- convolution

CONVOLUTIONS = [
    dict(x=(2, 3, 9), w=(4, 3, 3)),
    dict(x=(2, 3, 9), w=(4, 3, 3), stride=2, padding=1, dilation=2),
    dict(x=(2, 4, 7, 8), w=(6, 4, 3, 3), padding=1),
    dict(x=(2, 4, 7, 8), w=(6, 2, 3, 2), stride=(2, 1), padding=(1, 0), groups=2),
    dict(x=(2, 4, 7, 8), w=(4, 1, 3, 3), padding=1, groups=4),
    dict(x=(2, 4, 19, 40), w=(4, 1, 5, 3), padding=(2, 3), groups=4),
    dict(x=(2, 4, 19, 40), w=(4, 1, 7, 7), stride=2, padding=3, groups=4),
    dict(x=(2, 4, 19, 40), w=(4, 1, 3, 3), dilation=2, groups=4),
    dict(x=(3, 5, 70), w=(5, 1, 3), padding=1, groups=5),
    dict(x=(2, 4, 7, 8), w=(5, 4, 1, 1)),
    dict(x=(1, 2, 5, 6, 7), w=(3, 2, 2, 3, 3), padding=(0, 1, 1), stride=(1, 2, 1)),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: f"{c['x']}-{c['w']}")
@pytest.mark.parametrize("dtype", FLOATS)
def test_convolution(case, dtype):
    options = {name: value for name, value in case.items() if name not in "xw"}
    x, w = random(*case["x"], dtype=dtype), random(*case["w"], dtype=dtype, seed=1)
    b = random(case["w"][0], dtype=dtype, seed=2)
    f = getattr(F.nn.functional, f"conv{x.dim() - 2}d")
    with F.backends.cudnn.flags(enabled=True, allow_tf32=False):
        same_with_gradients(lambda x, w, b: f(x, w, b, **options), x, w, b, **slack(dtype))
    with F.backends.cudnn.flags(enabled=False):
        same_with_gradients(lambda x, w, b: f(x, w, b, **options), x, w, b, **slack(dtype))


@pytest.mark.parametrize("enabled", [True, False])
def test_transposed_convolution(enabled):
    f = F.nn.functional
    with F.backends.cudnn.flags(enabled=enabled, allow_tf32=False):
        x, w, b = random(2, 4, 5, 6), random(4, 3, 3, 3, seed=1), random(6, seed=2)
        run = lambda x, w, b: f.conv_transpose2d(  # noqa: E731
            x, w, b, stride=2, padding=1, output_padding=1, groups=2
        )
        same_with_gradients(run, x, w, b, **slack(F.float32))
        for stride in (1, 2):
            x, w, b = random(2, 4, 11, 12), random(4, 1, 3, 5, seed=1), random(4, seed=2)
            run = lambda x, w, b, s=stride: f.conv_transpose2d(  # noqa: E731
                x, w, b, stride=s, padding=1, groups=4
            )
            same_with_gradients(run, x, w, b, **slack(F.float32))
        x, w = random(2, 3, 5), random(3, 2, 4, seed=1)
        run = lambda x, w: f.conv_transpose1d(x, w, stride=3, dilation=2)  # noqa: E731
        same_with_gradients(run, x, w, **slack(F.float32))
        x, w = random(1, 2, 3, 3, 3), random(2, 2, 2, 2, 2, seed=1)
        same_with_gradients(lambda x, w: f.conv_transpose3d(x, w, stride=2), x, w)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("groups", [1, 4])
def test_convolution_keeps_channels_last(enabled, groups):
    x = random(2, 4, 8, 8).contiguous(memory_format=F.channels_last)
    w = random(8, 4 // groups, 3, 3, seed=1)
    with F.backends.cudnn.flags(enabled=enabled, allow_tf32=False):
        run = lambda x, w: F.nn.functional.conv2d(x, w, padding=1, groups=groups)  # noqa: E731
        same_with_gradients(run, x, w, **slack(F.float32))
        out = run(x.cuda(), w.cuda())
    assert out.is_contiguous(memory_format=F.channels_last)


def test_convolution_with_every_algorithm_timed_and_in_a_fixed_order():
    x, w = random(4, 8, 16, 16), random(8, 8, 3, 3, seed=1)
    run = lambda x, w: F.nn.functional.conv2d(x, w, padding=1)  # noqa: E731
    for options in ({"benchmark": True}, {"deterministic": True}):
        with F.backends.cudnn.flags(enabled=True, allow_tf32=False, **options):
            same_with_gradients(run, x, w, **slack(F.float32))


@pytest.mark.parametrize("dtype", [F.int32, F.int64, F.uint8])
def test_convolution_of_integers(dtype):
    F.manual_seed(0)
    x, w = F.randint(0, 9, (2, 3, 6, 6)).to(dtype), F.randint(0, 9, (4, 3, 3, 3)).to(dtype)
    f = F.nn.functional.conv2d
    assert (f(x.cuda(), w.cuda(), padding=1).cpu() == f(x, w, padding=1)).all().item()


def test_convolution_of_nothing():
    f = F.nn.functional.conv2d
    assert f(F.ones(0, 3, 5, 5).cuda(), F.ones(2, 3, 3, 3).cuda()).shape == (0, 2, 3, 3)


def test_flags_of_cudnn_are_real():
    assert F.backends.cudnn.is_available() == (F.backends.cudnn.version() is not None)
    with pytest.raises(RuntimeError, match="must be bool"):
        F.backends.cudnn.benchmark = 3
