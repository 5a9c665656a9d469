"""Encoder and decoder layers, their stacks, and the whole transformer."""

import pytest
from nn_comparison import same_training, same_values, to_facula, twins
from package_under_test import F, assert_close, assert_equal

nn = F.nn
pytestmark = pytest.mark.skipif(
    not (hasattr(nn, "LayerNorm") and hasattr(nn, "Dropout") and hasattr(nn.functional, "relu")),
    reason="needs LayerNorm, Dropout and relu",
)
SMALL = {"dim_feedforward": 16, "dropout": 0.0}


def test_layers_of_a_stack_start_alike_and_are_apart():
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **SMALL), 2)
    first, second = stack.layers
    assert_equal(first.linear1.weight, second.linear1.weight)
    assert first.linear1.weight is not second.linear1.weight


def test_causal_mask_is_recognised_and_hides_what_comes_later():
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, **SMALL), 2).eval()
    x = F.randn(4, 3, 8)
    changed = x.clone()
    changed[3] += 1
    assert_close(stack(x, mask)[:3], stack(changed, mask)[:3], 1e-5, 1e-5)
    assert_close(stack(x, mask), stack(x, mask, is_causal=True), 1e-5, 1e-5)
    assert_close(stack(x, mask), stack(x, mask != 0), 1e-5, 1e-5)


def test_padding_does_not_matter():
    layer = nn.TransformerEncoderLayer(8, 2, batch_first=True, **SMALL)
    x = F.randn(2, 5, 8)
    padding = F.tensor([[False] * 5, [False, False, False, True, True]])
    changed = x.clone()
    changed[1, 3:] = 100.0
    out, other = (layer(t, src_key_padding_mask=padding) for t in (x, changed))
    assert_close(out[1, :3], other[1, :3], 1e-5, 1e-5)


def test_wrong_arguments_are_refused():
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not x"):
        nn.TransformerEncoderLayer(8, 2, activation="x")
    model = nn.Transformer(8, 2, 1, 1, **SMALL)
    with pytest.raises(RuntimeError, match="batch number of src and tgt must be equal"):
        model(F.ones(3, 2, 8), F.ones(3, 3, 8))
    with pytest.raises(RuntimeError, match="feature number of src and tgt must be equal"):
        model(F.ones(3, 2, 7), F.ones(3, 2, 7))


OPTIONS = [
    {},
    {"norm_first": True},
    {"batch_first": True, "activation": "gelu"},
    {"bias": False},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_encoder_layer_trains_as_in_pytorch(options):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "TransformerEncoderLayer", 8, 2, **SMALL, **options)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    x = torch.randn(3, 4, 8) if options.get("batch_first") else torch.randn(4, 3, 8)
    same_training(torch, ours, theirs, x, src_mask=mask, is_causal=True)


@pytest.mark.parametrize("options", OPTIONS)
def test_decoder_layer_trains_as_in_pytorch(options):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "TransformerDecoderLayer", 8, 2, **SMALL, **options)
    x, memory = torch.randn(4, 3, 8), torch.randn(5, 3, 8)
    if options.get("batch_first"):
        x, memory = x.transpose(0, 1).contiguous(), memory.transpose(0, 1).contiguous()
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    same_training(torch, ours, theirs, x, memory, memory_key_padding_mask=padding)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer_trains_as_in_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "Transformer", 8, 2, 2, 2, **SMALL)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    same_training(torch, ours, theirs, torch.randn(6, 3, 8), torch.randn(4, 3, 8), tgt_mask=mask)


def test_dropped_elements_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "TransformerEncoderLayer", 8, 2, 16, dropout=0.3)
    x = torch.randn(4, 3, 8)
    torch.manual_seed(4)
    expected = theirs(x)
    F.manual_seed(4)
    same_values(ours(to_facula(x)), expected)


def test_encoder_layers_number_the_activations_of_the_fast_path():
    layers = {
        name: nn.TransformerEncoderLayer(4, 2, activation=activation, **SMALL)
        for name, activation in (
            ("relu", "relu"),
            ("module", nn.ReLU()),
            ("gelu", nn.functional.gelu),
            ("silu", nn.functional.silu),
        )
    }
    numbers = {name: layer.activation_relu_or_gelu for name, layer in layers.items()}
    assert numbers == {"relu": 1, "module": 1, "gelu": 2, "silu": 0}


def test_attention_to_itself_without_gradients_gives_dense_batches():
    x = F.randn(2, 3, 4)
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    with F.no_grad():
        y, _ = attention(x, x, x)
        assert y.stride() == (12, 4, 1)
        assert attention(x, x.clone(), x)[0].stride() == (4, 8, 1)  # as in training
        assert attention.train()(x, x, x)[0].stride() == (4, 8, 1)
    attention.eval()
    assert attention(x, x, x)[0].stride() == (4, 8, 1)
    assert_close(attention(x, x, x)[0], y)
    assert attention.requires_grad_(False)(x, x, x)[0].stride() == (12, 4, 1)
