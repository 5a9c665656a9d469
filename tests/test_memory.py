"""Nothing is kept that is no longer used: counted by the allocator, which tensors, storages and
tape nodes all come from."""

import gc
import subprocess
import sys

import pytest
from package_under_test import F

pytestmark = pytest.mark.facula_only


def held() -> int:
    gc.collect()
    return F._C._host_memory_stats()["allocated_bytes"]


class Square(F.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


def train(weight, bias):
    y = Square.apply((weight @ weight + bias).relu())[1:3].t().reshape(-1)
    y = F.cat([y, y]).softmax(0)
    y.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    weight.grad = None


def write(weight, bias):
    x = F.zeros(4)
    x[1] = bias[0]
    x[F.tensor([0, 2])] = 1.0
    x[x > 0] = 2.0


def fail(weight, bias):
    with pytest.raises(RuntimeError):
        weight @ F.ones(3, 3)
    with pytest.raises(IndexError):
        weight[99]
    with pytest.raises(RuntimeError):
        (weight * 2).backward()


def exchange(weight, bias):
    array = bias.numpy()
    F.from_numpy(array).tolist()
    F.from_dlpack(array)
    F.tensor([[1.0, 2.0], [3.0, 4.0]])


def make_cycle(weight, bias):
    x = F.ones(3)
    x.itself = x
    y = F.ones(3, requires_grad=True)
    y.register_hook(lambda grad: y)


@pytest.mark.parametrize("work", [train, write, fail, exchange, make_cycle])
def test_repeated_work_leaves_nothing_behind(work):
    weight, bias = F.randn(16, 16, requires_grad=True), F.randn(16)
    for _ in range(20):  # caches of the interpreter fill
        work(weight, bias)
    before = held()
    for _ in range(200):
        work(weight, bias)
    assert held() - before <= 4096  # a thread's statistics are brought up to date in steps


# Objects of Python that only the tape holds, in a cycle that is collected with the modules.
AT_THE_END = """
import facula as F

class Double(F.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

p = F.nn.Parameter(F.ones(3))
p.note = "kept"
with F.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda kept: kept[0]):
    packed = (p * p).sum()
left = [Double.apply(p * p).sum(), packed, p.register_hook(lambda g: left)]
left[0].grad_fn.metadata["list"] = left
left.append(left)
del p
"""


def test_what_the_tape_holds_ends_with_the_interpreter():
    ran = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
