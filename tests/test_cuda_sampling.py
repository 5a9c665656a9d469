"""Sampling at points, distances and alignments on CUDA against the host."""

import pytest
from cuda_comparison import close, needs_cuda, random, same_with_gradients
from package_under_test import F

pytestmark = needs_cuda

f = F.nn.functional


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(mode, padding, corners):
    x, grid = random(2, 3, 5, 6), random(2, 4, 3, 2, seed=1)
    run = lambda x, g: f.grid_sample(x, g, mode, padding, corners)  # noqa: E731
    same_with_gradients(run, x, grid, rtol=1e-4, atol=1e-4)
    if mode != "bicubic":
        x, grid = random(1, 2, 3, 4, 5), random(1, 2, 3, 2, 3, seed=1)
        same_with_gradients(run, x, grid, rtol=1e-4, atol=1e-4)


def test_grid_sample_of_halves_and_second_derivatives():
    x, grid = random(1, 2, 5, 6, dtype=F.bfloat16), random(1, 4, 3, 2, dtype=F.bfloat16, seed=1)
    same_with_gradients(lambda x, g: f.grid_sample(x, g, align_corners=False), x, grid, atol=1e-1)
    values = []
    for device in ("cpu", "cuda"):
        a = random(1, 2, 5, 6).to(device).requires_grad_()
        g = (random(1, 4, 3, 2, seed=1) * 0.5).to(device).requires_grad_()
        out = f.grid_sample(a, g, "bicubic", align_corners=False)
        (first,) = F.autograd.grad((out**2).sum(), g, create_graph=True)
        values.append(F.autograd.grad((first**2).sum(), (a, g)))
    for a, b in zip(values[1], values[0], strict=True):
        close(a, b, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
@pytest.mark.parametrize("dtype", [F.float32, F.float64])
def test_distances(p, dtype):
    x, y = random(2, 5, 4, dtype=dtype), random(2, 7, 4, dtype=dtype, seed=1)
    run = lambda x, y: F.cdist(x, y, p, "donot_use_mm_for_euclid_dist")  # noqa: E731
    same_with_gradients(run, x, y)
    close(F.cdist(x.cuda()[:, :0], y.cuda(), p), F.cdist(x[:, :0], y, p))


@pytest.mark.parametrize("dtype", [F.float32, F.float64])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss(dtype, reduction):
    F.manual_seed(0)
    steps, batch, classes = 12, 3, 5
    targets = F.randint(1, classes, (batch, 4))
    targets[0, 1] = targets[0, 0]
    lengths, sizes = F.tensor([12, 10, 2]), F.tensor([4, 2, 3])

    def loss(x):
        return f.ctc_loss(
            x.log_softmax(2), targets.to(x.device), lengths, sizes, reduction=reduction,
            zero_infinity=True,
        )  # fmt: skip

    same_with_gradients(loss, random(steps, batch, classes, dtype=dtype), rtol=1e-4, atol=1e-4)
    joined = F.cat([targets[n, : int(sizes[n])] for n in range(batch)])
    x = random(steps, batch, classes, dtype=dtype).log_softmax(2)
    given = (lengths, sizes)
    close(f.ctc_loss(x.cuda(), joined.cuda(), *given), f.ctc_loss(x, joined, *given), rtol=1e-4)


def test_bad_labels_of_ctc_loss_raise_when_the_program_waits():
    x = F.zeros(4, 1, 3).log_softmax(2).cuda()
    with pytest.raises(IndexError, match=r"ctc_loss.*label 9"):
        f.ctc_loss(x, F.tensor([[1, 9]]).cuda(), F.tensor([4]), F.tensor([2])).item()
