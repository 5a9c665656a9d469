"""Tensors that carry their mask: against PyTorch's where it has the operator, and by hand."""

import copy
import math
import pickle

import pytest
from package_under_test import IS_FACULA, F

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is the reference")

DATA = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]
MASK = [[True, False, True], [False, True, True]]


def masked(P=F, data=None, mask=None, **options):
    return P.masked.masked_tensor(P.tensor(data or DATA), P.tensor(mask or MASK), **options)


def shown(t):
    """The elements, None for those that the mask leaves out, and the shape."""
    data, mask = t.get_data().flatten().tolist(), t.get_mask().flatten().tolist()
    return [d if m else None for d, m in zip(data, mask, strict=True)], tuple(t.shape)


OPERATORS = {
    "add": lambda P, t: t + t,
    "add a number": lambda P, t: 1 + t,
    "add a tensor": lambda P, t: t + P.ones(2, 3),
    "div": lambda P, t: t / (t + 1),
    "pow": lambda P, t: t**2,
    "compare": lambda P, t: t > 1,
    "sin": lambda P, t: t.sin(),
    "neg": lambda P, t: -t,
    "exp_": lambda P, t: t.clone().exp_(),
    "add_": lambda P, t: t.clone().add_(t),
    "minimum": lambda P, t: P.minimum(t, t + 1),
    "to": lambda P, t: t.to(P.float64),
    "ones_like": lambda P, t: P.ones_like(t),
    "sum": lambda P, t: t.sum(),
    "sum of rows": lambda P, t: t.sum(1),
    "sum with keepdim": lambda P, t: t.sum(0, keepdim=True),
    "mean": lambda P, t: t.mean(1),
    "prod": lambda P, t: t.prod(),
    "amax": lambda P, t: t.amax(0),
    "amin": lambda P, t: t.amin(1),
    "argmax": lambda P, t: t.argmax(1),
    "std": lambda P, t: t.std(),
    "softmax": lambda P, t: t.softmax(0),
    "all": lambda P, t: (t > 0.7).all(),
    "reshape": lambda P, t: t.reshape(3, 2),
    "view": lambda P, t: t.view(6),
    "t": lambda P, t: t.t(),
    "unsqueeze": lambda P, t: t.unsqueeze(0),
    "index": lambda P, t: t[1],
    "element": lambda P, t: t[0, 1],
    "cat": lambda P, t: P.cat([t, t]),
    "where": lambda P, t: P.where(P.tensor(MASK), t, t + 1),
    "nothing is left": lambda P, t: masked(P, mask=[[False] * 3, [True] * 3]).sum(1),
}


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_as_in_pytorch(name):
    ours, theirs = (shown(OPERATORS[name](P, masked(P))) for P in (F, torch))
    assert ours[1] == theirs[1]
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert (a is None) == (b is None) and (a is None or a == pytest.approx(b, rel=1e-5))


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_text():
    for data in (DATA, [[1, 2, 3], [4, 5, 6]], MASK, [DATA]):
        mask = [MASK] if data == [DATA] else MASK
        assert repr(masked(F, data, mask)) == repr(masked(torch, data, mask))
    assert repr(masked().sum()) == repr(masked(torch).sum())
    assert repr(masked()[0, 1]) == repr(masked(torch)[0, 1])


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lacks these")
def test_further_operators():
    t = masked()
    assert shown(t.max()) == ([5.0], ()) and shown(t.min()) == ([0.5], ())
    assert shown(t.norm())[0] == [pytest.approx(math.sqrt(0.25 + 4 + 16 + 25))]
    assert shown(t.logsumexp(1))[0][1] == pytest.approx(math.log(math.exp(4) + math.exp(5)))
    assert [shown(row)[0] for row in t] == [[0.5, None, 2.0], [None, 4.0, 5.0]]
    assert shown(t.cumsum(1))[0] == [0.5, None, 2.5, None, 4.0, 9.0]
    t += 1
    assert shown(t)[0] == [1.5, None, 3.0, None, 5.0, 6.0]


def test_parts_and_filling():
    t = masked()
    assert t.get_mask().tolist() == MASK and F.masked.is_masked_tensor(t)
    assert not F.masked.is_masked_tensor(F.ones(1))
    assert t.to_tensor(-1).tolist() == [[0.5, -1.0, 2.0], [-1.0, 4.0, 5.0]]
    assert (t.dtype, t.device.type, t.layout) == (F.float32, "cpu", F.strided)


def test_gradients_of_a_leaf_have_its_mask():
    t = masked(requires_grad=True)
    (t * t).sum().backward()
    assert shown(t.grad)[0] == [1.0, None, 4.0, None, 8.0, 10.0]


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's gradients carry a mask, too")
def test_elements_left_out_reach_no_gradient():
    x = F.tensor([-1.0, 4.0], requires_grad=True)
    t = F.masked.as_masked_tensor(x, F.tensor([False, True]))
    t.sqrt().log().sum().to_tensor(0).backward()
    assert x.grad.tolist() == [0.0, 0.125]


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch cannot copy them")
def test_copies():
    t = masked()
    for other in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), t.clone(), t.detach()):
        assert shown(other) == shown(t)


def test_mistakes():
    with pytest.raises(ValueError, match="masks must match"):
        masked() + masked(mask=[[True] * 3] * 2)
    with pytest.raises(TypeError):
        F.masked.masked_tensor([1.0], F.tensor([True]))
    with pytest.raises(TypeError):
        F.masked.masked_tensor(F.ones(2), F.ones(2))
    with pytest.raises(ValueError):
        F.masked.masked_tensor(F.ones(2), F.tensor([[True, False]]))
    with pytest.raises((NotImplementedError, TypeError)):
        masked() @ masked().t()
