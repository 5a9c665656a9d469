"""Conjugates and negatives that are computed when they are read."""

import copy
import pickle

import pytest

import facula


def numbers():
    return facula.tensor([1 + 2j, 3 - 1j])


def test_conj_is_a_view_that_is_computed_later():
    x = numbers()
    c = x.conj()
    assert c.is_conj() and c._is_view() and c.data_ptr() == x.data_ptr()
    assert not c.conj().is_conj() and not c.clone().is_conj() and not (c * 1).is_conj()
    assert c.tolist() == [1 - 2j, 3 + 1j] and c[1].item() == 3 + 1j
    x[0] = 5 + 5j
    assert c[0].item() == 5 - 5j


def test_real_tensors_are_their_own_conjugates():
    x = facula.ones(2)
    assert x.conj() is x and not x.is_conj() and x.resolve_conj() is x and x.resolve_neg() is x


def test_views_keep_the_bit():
    c = facula.ones(2, 3, dtype=facula.complex64).conj()
    views = [c[0], c.t(), c.view(3, 2), c.unsqueeze(0), c.detach(), c[:, 1:], c.expand(4, 2, 3)]
    assert all(v.is_conj() for v in views)
    assert c.mH.is_conj() is False


def test_parts_of_a_conjugate():
    c = numbers().conj()
    assert c.imag.is_neg() and not c.real.is_neg() and not c.imag.is_conj()
    assert c.imag.tolist() == [-2.0, 1.0] and c.real.tolist() == [1.0, 3.0]
    assert not c.imag.resolve_neg().is_neg() and c.imag.resolve_neg().tolist() == [-2.0, 1.0]


def test_writing_through_a_lazy_view():
    x = numbers()
    x.conj().mul_(2)
    assert x.tolist() == [2 + 4j, 6 - 2j]
    x.conj().copy_(facula.tensor([1j, 2j]))
    assert x.tolist() == [-1j, -2j]
    x.conj().imag.fill_(7)
    assert x.tolist() == [-7j, -7j]
    facula.add(numbers(), 1, out=x.conj())
    assert x.tolist() == [2 - 2j, 4 + 1j]
    x.conj()[0] = 1 + 1j
    assert x[0].item() == 1 - 1j


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies_have_the_values(copier):
    assert copier(numbers().conj()).tolist() == [1 - 2j, 3 + 1j]
    assert copier(numbers().conj().imag).tolist() == [-2.0, 1.0]


def test_what_needs_memory_as_it_is_refuses():
    c = numbers().conj()
    with pytest.raises(RuntimeError, match=r"resolve_conj\(\)\.numpy\(\)"):
        c.numpy()
    with pytest.raises(RuntimeError, match=r"resolve_neg\(\)\.numpy\(\)"):
        c.imag.numpy()
    with pytest.raises(RuntimeError, match="resolve_conj"):
        facula.view_as_real(c)
    with pytest.raises(RuntimeError, match="conjugate view"):
        c.view(facula.float32)
    with pytest.raises(BufferError, match="conjugate"):
        c.__dlpack__()
    assert c.numpy(force=True).tolist() == [1 - 2j, 3 + 1j]


def test_gradients_go_through_lazy_views():
    x = numbers().requires_grad_()
    y = x.conj()
    (y * facula.tensor([2 + 1j, 1j])).real.sum().backward()
    with facula.no_grad():
        expected = facula.tensor([2 + 1j, 1j])
    assert facula.equal(x.grad, expected)


def test_writing_to_a_lazy_view_under_the_tape():
    x = numbers().requires_grad_()
    base = x * 1
    base.conj()[0] = 0
    base.conj().mul_(2j)
    # base is now conj(2j * conj(base)), which is -2j * base
    loss = (base * facula.tensor([1.0 + 0j, 1.0])).real.sum()
    (grad,) = facula.autograd.grad(loss, x)
    assert grad.tolist() == [0, 2j]
    assert base.tolist()[1] == (3 - 1j) * -2j


def test_gradcheck_of_lazy_views():
    x = facula.randn(3, dtype=facula.complex128, requires_grad=True)
    assert facula.autograd.gradcheck(lambda t: t.conj().imag * t.conj().real, (x,))
    assert facula.autograd.gradgradcheck(lambda t: (t.conj() * t.conj()).imag, (x,))


def test_a_view_of_negatives():
    x = facula.tensor([1.0, -2.0])
    view = facula._neg_view(x)
    assert view.is_neg() and view.data_ptr() == x.data_ptr()
    assert view.tolist() == [-1.0, 2.0] and not view.resolve_neg().is_neg()
    assert repr(view) == "tensor([-1.,  2.])"
    x[0] = 3
    assert (view * 2).tolist() == [-6.0, 4.0] and x._neg_view().tolist() == [-3.0, 2.0]
    assert not facula._neg_view(view).is_neg()
    assert facula.func.grad(lambda x: (facula._neg_view(x) ** 3).sum())(x).tolist() == [-27, -12]
