"""An operator that writes to a tensor counts its version once."""

import pytest

import facula

x4 = facula.ones(4)
CALLS = {
    "add_": lambda x: x.add_(1),
    "clamp_": lambda x: x.clamp_(0, 1),
    "clip_": lambda x: x.clip_(min=0),
    "nan_to_num_": lambda x: x.nan_to_num_(),
    "polygamma_": lambda x: x.polygamma_(1),
    "rrelu": lambda x: facula.nn.functional.rrelu(x, inplace=True),
    "renorm_": lambda x: x.view(2, 2).renorm_(2, 0, 1.0),
    "fill_diagonal_": lambda x: x.view(2, 2).fill_diagonal_(1),
    "tril_": lambda x: x.view(2, 2).tril_(),
    "addmm_": lambda x: x.view(2, 2).addmm_(facula.ones(2, 2), facula.ones(2, 2)),
    "baddbmm_": lambda x: x.view(1, 2, 2).baddbmm_(*facula.ones(2, 1, 2, 2)),
    "copy_": lambda x: x.copy_(x4),
    "mask": lambda x: x.__setitem__(x > 0, 1.0),
    "arange out": lambda x: facula.arange(4, out=x),
    "ones out": lambda x: facula.ones(4, out=x),
    "normalize out": lambda x: facula.nn.functional.normalize(x, dim=0, out=x),
    "foreach": lambda x: facula._foreach_clamp_max_([x], 1.0),
    "resize_ to fewer": lambda x: x.resize_(2),
    "resize_ to more": lambda x: x.resize_(8),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_write_counts_once(name):
    x = facula.ones(4)
    CALLS[name](x)
    assert x._version == 1


def test_what_writes_nothing_does_not_count():
    x = facula.ones(4)
    x.resize_(4), x.view(2, 2), x.detach(), x.requires_grad_()
    assert x._version == 0


def test_the_error_names_the_operator_that_was_called():
    x = facula.ones(4, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.clamp_(0, 1)
    with pytest.raises(RuntimeError, match=r"version 1; expected version 0.*clamp_\(\)"):
        z.backward()


def test_composites_in_place_can_be_differentiated():
    x = facula.tensor([[0.5, 2.0], [-1.0, 0.3]], requires_grad=True)
    y = x * 1
    y.clamp_(0, 1).tril_().addmm_(x, x)
    expected = x.clamp(0, 1).tril().addmm(x, x)
    facula.testing.assert_close(y, expected)
    grads = [facula.autograd.grad((t * t).sum(), x)[0] for t in (y, expected)]
    facula.testing.assert_close(*grads)
