"""Whole modules, functions and optimizers in checkpoints that the other package wrote."""

import io
import re

import pytest
from package_under_test import IS_FACULA
from package_under_test import F as facula

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not IS_FACULA, reason="exchanges files with PyTorch"),
    pytest.mark.filterwarnings("ignore"),
]

OBJECTS = {
    "attention": lambda T: T.nn.MultiheadAttention(8, 2),
    "identity": lambda T: T.nn.Identity(),
    "gelu layer": lambda T: T.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"),
    "silu layer": lambda T: T.nn.TransformerEncoderLayer(8, 2, 16, activation=T.nn.functional.silu),
    "transformer": lambda T: T.nn.Transformer(8, 2, 1, 1, 8),
    "lstm": lambda T: T.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2),
    "gru": lambda T: T.nn.GRU(2, 3, bias=False),
    "old spectral norm": lambda T: T.nn.utils.spectral_norm(T.nn.Linear(2, 2)),
    "lazy": lambda T: T.nn.LazyLinear(3),
    "optimizer": lambda T: T.optim.Adam([T.nn.Parameter(T.ones(1))]),
    "average": lambda T: T.optim.swa_utils.AveragedModel(T.nn.Linear(1, 1)),
}


def handed_over(made, writer, reader):
    file = io.BytesIO()
    writer.save(made, file)
    file.seek(0)
    return reader.load(file, weights_only=False)


def text(thing):
    return re.sub("0x[0-9a-f]+", "", repr(thing)).replace("facula", "torch")


@pytest.mark.parametrize("writer, reader", [(torch, facula), (facula, torch)])
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_read_by_the_other_package(name, writer, reader):
    read = handed_over(OBJECTS[name](writer), writer, reader)
    assert type(read).__module__.partition(".")[0] == reader.__name__
    assert text(read) == text(OBJECTS[name](reader))


@pytest.mark.parametrize("writer, reader", [(torch, facula), (facula, torch)])
@pytest.mark.parametrize("name", ["gelu layer", "silu layer", "lstm", "lazy", "old spectral norm"])
def test_modules_of_the_other_package_compute(name, writer, reader):
    layer = OBJECTS[name](writer).eval()
    shape = (3, 8) if "layer" in name else (3, 2)
    read = handed_over(layer, writer, reader).eval()
    result = read(reader.ones(*shape))
    if name == "lazy":
        assert result.shape == (3, 3)
        return
    expected = layer(writer.ones(*shape))
    if name == "lstm":
        result, expected = result[0], expected[0]
    for row, wanted in zip(result.tolist(), expected.tolist(), strict=True):
        assert row == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", ["gelu", "softplus", "linear", "scaled_dot_product_attention"])
def test_functions_of_pytorch_become_ours(name):
    function = getattr(torch.nn.functional, name)
    assert handed_over(function, torch, facula) is getattr(facula.nn.functional, name)


@pytest.mark.parametrize("name", ["gelu", "linear", "mse_loss", "adaptive_avg_pool2d"])
def test_functions_are_written_with_names_of_pytorch(name):
    function = getattr(facula.nn.functional, name)
    assert handed_over(function, facula, torch) is getattr(torch.nn.functional, name)
    assert handed_over(function, facula, facula) is function


def test_recurrent_layers_keep_no_second_list_of_their_weights():
    layer = handed_over(torch.nn.GRU(2, 3), torch, facula)
    assert not {"_flat_weights", "_flat_weights_names", "_flat_weight_refs"} & set(layer.__dict__)
    assert layer.double()(facula.ones(1, 2, dtype=facula.float64))[0].dtype is facula.float64
