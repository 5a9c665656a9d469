"""Convolution modules: geometry, padding modes, transposes and lazy forms."""

import pytest
from nn_comparison import same_training, same_values, to_facula, twins
from package_under_test import IS_FACULA, F, assert_close, assert_equal

nn = F.nn


def test_representation_names_what_differs_from_the_default():
    layer = nn.Conv2d(4, 6, 3, padding=(1, 2), dilation=2, groups=2, bias=False)
    assert repr(layer) == (
        "Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 2), dilation=(2, 2), "
        "groups=2, bias=False)"
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_module_calls_the_function_with_its_geometry(dims):
    layer = getattr(nn, f"Conv{dims}d")(2, 4, 3, stride=2, padding=1)
    x = F.randn(2, 2, *[7] * dims)
    function = getattr(nn.functional, f"conv{dims}d")
    assert_equal(layer(x), function(x, layer.weight, layer.bias, 2, 1))


def test_same_padding_keeps_the_size():
    assert nn.Conv2d(1, 1, (2, 5), padding="same")(F.ones(1, 1, 6, 7)).shape == (1, 1, 6, 7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"groups": 3}, "in_channels must be divisible by groups"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"padding": "half"}, "Invalid padding string"),
        ({"padding": "same", "stride": 2}, "not supported for strided"),
        ({"padding_mode": "mirror"}, "padding_mode must be one of"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        nn.Conv2d(4, 6, 3, **arguments)


def test_transpose_refuses_other_padding_modes():
    with pytest.raises(ValueError, match='Only "zeros" padding mode'):
        nn.ConvTranspose2d(1, 1, 3, padding_mode="reflect")


def test_weights_do_not_depend_on_the_layout():
    F.manual_seed(0)
    plain = nn.Conv2d(3, 4, 3)
    other = nn.Conv2d(3, 4, 3).to(memory_format=F.channels_last)
    F.manual_seed(0)
    other.reset_parameters()
    assert_equal(other.weight, plain.weight)
    assert other.weight.is_contiguous(memory_format=F.channels_last)


def test_transpose_reaches_a_wanted_size():
    up = nn.ConvTranspose2d(2, 3, 3, stride=2)
    x = F.ones(1, 2, 4, 4)
    assert up(x).shape == (1, 3, 9, 9)
    assert up(x, output_size=[10, 9]).shape == (1, 3, 10, 9)
    assert up(x, output_size=(1, 3, 10, 10)).shape == (1, 3, 10, 10)
    assert up(x[0], output_size=[10, 9]).shape == (3, 10, 9)
    with pytest.raises(ValueError, match=r"valid sizes range from \[9, 9\] to \[10, 10\]"):
        up(x, output_size=[11, 9])
    with pytest.raises(ValueError, match="must have 2 or 4 elements"):
        up(x, output_size=[10])


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d"])
@pytest.mark.parametrize("transposed", [False, True])
def test_lazy_module_takes_channels_from_its_input(name, transposed):
    name = name.replace("Conv", "ConvTranspose") if transposed else name
    dims = int(name[-2])
    layer = getattr(nn, f"Lazy{name}")(6, 3, groups=2)
    x = F.ones(2, 4, *[5] * dims)
    y = layer(x)
    assert type(layer) is getattr(nn, name)
    assert layer.in_channels == 4
    assert y.shape[1] == 6
    again = getattr(nn, f"Lazy{name}")(6, 3, groups=2)
    again.load_state_dict(layer.state_dict())
    assert_close(again(x), y, 1e-6, 1e-6)
    if IS_FACULA:  # PyTorch leaves it 0 when shapes come with a state dict
        assert again.in_channels == 4


def test_lazy_module_checks_its_first_input():
    with pytest.raises(RuntimeError, match=r"3D \(unbatched\) or 4D"):
        nn.LazyConv2d(6, 3)(F.ones(2, 2))
    with pytest.raises(ValueError, match="divisible by groups"):
        nn.LazyConv2d(6, 3, groups=2)(F.ones(1, 3, 5, 5))


CASES = [
    ("Conv1d", {"padding": 1}),
    ("Conv2d", {"stride": 2, "padding": "valid", "groups": 2}),
    ("Conv2d", {"padding": "same", "dilation": 2}),
    ("Conv3d", {"bias": False}),
    ("ConvTranspose1d", {"stride": 2}),
    ("ConvTranspose2d", {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ("ConvTranspose3d", {}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_training_equals_pytorch(name, options):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, name, 4, 6, 3, **options)
    same_training(torch, ours, theirs, torch.randn(2, 4, *[7] * int(name[-2])))


@pytest.mark.skipif(not hasattr(nn.functional, "pad"), reason="needs nn.functional.pad")
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same"])
def test_padding_modes_equal_pytorch(mode, padding):
    torch = pytest.importorskip("torch")
    ours, theirs = twins(torch, "Conv2d", 2, 3, 3, padding=padding, padding_mode=mode)
    x = torch.randn(2, 2, 6, 7)
    same_values(ours(to_facula(x)), theirs(x))


def test_same_padding_of_even_kernels_keeps_channels_last():
    x = F.arange(32.0).reshape(1, 2, 4, 4).contiguous(memory_format=F.channels_last)
    layer = nn.Conv2d(2, 3, 2, padding="same")
    y = layer(x)
    assert y.shape == (1, 3, 4, 4) and y.stride() == (48, 1, 12, 3)
    assert_close(y, layer(x.contiguous()))
    assert layer(x.contiguous()).is_contiguous()
