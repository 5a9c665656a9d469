"""facula.summary: layers, shapes, parameters, work, memory."""

import pytest

import facula
from facula import nn


class Dense(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.weight = nn.Parameter(facula.ones(n, m))
        self.bias = nn.Parameter(facula.zeros(m), requires_grad=False)

    def forward(self, x):
        return x @ self.weight + self.bias


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(facula.ones(4, 3, 3, 3))
        self.register_buffer("calls", facula.zeros(10, dtype=facula.int64))

    def forward(self, x):
        return facula.conv2d(x, self.weight, padding=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(Convolution(), nn.Identity())
        self.head = Dense(4, 2)

    def forward(self, x, scale=1):
        if self.training:
            raise AssertionError("not in training mode")
        x = self.features(x).mean((2, 3))
        noise = facula.rand(1) * 0
        return self.head(x) * scale + noise


def test_rows_have_shapes_parameters_work_and_memory():
    found = facula.summary(Net(), (2, 3, 8, 8))
    rows = {layer.path: layer for layer in found.layers}
    assert list(rows) == ["", "features", "features.0", "features.1", "head"]
    convolution = rows["features.0"]
    assert convolution.output_shapes == [(2, 4, 8, 8)] and convolution.parameters == 108
    assert convolution.flops == 2 * (2 * 4 * 8 * 8) * 27 == rows["features"].flops
    assert convolution.output_bytes == 2 * 4 * 8 * 8 * 4
    assert rows["head"].flops == 2 * 2 * 2 * 4
    assert found.total_flops == rows[""].flops == convolution.flops + rows["head"].flops
    assert (found.total_params, found.trainable_params) == (118, 116)
    assert found.parameter_bytes == 472 and found.buffer_bytes == 80
    assert found.input_bytes == 2 * 3 * 8 * 8 * 4


def test_the_table_shows_the_tree():
    text = str(facula.summary(Net(), facula.ones(2, 3, 8, 8)))
    lines = text.splitlines()
    assert lines[2].split()[:1] == ["Net"]
    assert lines[4].startswith("    0: Convolution ") and "(2, 4, 8, 8) " in lines[4]
    assert "Parameters: 118 (116 trainable), 472 B" in text
    shallow = str(facula.summary(Net(), facula.ones(2, 3, 8, 8), depth=1))
    assert "Convolution" not in shallow and "features: Sequential" in shallow


def test_inputs_may_be_tensors_sizes_tuples_and_names():
    x = facula.ones(1, 3, 4, 4)
    for given in (x, (1, 3, 4, 4), [(1, 3, 4, 4)], (x,), {"x": x}, {"x": (1, 3, 4, 4)}):
        assert facula.summary(Net(), given).layers[0].output_shapes == [(1, 2)]
    assert facula.summary(Net(), x, 3).layers[0].output_shapes == [(1, 2)]


def test_shared_modules_are_counted_once():
    layer = Dense(3, 3)
    found = facula.summary(nn.Sequential(layer, layer), (5, 3))
    assert found.total_params == 12 and [r.is_repeated for r in found.layers] == [
        False,
        False,
        True,
    ]
    assert found.total_flops == 2 * (2 * 5 * 3 * 3) and "(counted)" in str(found)


def test_the_model_and_the_random_numbers_stay_as_they_were():
    model = Net()
    model.features.eval()
    facula.manual_seed(0)
    expected = facula.rand(1)
    facula.manual_seed(0)
    facula.summary(model, (1, 3, 4, 4))
    assert facula.equal(facula.rand(1), expected)
    assert model.training and not model.features.training and model.head.training
    assert not model._forward_hooks and not model.head._forward_pre_hooks
    with pytest.raises(RuntimeError):
        facula.summary(model, (1, 7, 4, 4))
    assert model.training and not model._forward_hooks
    with pytest.raises(AssertionError, match="training mode"):
        facula.summary(model, (1, 3, 4, 4), train=True)


def test_attention_counts_both_products():
    class Attention(nn.Module):
        def forward(self, q):
            return facula.bmm(facula.bmm(q, q.mT), q)

    assert facula.summary(Attention(), (2, 5, 3)).total_flops == 2 * (2 * 2 * 5 * 5 * 3)


def test_work_inside_of_composed_functions_is_counted_once():
    class Products(nn.Module):
        def forward(self, x, y):
            a = facula.einsum("ij,jk->ik", x, y)
            b = facula.tensordot(x, y, 1)
            c = facula.addmm(facula.zeros(5), x, y) + x.matmul(y) + x @ y
            return a, b, c, x.mv(y[:, 0])

    found = facula.summary(Products(), (3, 4), (4, 5))
    assert found.total_flops == 5 * (2 * 3 * 4 * 5) + 2 * 3 * 4
    assert found.layers[0].output_shapes == [(3, 5), (3, 5), (3, 5), (3,)]


def test_lazy_layers_are_counted_with_what_the_call_gave_them():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5))
    found = facula.summary(net, (2, 3, 6, 6))
    assert [layer.parameters for layer in found.layers] == [445, 112, 8, 0, 325]
    assert found.total_params == 445 and found.layers[-1].output_shapes == [(2, 5)]


def test_lazy_layers_that_are_not_called_count_nothing():
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(2, 3), nn.LazyLinear(4)

        def forward(self, x):
            return self.used(x)

    assert facula.summary(Unused(), (1, 2)).total_params == 9
