"""Counting floating-point operations, and which module they belong to."""

import copy
from functools import partial

import pytest
from package_under_test import F

from facula.nn import functional
from facula.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from facula.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula
from facula.utils.module_tracker import ModuleTracker

aten = F.ops.aten
nn = F.nn


def counts(function, **options):
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return {str(op).removeprefix("aten."): n for op, n in counter.flop_counts["Global"].items()}


def leaf(*shape):
    return F.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: F.mm(leaf(4, 5), leaf(5, 6)), {"mm": 240}),
        (lambda: F.ones(4, 5) @ F.ones(5), {}),
        (lambda: F.ones(3, 4, 5) @ F.ones(5, 6), {"mm": 720}),
        (lambda: F.addmm(leaf(6), leaf(4, 5), leaf(5, 6), beta=0.5, alpha=2), {"addmm": 240}),
        (lambda: F.mm(F.ones(4, 5), F.ones(5, 6), out=F.empty(4, 6)), {"mm": 240}),
        (lambda: F.ones(4, 6).addmm_(F.ones(4, 5), F.ones(5, 6)), {"addmm": 240}),
        (lambda: F.bmm(leaf(3, 4, 5), leaf(3, 5, 6)), {"bmm": 720}),
        (lambda: F.baddbmm(leaf(6), leaf(3, 4, 5), leaf(3, 5, 6)), {"baddbmm": 720}),
        (lambda: F.einsum("ab,bc->ac", leaf(6, 7), leaf(7, 8)), {"mm": 672}),
        (lambda: functional.linear(F.ones(3, 4, 5), F.ones(6, 5)), {"mm": 720}),
        (lambda: functional.linear(F.ones(5), F.ones(6, 5), F.ones(6)), {"addmm": 60}),
        (lambda: F.conv2d(leaf(2, 3, 6, 6), leaf(6, 3, 4, 4), padding=1), {"convolution": 28800}),
        (lambda: F.conv1d(leaf(2, 3, 6), leaf(6, 3, 4), padding=1), {"convolution": 1440}),
        (lambda: F.conv2d(leaf(2, 4, 6, 6), leaf(4, 1, 3, 3), groups=4), {"convolution": 2304}),
        (
            lambda: F.conv_transpose2d(leaf(2, 3, 6, 6), leaf(3, 4, 2, 2), stride=2),
            {"convolution": 6912},
        ),
        (
            lambda: functional.scaled_dot_product_attention(
                leaf(2, 2, 3, 4), leaf(2, 2, 5, 4), leaf(2, 2, 5, 6)
            ),
            {"scaled_dot_product_attention": 1200},
        ),
        (lambda: nn.GRU(3, 4)(leaf(2, 1, 3))[0], {"_recurrent_layer": 336}),
        (lambda: F.ones(4, device="meta").exp(), {}),
        (lambda: F.mm(F.ones(4, 5, device="meta"), F.ones(5, 6, device="meta")), {"mm": 240}),
    ],
)
def test_operators_are_counted(function, expected):
    assert counts(function) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: F.mm(leaf(4, 5), leaf(5, 6)), {"mm": 720}),
        (lambda: F.mm(leaf(4, 5), F.ones(5, 6)), {"mm": 480}),
        (
            lambda: F.conv2d(leaf(2, 3, 6, 6), leaf(6, 3, 4, 4), padding=1),
            {"convolution": 28800, "convolution_backward": 57600},
        ),
        (
            lambda: F.conv2d(F.ones(2, 3, 6, 6), leaf(6, 3, 4, 4)),
            {"convolution": 10368, "convolution_backward": 10368},
        ),
        (
            lambda: F.conv_transpose2d(leaf(2, 3, 6, 6), leaf(3, 4, 2, 2), stride=2),
            {"convolution": 6912, "convolution_backward": 13824},
        ),
        (
            lambda: functional.scaled_dot_product_attention(
                leaf(2, 2, 3, 4), leaf(2, 2, 5, 4), leaf(2, 2, 5, 4)
            ),
            {"scaled_dot_product_attention": 960, "_attention_backward": 2400},
        ),
        (
            lambda: nn.GRU(3, 4)(leaf(2, 1, 3))[0],
            {"_recurrent_layer": 336, "_recurrent_backward": 672},
        ),
    ],
)
def test_the_backward_pass_is_counted(function, expected):
    assert counts(lambda: function().sum().backward()) == expected


def test_a_block_counts_anew():
    counter = FlopCounterMode(display=False)
    for _ in range(2):
        with counter:
            F.mm(F.ones(4, 5), F.ones(5, 6))
        assert counter.get_total_flops() == 240
    F.mm(F.ones(4, 5), F.ones(5, 6))
    assert counter.get_total_flops() == 240


def test_blocks_may_be_nested():
    with FlopCounterMode(display=False) as outer:
        F.mm(F.ones(4, 5), F.ones(5, 6))
        with FlopCounterMode(display=False) as inner:
            F.mm(F.ones(4, 5), F.ones(5, 6))
    assert (outer.get_total_flops(), inner.get_total_flops()) == (480, 240)


def test_what_a_checkpoint_computes_again_is_counted():
    weight = leaf(5, 5)

    def run():
        checkpoint(lambda x: (x @ weight).exp(), leaf(4, 5), use_reentrant=False).sum().backward()

    assert counts(run) == {"mm": 4 * 200}


