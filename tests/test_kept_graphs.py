"""The warning about losses that are collected with their graphs."""

import warnings

import pytest

import facula as F


@pytest.fixture(autouse=True)
def _warning_on():
    before = F.autograd.set_kept_graphs_warning(True)
    yield
    F.autograd.set_kept_graphs_warning(before)


def losses(count):
    x = F.ones(2, requires_grad=True)
    for _ in range(count):
        loss = (x * x).sum()
        loss.backward()
        yield loss


def test_collected_losses_are_reported_once():
    with pytest.warns(UserWarning, match=r"500 results of backward.*loss.item\(\)") as seen:
        kept = list(losses(600))
    assert len(seen) == 1
    assert len(kept) == 600


def test_total_with_a_graph_is_reported():
    total = 0
    with pytest.warns(UserWarning, match="alive together with their graphs"):
        for loss in losses(500):
            total = total + loss


@pytest.mark.parametrize("collect", [lambda t: t.item(), lambda t: t.detach()])
def test_collected_numbers_are_fine(collect):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len([collect(loss) for loss in losses(600)]) == 600


def test_losses_that_were_all_there_before_the_first_backward_are_fine():
    x = F.ones(2, requires_grad=True)
    made = [(x * x).sum() for _ in range(600)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in made:
            loss.backward()
    assert x.grad.tolist() == [1200.0, 1200.0]


def test_of_two_losses_of_a_step_the_first_is_enough():
    x = F.ones(2, requires_grad=True)
    kept = []
    with pytest.warns(UserWarning, match="alive together with their graphs"):
        for _ in range(500):
            pair = (x * x).sum(), x.sum()
            for loss in pair:
                loss.backward()
            kept.append(pair)


def test_it_can_be_turned_off():
    assert F.autograd.set_kept_graphs_warning(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(losses(600))) == 600
