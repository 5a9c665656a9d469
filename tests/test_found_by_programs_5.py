"""Differences from PyTorch that programs written for it have shown, fifth part."""

import re
import warnings

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

nn = F.nn
f = F.nn.functional


# ---- texts that test suites match


def _with_sparse_gradient(kind):
    table = nn.Embedding(3, 2, sparse=True)
    table(F.tensor([1])).sum().backward()
    return kind(table.parameters()).step


TEXTS = {
    "stft": (
        lambda: F.stft(F.ones(16), 8, window=F.ones(8)),
        "stft requires the return_complex parameter be given for real inputs",
    ),
    "index_add": (
        lambda: F.zeros(3).index_add_(0, F.zeros(1), F.ones(1)),
        "Expected dtype int32/int64 for index but got: Float",
    ),
    "embedding": (
        lambda: f.embedding(F.ones(1), F.ones(2, 2)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
        "Long, Int; but got",
    ),
    "unused": (
        lambda: F.autograd.grad(F.ones(1, requires_grad=True).sum(), F.ones(1, requires_grad=True)),
        "The differentiated Tensor at index 0 appears to not have been used in the graph. "
        "Set allow_unused=True if this is the desired behavior.",
    ),
    "integers": (
        lambda: F.tensor([1], requires_grad=True),
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    "requires_grad_": (
        lambda: F.tensor([1]).requires_grad_(),
        "only Tensors of floating point dtype can require gradients",
    ),
    "layer_norm": (
        lambda: nn.LayerNorm(3)(F.ones(2, 4)),
        "Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[2, 4]",
    ),
    "device": (
        lambda: F.device("foo"),
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, "
        "xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device "
        "string: foo",
    ),
    "adam": (
        _with_sparse_gradient(F.optim.Adam),
        "Adam does not support sparse gradients, please consider SparseAdam instead",
    ),
    "condition": (
        lambda: F.where(F.ones(2), F.ones(2), F.ones(2)),
        "expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    "einsum": (
        lambda: F.einsum("ij,jk->ik", F.ones(2, 3), F.ones(2, 3)),
        "subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
    ),
    "einsum output": (
        lambda: F.einsum("ij->ijk", F.ones(2, 3)),
        "output subscript k does not appear in the equation for any input operand",
    ),
    "pooling": (
        lambda: f.max_pool2d(F.ones(1, 1, 4, 4), 2, padding=2),
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and "
        "dilation=1",
    ),
    "pixel_shuffle": (
        lambda: f.pixel_shuffle(F.ones(1, 3, 2, 2), 2),
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=3 is not divisible by 4",
    ),
    "narrow_copy": (
        lambda: F.narrow_copy(F.ones(2), 1, 0, 1),
        "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got",
    ),
    "cholesky": (
        lambda: F.linalg.cholesky(-F.eye(2)),
        "linalg.cholesky: The factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order 1 is not positive-definite).",
    ),
    "singular": (
        lambda: F.linalg.inv(F.zeros(2, 2)),
        "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because "
        "the input matrix is singular.",
    ),
    "padding string": (
        lambda: nn.Conv2d(1, 1, 3, padding="foo"),
        "Invalid padding string 'foo', should be one of {'",
    ),
    "negative strides": (
        lambda: F.from_numpy(np.ones(2)[::-1]),
        "At least one stride in the given numpy array is negative, and tensors with negative "
        "strides are not currently supported.",
    ),
    "table": (
        lambda: nn.Embedding(5, 3, padding_idx=7),
        "Padding_idx must be within num_embeddings",
    ),
    "prefetch": (
        lambda: F.utils.data.DataLoader([1], prefetch_factor=2),
        "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to "
        "enable multiprocessing, otherwise set prefetch_factor to None.",
    ),
    "checkpoint": (
        lambda: F.utils.checkpoint.checkpoint(
            F.sin, F.ones(1, requires_grad=True), use_reentrant=True, foo=1
        ),
        "Unexpected keyword arguments: foo",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_error_holds_the_text_of_pytorch(name):
    call, text = TEXTS[name]
    if name == "adam" and IS_FACULA:  # names the optimisers that take sparse gradients
        text = text.removesuffix(" instead")
    with pytest.raises(Exception, match=re.escape(text)):
        call()


SIZES = {
    "binary_cross_entropy": "Using a target size ({}Size([2])) that is different to the input "
    "size ({}Size([3])) is deprecated. Please ensure they have the same size.",
    "binary_cross_entropy_with_logits": "Target size ({}Size([2])) must be the same as input size "
    "({}Size([3]))",
}


@pytest.mark.parametrize("loss", SIZES)
def test_losses_of_two_outcomes_name_sizes_as_they_print(loss):
    package = repr(F.Size([2])).removesuffix("Size([2])")
    with pytest.raises(ValueError, match=re.escape(SIZES[loss].format(package, package))):
        getattr(f, loss)(F.ones(3), F.ones(2))


def test_batch_norm_and_assignments_name_sizes_and_tensors_as_they_print():
    package = repr(F.Size([2])).removesuffix("Size([2])")
    text = f"more than 1 value per channel when training, got input size {package}Size([1, 3])"
    with pytest.raises(ValueError, match=re.escape(text)):
        nn.BatchNorm1d(3)(F.ones(1, 3))
    with pytest.raises(TypeError, match=f"cannot assign '{package}FloatTensor' as parameter"):
        nn.Linear(2, 2).weight = F.ones(2, 2)


def test_a_gradcheck_shows_both_jacobians_behind_their_names():
    class Wrong(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = F.ones(1, dtype=F.float64, requires_grad=True)
    text = r"output 0 with respect to input 0,\nnumerical:tensor\(.*\nanalytical:tensor\("
    with pytest.raises(RuntimeError, match=text):
        F.autograd.gradcheck(Wrong.apply, x)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double prec"):
        F.autograd.gradcheck(Wrong.apply, F.ones(1, requires_grad=True), raise_exception=False)


# ---- warnings


def test_partial_backward_hooks_warn_of_what_they_miss():
    layer = nn.Linear(2, 2)
    layer.register_backward_hook(lambda *_: None)
    with pytest.warns(FutureWarning, match="when the forward contains multiple autograd Nodes"):
        layer(F.ones(1, 2))
    layer = nn.ReLU()
    layer.register_backward_hook(lambda *_: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(F.ones(1, requires_grad=True) * 2)


def test_encoders_say_why_they_keep_padding():
    text = "enable_nested_tensor is True, but self.use_nested_tensor is False because "
    for options, reason in (
        ({}, "encoder_layer.self_attn.batch_first was not True(use batch_first for better"),
        ({"norm_first": True}, "encoder_layer.norm_first was True"),
        ({"batch_first": True, "bias": False}, "encoder_layer.self_attn was passed bias=False"),
    ):
        layer = nn.TransformerEncoderLayer(4, 2, 8, **options)
        with pytest.warns(UserWarning, match=re.escape(text + reason)):
            nn.TransformerEncoder(layer, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def test_bags_take_their_arguments_in_the_old_order_with_a_warning():
    table = F.arange(6.0).view(3, 2).requires_grad_()
    lookups, offsets = F.tensor([0, 2, 1]), F.tensor([0, 2])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag"):
        bags = f.embedding_bag(table, lookups, offsets, mode="sum")
    assert bags.tolist() == [[4.0, 6.0], [2.0, 3.0]]
    bags.sum().backward()
    assert table.grad.tolist() == [[1.0, 1.0]] * 3


# ---- layouts and batches


@pytest.mark.parametrize("weight", [None, F.float32, F.float64])
def test_rms_norm_keeps_channels_side_by_side_and_no_other_order(weight):
    def norm(x):
        scale = None if weight is None else F.ones(x.shape[-1], dtype=weight)
        return f.rms_norm(x, x.shape[-1:], scale)

    x = F.rand(2, 3, 4, 5)
    images, volumes = F.channels_last, F.channels_last_3d
    assert norm(x.to(memory_format=images)).is_contiguous(memory_format=images)
    assert norm(F.rand(2, 3, 4, 5, 6).to(memory_format=volumes)).is_contiguous(
        memory_format=volumes
    )
    assert norm(x.to(memory_format=images)).tolist() == norm(x).tolist()
    for other in (x, x.permute(0, 2, 1, 3), F.rand(4, 6).t(), F.rand(3)):
        assert norm(other).is_contiguous()


def test_vectors_without_elements_join_with_anything_in_batches():
    nothing, ones = F.ones(3, 0), F.ones(2, 2)
    joined = F.func.vmap(lambda x: F.cat([x, ones]))(nothing)
    assert joined.tolist() == F.ones(3, 2, 2).tolist()
    pairs = F.arange(12.0).view(3, 2, 2)
    joined = F.func.vmap(lambda x, y: F.cat([F.ones(0), x, y, y], -1))(nothing, pairs)
    assert joined.tolist() == F.cat([pairs, pairs], -1).tolist()
    assert F.func.vmap(lambda x: F.cat([x, x]))(nothing).shape == (3, 0)


# ---- names


def test_a_model_of_several_processes_has_no_sync():
    assert callable(nn.parallel.DistributedDataParallel.no_sync)


def test_fuzzers_draw_parameters_that_fit_and_tensors_of_them():
    from importlib import import_module

    bench = import_module(f"{F.__name__}.utils.benchmark")
    parameters = [
        bench.FuzzedParameter("rows", 1, 64, "loguniform"),
        bench.FuzzedParameter("columns", 2, 9, "uniform"),
        bench.FuzzedParameter("share", 0.25, 0.5, "uniform", strict=True),
    ]
    tensors = [
        bench.FuzzedTensor(
            "x", ("rows", "columns"), steps=(1, 2), probability_contiguous=0, max_elements=128
        ),
        bench.FuzzedTensor("y", ("columns",), dtype=F.int32),
    ]
    fuzzer = bench.Fuzzer(parameters, tensors, [lambda p: p["rows"] != p["columns"]], seed=3)
    samples = list(fuzzer.take(20))
    assert len({p["rows"] for _, _, p in samples}) > 3
    for made, known, p in samples:
        assert made["x"].shape == (p["rows"], p["columns"]) and made["x"].numel() <= 128
        assert p["rows"] != p["columns"] and 0.25 <= p["share"] <= 0.5
        assert known["x"]["numel"] == made["x"].numel() and list(known["x"]["order"]) == [1, 0]
        if p["rows"] > 1:
            assert made["x"].stride() == (1, 2 * p["rows"])
        assert made["y"].dtype == F.int32 and 1 <= made["y"].min() <= made["y"].max() < 127
    assert 0 < fuzzer.rejection_rate < 1
    again = [p for _, _, p in bench.Fuzzer(parameters, tensors, [lambda p: True], seed=3).take(2)]
    assert all(isinstance(p["rows"], int) for p in again)
    with pytest.raises(ValueError, match="Duplicate names in parameters and tensors"):
        bench.Fuzzer([bench.FuzzedParameter("x", 1, 2, "uniform")], tensors)
    with pytest.raises(ValueError, match="Failed to generate a set of valid parameters"):
        next(bench.Fuzzer(parameters, tensors, [lambda p: False], seed=0).take(1))
