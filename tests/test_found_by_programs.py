"""What random programs of tensor operations, run beside PyTorch, once found to differ."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from package_under_test import F


def channels_last():
    x = F.arange(120.0).reshape(2, 3, 4, 5)
    return x.contiguous(memory_format=F.channels_last)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.transpose_(0, 1),
        lambda v: v.t_(),
        lambda v: v.squeeze_(),
        lambda v: v.unsqueeze_(0),
        lambda v: v.as_strided_((2,), (1,)),
        lambda v: v.zero_(),
    ],
)
def test_views_of_leaves_refuse_changes_in_place(change):
    leaf = F.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        change(leaf.view(2, 2))
    with F.no_grad():
        change(leaf.view(2, 2))


def test_view_that_was_made_a_leaf_counts_as_one():
    leaf = F.ones(4, 2)[:, :1].requires_grad_()
    view = leaf.squeeze(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)
    assert leaf.is_leaf
    assert leaf.tolist() == [[1.0]] * 4


@pytest.mark.parametrize("change", ["mul_", "div_", "add_", "pow_", "copy_", "atan2_"])
@pytest.mark.parametrize("view", [lambda b: b[0], lambda b: b.t(), lambda b: b.view(-1)[:2]])
def test_writing_gradients_into_a_view_of_a_constant(view, change):
    w = F.tensor([2.0, 3.0], requires_grad=True)
    base = F.full((2, 2), 5.0)
    part = view(base)
    getattr(part, change)(w)
    got = F.autograd.grad((base * 2).sum(), w, retain_graph=True)[0]
    again = F.autograd.grad((part * 2).sum(), w)[0]
    fresh = F.full(tuple(part.shape), 5.0) * 1
    wanted = F.autograd.grad((getattr(fresh, change)(w) * 2).sum(), w)[0]
    F.testing.assert_close(got, wanted)
    F.testing.assert_close(again, wanted)


@pytest.mark.parametrize("function", [F.minimum, F.maximum])
def test_extremes_of_booleans_and_floats_have_derivatives(function):
    x = F.tensor([0.5, 1.0, 3.0], requires_grad=True)
    function(F.tensor([True, True, False]), x).sum().backward()
    larger = [0.0, 0.5, 1.0]
    assert x.grad.tolist() == (larger if function is F.maximum else [1 - g for g in larger])


def test_results_without_gradients_go_to_out():
    x = F.ones(2, requires_grad=True)
    assert F.eq(x, 1, out=F.empty(2, dtype=F.bool)).tolist() == [True, True]
    assert F.argmax(x, 0, out=F.empty(0, dtype=F.int64)).item() == 0
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        F.exp(x, out=F.empty(2))


def test_resized_out_takes_the_layout_of_the_inputs():
    x = channels_last()
    for out in (F.exp(x, out=F.empty(0)), F.add(x, x, out=F.empty(0))):
        assert out.stride() == x.stride()
    np.testing.assert_array_equal(out.numpy(), (x + x).numpy())


@pytest.mark.parametrize(
    ("dim", "strides"),
    [(0, (120, 60, 1, 15, 3)), (1, (120, 3, 1, 30, 6)), (2, (120, 1, 60, 15, 3)), (4, None)],
)
def test_stacked_images_keep_channels_last(dim, strides):
    x = channels_last()
    y = F.stack([x, -x], dim)
    assert y.is_contiguous() if strides is None else y.stride() == strides
    np.testing.assert_array_equal(y.numpy(), np.stack([x.numpy(), -x.numpy()], dim))


@pytest.mark.parametrize("dims", [(1,), (-2,), (0, 2), (3, 1)])
def test_rolled_images_keep_channels_last(dims):
    x = channels_last()
    y = x.roll((1,) * len(dims), dims)
    assert y.stride() == x.stride()
    np.testing.assert_array_equal(y.numpy(), np.roll(x.numpy(), (1,) * len(dims), dims))
    assert F.ones(4, 3).t().roll(1, 1).is_contiguous()


def test_joined_images_have_channels_last_only_where_all_have():
    x = channels_last()
    assert F.cat([x, x], 1).is_contiguous(memory_format=F.channels_last)
    assert F.cat([x[:, :, 1:], x[:, :, :2]], 2).stride()[1] == 1
    assert F.cat([x, x.contiguous()], 1).is_contiguous()
    assert F.cat([x.contiguous(), x], 1).is_contiguous()


@pytest.mark.parametrize(
    "function", [F.add, F.maximum, lambda a, b, out: F.where(a > 5, a, b, out=out)]
)
def test_operand_that_is_the_destination_is_not_resized(function):
    a, b = F.ones(2, 3), F.tensor([7.0])
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        function(a, b, out=b)
    assert b.tolist() == [7.0]


@pytest.mark.parametrize("shape", [(3, 0), (2, 4, 0), (1, 2, 0, 3)])
def test_padding_of_nothing_has_the_value(shape):
    kept = [F.full((64,), 7.0) for _ in range(8)]  # memory that is used again
    del kept
    pads = (1, 1) if shape[-1] == 0 else (0, 0, 1, 2)
    padded = F.nn.functional.pad(F.ones(shape), pads, value=5.0)
    assert padded.numel() > 0
    assert padded.eq(5).all()


def test_broadcast_tensors_of_that_shape_are_themselves():
    x, y = F.ones(2, 3), F.ones(3)
    a, b = F.broadcast_tensors(x, y)
    assert a is x
    assert b.shape == x.shape


def test_images_of_one_channel_can_be_given_channels_last():
    x = F.ones(3, 1, 4, 2)
    assert x.to(memory_format=F.channels_last).stride() == (8, 1, 2, 1)
    assert x.contiguous(memory_format=F.channels_last) is x


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_scalars_count_for_the_dtype_of_losses(loss):
    x = F.ones(2, dtype=F.bfloat16)
    assert getattr(F.nn.functional, loss)(F.tensor(1.0), x).dtype == F.float32


def test_instance_norm_of_channels_last_is_contiguous():
    assert F.nn.functional.instance_norm(channels_last()).is_contiguous()


@pytest.mark.parametrize("value", [2.7, [2.7], [[2.7]]])
def test_one_number_goes_to_a_mask_in_another_dtype(value):
    x = F.tensor([[1, 2], [3, 4]])
    x[x > 1] = F.tensor(value)
    assert x.tolist() == [[1, 2], [2, 2]]
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[x > 1] = F.tensor([2.7, 1.0, 1.0])
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[F.tensor([0])] = F.tensor(2.7)


def test_transposes_of_scalars_are_themselves():
    x = F.tensor(2.0)
    assert x.mT.item() == x.mH.item() == 2.0
    with pytest.raises(RuntimeError, match="matrices"):
        _ = F.ones(2).mT


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_as_in_pytorch(mode, align_corners, antialias):
    torch = pytest.importorskip("torch")
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    rng = np.random.default_rng(0)
    for shape in ((1, 3, 7, 9), (2, 4, 33, 20), (1, 5, 16, 16)):
        x = rng.integers(0, 256, shape).astype(np.uint8)
        for size in ((4, 5), (14, 18), (7, 20), (50, 31), (64, 8)):
            wanted = torch.nn.functional.interpolate(torch.from_numpy(x), size=size, **options)
            for format in (F.contiguous_format, F.channels_last):
                given = F.from_numpy(x).contiguous(memory_format=format)
                got = F.nn.functional.interpolate(given, size=size, **options)
                np.testing.assert_array_equal(got.numpy(), wanted.numpy())


# ---- found by programs as people write them


def test_named_results_print_each_field_on_lines_of_its_own():
    found = repr(F.tensor([[1, 5], [7, 3]]).max(1))
    lines = ["return_types.max(", "values=tensor([5, 7]),", "indices=tensor([1, 0]))"]
    assert found.partition(".")[2] == "\n".join(lines)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda x: F.nn.functional.mse_loss(x, x * 2), "MseLossBackward0"),
        (lambda x: F.nn.functional.smooth_l1_loss(x, x * 2), "SmoothL1LossBackward0"),
        (lambda x: F.nn.functional.cross_entropy(x, F.tensor([0, 1])), "NllLossBackward0"),
        (
            lambda x: F.nn.functional.binary_cross_entropy_with_logits(x, x.detach()),
            "BinaryCrossEntropyWithLogitsBackward0",
        ),
        (lambda x: x.relu(), "ReluBackward0"),
        (lambda x: x.max(), "MaxBackward1"),
        (lambda x: x.max(0).values, "MaxBackward0"),
        (lambda x: x.std(), "StdBackward0"),
        (lambda x: F.var_mean(x)[0], "VarMeanBackward0"),
        (lambda x: x.clamp(0, 1), "ClampBackward1"),
        (lambda x: x.repeat(2, 1), "RepeatBackward0"),
        (lambda x: F.logsumexp(x, 0), "LogsumexpBackward0"),
    ],
)
def test_results_show_what_made_them(make, name):
    x = F.tensor([[1.0, 2.0], [0.5, 3.0]], requires_grad=True)
    assert make(x).grad_fn.name() == name
    make(x).sum().backward()
    assert x.grad is not None


def test_a_composite_names_only_nodes_that_it_made():
    x = F.ones(2, requires_grad=True).exp()
    assert F.nn.functional.dropout(x, 0.5, training=False).grad_fn.name() == "ExpBackward0"
    assert x.clamp(0, 9).grad_fn.name() == "ClampBackward1" and x.grad_fn.name() == "ExpBackward0"


def test_types_of_errors_that_programs_catch():
    with pytest.raises(RuntimeError, match="Could not infer dtype of NoneType"):
        F.tensor(None)
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        F.tensor([1, "a"])
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        F.set_num_threads(0)


def test_hidden_operators_do_not_speak():
    with pytest.raises(RuntimeError) as caught:
        F.ones(2, 3).to(memory_format=F.channels_last)
    assert "_to_copy" not in str(caught.value)


def test_losing_an_imaginary_part_is_told_once_in_a_program():
    program = (
        f"import warnings, {F.__name__} as F\n"
        "warnings.simplefilter('always')\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    F.tensor([1j]).float(); F.tensor([1j]).to(F.int64); F.tensor([1j]).bool()\n"
        "print([str(w.message)[:20] for w in told])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['Casting complex valu']\n", done.stderr


def test_a_trace_handler_sees_the_steps_that_are_done():
    seen = []
    with F.profiler.profile(
        activities=[F.profiler.ProfilerActivity.CPU],
        schedule=F.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: seen.append(p.step_num),
    ) as profiler:
        for _ in range(5):
            F.ones(2) + 1
            profiler.step()
    assert seen == [4]


def test_names_that_other_projects_import():
    pieces = importlib.import_module(F.__name__ + ".nn.modules.utils")
    assert pieces._pair(3) == (3, 3) and pieces._triple((1, 2, 3)) == (1, 2, 3)
    assert pieces._ntuple(4)("ab") == ("a", "b")
    assert pieces._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    state = F.nn.Sequential(F.nn.Linear(1, 1)).state_dict(prefix="module.")
    pieces.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    for module, names in {
        "nn.common_types": "_size_2_t _size_any_t",
        "nn.modules.activation": "MultiheadAttention",
        "nn.modules.transformer": "_get_clones _get_activation_fn",
        "nn.init": "_calculate_correct_fan",
        "utils.data.dataset": "T_co",
        "utils.data._utils.collate": "np_str_obj_array_pattern default_collate_err_msg_format",
        "cuda.amp.grad_scaler": "OptState",
        "functional": "einsum tensordot",
    }.items():
        found = importlib.import_module(f"{F.__name__}.{module}")
        assert all(hasattr(found, name) for name in names.split())


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(dimensions):
    x = F.randn(2, 4, *[6] * dimensions, requires_grad=True)
    weight = F.randn(6, 2, *[3] * dimensions, requires_grad=True)
    settings = dict(stride=2, padding=1, dilation=1, groups=2)
    y = getattr(F.nn.functional, f"conv{dimensions}d")(x, weight, **settings)
    grad = F.randn_like(y)
    y.backward(grad)
    gradients = importlib.import_module(F.__name__ + ".nn.grad")
    by_input, by_weight = (
        getattr(gradients, f"conv{dimensions}d_{n}") for n in ("input", "weight")
    )
    F.testing.assert_close(by_input(x.shape, weight.detach(), grad, **settings), x.grad)
    F.testing.assert_close(by_weight(x.detach(), weight.shape, grad, **settings), weight.grad)


def test_lists_of_tensors_as_one():
    lists = importlib.import_module(F.__name__ + "._utils")
    tensors = [F.ones(2, 2), F.zeros(3)]
    flat = lists._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0] * 4 + [0.0] * 3
    assert [t.shape for t in lists._unflatten_dense_tensors(flat, tensors)] == [(2, 2), (3,)]


def test_sparse_tensor_of_a_size_by_name():
    empty = F.sparse_coo_tensor(size=(2, 3))
    assert empty.shape == (2, 3) and empty._nnz() == 0
    with pytest.raises(TypeError):
        F.sparse_coo_tensor()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_of_half_precision_are_in_range_where_their_sums_are_not(dtype):
    x = F.full((300, 400), 100.0, dtype=getattr(F, dtype))
    assert x.mean().item() == 100 and x.mean((0, 1), keepdim=True).item() == 100
    assert F.mean(x * 300 if dtype == "float16" else x, 1)[0].item() in (100, 30000)
    assert F.nn.functional.mse_loss(x, x * 0).item() == pytest.approx(1e4, rel=1e-2)
    assert F.nn.functional.l1_loss(x, x * 0).item() == 100
    out = F.empty((), dtype=x.dtype)
    assert F.mean(x, (0, 1), out=out) is out and out.item() == 100
    wide = F.empty(())
    assert F.mean(x, (0, 1), dtype=F.float32, out=wide).item() == 100
    x.requires_grad_().mean().backward()
    assert x.grad.dtype == x.dtype and x.grad[0, 0].item() == pytest.approx(1 / 120000, rel=1e-2)


def test_mean_of_half_precision_is_rounded_once():
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    x = F.from_numpy(values).bfloat16()
    assert x.mean() == x.double().mean().bfloat16()
