"""What the CUDA tests share: the same call on the host and on the device, compared."""

from package_under_test import F

FLOATS = [F.float32, F.float64, F.float16, F.bfloat16]


def on_device(x):
    if isinstance(x, F.Tensor):
        return x.cuda()
    if isinstance(x, (list, tuple)):
        return type(x)(on_device(part) for part in x)
    return x


def compare(cuda, cpu, exact=False, **tolerance):
    """Values, dtypes and shapes agree, in tensors or in tuples of them."""
    if isinstance(cpu, (list, tuple)):
        assert len(cuda) == len(cpu)
        for a, b in zip(cuda, cpu, strict=True):
            compare(a, b, exact, **tolerance)
        return
    if not isinstance(cpu, F.Tensor):
        assert cuda == cpu
        return
    assert cuda.is_cuda and cuda.dtype == cpu.dtype and cuda.shape == cpu.shape
    back = cuda.cpu()
    if exact or not (cpu.is_floating_point() or cpu.is_complex()):
        equal = back == cpu
        if cpu.is_floating_point():
            equal = equal | (back.isnan() & cpu.isnan())
        assert bool(equal.all())
        return
    small = cpu.dtype in (F.float16, F.bfloat16)
    bounds = {"rtol": 2e-2, "atol": 2e-2} if small else {"rtol": 1e-4, "atol": 1e-5}
    if cpu.is_complex():
        back, cpu = F.view_as_real(back), F.view_as_real(cpu)
    assert F.allclose(back.double(), cpu.double(), equal_nan=True, **{**bounds, **tolerance})


def check(function, *arguments, exact=False, **tolerance):
    compare(function(*on_device(arguments)), function(*arguments), exact, **tolerance)


def check_gradients(function, *arguments, **tolerance):
    """The gradients of every floating-point tensor among the arguments."""
    sides = []
    for given in (arguments, on_device(arguments)):
        leaves = [
            x.detach().clone().requires_grad_()
            if isinstance(x, F.Tensor) and x.is_floating_point()
            else x
            for x in given
        ]
        out = function(*leaves)
        out = out[0] if isinstance(out, tuple) else out
        weight = F.arange(out.numel(), dtype=F.float32).reshape(out.shape).cos().to(out.dtype)
        (out * weight.to(out.device)).sum().backward()
        sides.append([x.grad for x in leaves if isinstance(x, F.Tensor) and x.requires_grad])
    compare(sides[1], sides[0], **tolerance)


def strided(x):
    """The same elements with gaps between them and dimensions in another order in memory."""
    wide = F.zeros(*reversed([2 * n for n in x.shape]), dtype=x.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in x.shape)].permute(*reversed(range(x.dim())))
    view.copy_(x)
    return view