def test_what_a_checkpoint_kept_is_not_counted_again():
    weight = leaf(5, 5)

    def run():
        contexts = partial(create_selective_checkpoint_contexts, [aten.mm.default])
        options = {"use_reentrant": False, "context_fn": contexts}
        checkpoint(lambda x: (x @ weight).exp(), leaf(4, 5), **options).sum().backward()

    assert counts(run) == {"mm": 3 * 200}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Sequential(nn.Linear(8, 4), nn.ReLU())

    def forward(self, x):
        return self.b(self.a(x))


def test_counts_and_table_are_those_of_modules(capsys):
    with FlopCounterMode(depth=2) as counter:
        Net()(F.ones(3, 4)).sum().backward()
    linear = {aten.addmm: 192, aten.mm: 384}
    assert counter.get_flop_counts() == {
        "Global": {aten.addmm: 384, aten.mm: 576},
        "Net": {aten.addmm: 384, aten.mm: 576},
        "Net.a": {aten.addmm: 192, aten.mm: 192},
        "Net.b": linear,
        "Net.b.0": linear,
    }
    assert capsys.readouterr().out == (
        "Module             FLOP  % Total\n"
        "--------------  -------  -------\n"
        "Net             960.000  100.00%\n"
        " - aten.addmm   384.000   40.00%\n"
        " - aten.mm      576.000   60.00%\n"
        " Net.a          384.000   40.00%\n"
        "  - aten.addmm  192.000   20.00%\n"
        "  - aten.mm     192.000   20.00%\n"
        " Net.b          576.000   60.00%\n"
        "  - aten.addmm  192.000   20.00%\n"
        "  - aten.mm     384.000   40.00%\n"
    )
    assert counter.get_table(1).count("\n") == 4


def test_table_has_a_line_for_what_is_in_no_module():
    with FlopCounterMode(display=False) as counter:
        nn.Linear(4, 8)(F.ones(3, 4))
        F.mm(F.ones(30, 40), F.ones(40, 50))
    first, _, whole, *rest = counter.get_table().splitlines()
    assert first.split() == ["Module", "FLOP", "%", "Total"]
    assert whole.split() == ["Global", "120.192K", "100.00%"]
    assert rest[-1].split() == ["-", "aten.addmm", "0.192K", "0.16%"]
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_table().splitlines()[-1].split() == ["Global", "0.000", "0%"]


def test_formulas_may_be_given():
    assert counts(lambda: F.ones(2) + 1, custom_mapping={aten.add: lambda *_, out_shape: 5}) == {
        "add": 5
    }

    def twice(a_shape, b_shape, out_shape=None, **kwargs):
        return 2 * sum(out_shape)

    assert counts(lambda: F.mm(F.ones(4, 5), F.ones(5, 6)), custom_mapping={aten.mm: twice}) == {
        "mm": 20
    }


def test_a_formula_of_a_custom_operator_hides_what_it_does():
    @F.library.custom_op("flops::square", mutates_args=())
    def square(x: F.Tensor, times: int) -> F.Tensor:
        return x @ x

    assert counts(lambda: square(F.ones(3, 3), 2)) == {"mm": 54}

    @register_flop_formula(F.ops.flops.square)
    def formula(x_shape, times, out_shape=None):
        return times * x_shape[0]

    try:
        assert counts(lambda: square(F.ones(3, 3), 2)) == {"flops.square": 6}
        with pytest.raises(RuntimeError, match=r"registrations for flops\.square"):
            register_flop_formula(F.ops.flops.square)(formula)
    finally:
        del flop_registry[F.ops.flops.square]
    with pytest.raises(ValueError, match="expected each target to be an OpOverloadPacket"):
        register_flop_formula(F.mm)(formula)


def test_modules_is_no_argument_anymore():
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        FlopCounterMode(nn.ReLU(), display=False)


# ---- the tracker itself


def test_tracker_knows_the_modules_of_both_passes():
    forward, backward = [], []

    class Part(nn.Module):
        def forward(self, x):
            x = x["a"].relu_()
            forward.append((copy.copy(tracker.parents), tracker.is_bw))
            x.register_hook(lambda _: backward.append((copy.copy(tracker.parents), tracker.is_bw)))
            return {"a": x @ x}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Part()
            self.b = nn.ModuleDict({"nest": Part()})
            self.c = nn.ModuleList([Part()])

        def forward(self, x):
            return self.b["nest"](self.a(self.c[0](x)))

    whole = Whole()
    with ModuleTracker() as tracker:
        for _ in range(2):
            whole({"a": F.ones(2, 2, requires_grad=True).clone()})["a"].sum().backward()
            assert tracker.parents == {"Global"} and not tracker.is_bw
    order = ["c.0", "a", "b.nest"]
    assert forward == [({"Global", "Whole", f"Whole.{n}"}, False) for n in order] * 2
    assert backward == [({"Global", "Whole", f"Whole.{n}"}, True) for n in reversed(order)] * 2


def test_tracker_leaves_a_module_that_fails():
    with ModuleTracker() as tracker:
        with pytest.raises(RuntimeError):
            nn.Linear(2, 3)(F.ones(5))
        assert tracker.parents == {"Global"}


def test_tracker_takes_a_module_that_calls_itself_for_one(caplog):
    class Again(nn.Module):
        def forward(self, x, more=True):
            return self(x, False) if more else x * 2

    with caplog.at_level("INFO"), ModuleTracker() as tracker:
        Again()(F.ones(1, requires_grad=True)).sum().backward()
    assert "Again was entered again" in caplog.text
    assert tracker.parents == {"Global"}
