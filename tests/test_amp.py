"""Autocast and loss scaling."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

facula_only = pytest.mark.facula_only


def autocast(**options):
    return F.autocast("cpu", **options)


# ---- which operator runs in which dtype


@pytest.mark.parametrize(
    "product",
    [
        lambda a: a @ a,
        lambda a: F.mm(a, a),
        lambda a: F.addmm(a, a, a),
        lambda a: F.bmm(a[None], a[None]),
        lambda a: F.baddbmm(a[None], a[None], a[None]),
        lambda a: F.conv2d(a[None, None], a[None, None, :1, :1]),
        lambda a: F.linalg.vecdot(a, a),
    ],
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_run_in_the_lower_precision(product, dtype):
    dtype = getattr(F, dtype)
    with autocast(dtype=dtype):
        result = product(F.ones(3, 3))
    assert result.dtype == dtype


@pytest.mark.parametrize(
    "function",
    [
        lambda a: F.prod(a),
        lambda a: F.trace(a),
        lambda a: F.cdist(a, a),
        lambda a: F.quantile(a, 0.5),
        lambda a: F.linalg.inv(a + 2 * F.eye(3, dtype=a.dtype)),
        lambda a: F.fft.fft(a).real,
        lambda a: F.linalg.svdvals(a),
    ],
)
def test_delicate_functions_run_in_float32(function):
    with autocast():
        assert function(F.ones(3, 3, dtype=F.bfloat16)).dtype == F.float32


@pytest.mark.parametrize("function", [lambda a, b: F.cat([a, b]), lambda a, b: F.stack([b, a])])
def test_joining_takes_the_widest_dtype(function):
    a, b = F.ones(2), F.ones(2, dtype=F.bfloat16)
    with autocast():
        assert function(a, b).dtype == F.float32
        assert function(b, b).dtype == F.bfloat16


@pytest.mark.parametrize(
    "product",
    [
        lambda a, m: F.inner(a, a),
        lambda a, m: F.tensordot(a, a, 1),
        lambda a, m: F.tensordot(m, m, 2),
        lambda a, m: F.tensordot(m, m, ([1, 0], [1, 0])),
        lambda a, m: F.tensordot(a[None], a, 1),
    ],
)
def test_products_that_are_one_number_keep_their_precision(product):
    a = F.tensor([1.0, 0.001, 0.001, 0.001])
    with autocast():
        result = product(a, a.reshape(2, 2))
    assert result.dtype == F.float32
    assert result.item() == pytest.approx(1.000003, abs=5e-7)


@pytest.mark.parametrize(
    "product", [lambda m, a: F.inner(m, a), lambda m, a: F.tensordot(m, a[None], ([1], [1]))]
)
def test_products_of_vectors_with_matrices_run_in_the_lower_precision(product):
    with autocast():
        assert product(F.ones(3, 4), F.ones(4)).dtype == F.bfloat16


def test_other_operators_run_in_the_dtype_of_their_arguments():
    a = F.ones(2, dtype=F.bfloat16)
    with autocast():
        assert (a + a).dtype == F.bfloat16
        assert F.relu(a).dtype == F.bfloat16
        assert (F.ones(2) * 2).dtype == F.float32


def test_doubles_and_integers_are_left_alone():
    with autocast():
        assert (F.ones(2, 2, dtype=F.float64) @ F.ones(2, 2, dtype=F.float64)).dtype == F.float64
        assert (F.ones(2, 2, dtype=F.int64) @ F.ones(2, 2, dtype=F.int64)).dtype == F.int64


def test_destinations_and_in_place_calls_are_not_cast():
    out = F.empty(2, 2)
    with autocast():
        F.mm(F.ones(2, 2), F.ones(2, 2), out=out)
        out.addmm_(F.ones(2, 2), F.ones(2, 2))
    assert out.dtype == F.float32
    assert out.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_values_are_those_of_the_lower_precision():
    a = F.linspace(0, 1, 16).reshape(4, 4)
    with autocast():
        cast = a @ a
    assert F.equal(cast, a.bfloat16() @ a.bfloat16())


# ---- blocks


def test_blocks_nest_and_restore():
    a = F.ones(2, 2)
    assert not F.is_autocast_enabled("cpu")
    with autocast():
        assert F.is_autocast_enabled("cpu")
        with autocast(enabled=False):
            assert (a @ a).dtype == F.float32
        with autocast(dtype=F.float16):
            assert (a @ a).dtype == F.float16
        assert (a @ a).dtype == F.bfloat16
    assert (a @ a).dtype == F.float32
    assert F.get_autocast_dtype("cpu") == F.bfloat16


def test_a_block_is_left_after_an_error():
    with pytest.raises(ZeroDivisionError), autocast():
        raise ZeroDivisionError
    assert not F.is_autocast_enabled("cpu")


def test_functions_can_be_decorated():
    @autocast()
    def product(a):
        return a @ a

    assert product(F.ones(2, 2)).dtype == F.bfloat16
    assert product.__name__ == "product"
    with pytest.raises(TypeError, match="requires a callable"):
        autocast()(3)


def test_one_block_object_can_be_entered_again_inside_itself():
    block = autocast()
    with block:
        with block:
            pass
        assert F.is_autocast_enabled("cpu") or not IS_FACULA
    assert not F.is_autocast_enabled("cpu") or not IS_FACULA
    F.set_autocast_enabled("cpu", False)


def test_other_threads_are_not_in_the_block():
    seen = []
    with autocast():
        thread = threading.Thread(target=lambda: seen.append(F.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def test_unsupported_dtypes_disable_with_a_warning():
    with pytest.warns(UserWarning, match="not supported"):
        block = autocast(dtype=F.float64)
    with block:
        assert (F.ones(2, 2) @ F.ones(2, 2)).dtype == F.float32


def test_unknown_devices_are_refused():
    with pytest.raises(RuntimeError, match="nonsense"):
        F.autocast("nonsense")
    with pytest.raises(ValueError, match="device_type"):
        F.autocast(3)


def test_the_index_of_a_device_makes_no_difference():
    with F.autocast("cpu:0"):
        assert F.is_autocast_enabled("cpu")
        assert F.is_autocast_enabled("cpu:1")
        assert (F.ones(2, 2) @ F.ones(2, 2)).dtype == F.bfloat16
        with F.autocast("cpu:0", enabled=False):
            assert not F.is_autocast_enabled("cpu")
    assert not F.is_autocast_enabled("cpu")
    assert F.get_autocast_dtype("cuda:1") == F.float16
    with pytest.raises(RuntimeError):
        F.autocast("cpu:first")


def test_cuda_without_a_device_disables_with_a_warning():
    if F.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.warns(UserWarning, match="CUDA is not available"):
        block = F.autocast("cuda")
    with block:
        assert not F.is_autocast_enabled("cuda")


def test_old_names():
    with pytest.warns(FutureWarning, match="deprecated"):
        block = F.cpu.amp.autocast()
    with block:
        assert F.is_autocast_cpu_enabled()
        assert F.get_autocast_cpu_dtype() == F.bfloat16
    from importlib import import_module

    assert import_module(f"{F.__name__}.cuda.amp").GradScaler is F.cuda.amp.GradScaler


# ---- gradients


def test_gradients_flow_back_to_float32_parameters():
    w = F.nn.Parameter(F.tensor([[1.0, 2.0], [3.0, 4.0]]))
    x = F.tensor([[0.5, -1.0]])
    with autocast():
        loss = (x @ w).float().sum()
    loss.backward()
    assert w.grad.dtype == F.float32
    assert w.grad.tolist() == [[0.5, 0.5], [-1.0, -1.0]]


def count_casts(function):
    with F.autograd.profiler.profile() as profile:
        function()
    return sum(event.name == "aten::_to_copy" for event in profile.function_events)


def test_a_parameter_is_cast_once_in_a_block():
    w = F.nn.Parameter(F.ones(2, 2))

    def run(**options):
        with autocast(**options):
            x = F.ones(2, 2, dtype=F.bfloat16)
            return x @ w + x @ w

    assert count_casts(run) == 1
    assert count_casts(lambda: run(cache_enabled=False)) == 2
    run().float().sum().backward()
    assert w.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


@facula_only
def test_a_parameter_that_was_changed_is_cast_anew():
    w = F.nn.Parameter(F.ones(1, 1))
    x = F.ones(1, 1)
    with autocast():
        assert (x @ w).item() == 1
        with F.no_grad():
            w.fill_(2)
        assert (x @ w).item() == 2


@facula_only
def test_a_cast_made_without_gradients_is_not_used_with_them():
    w = F.nn.Parameter(F.ones(1, 1))
    x = F.ones(1, 1)
    with autocast():
        with F.no_grad():
            x @ w
        result = x @ w
    result.float().sum().backward()
    assert w.grad.item() == 1


def test_training_in_bfloat16_follows_float32():
    def train(cast):
        F.manual_seed(0)
        w1, w2 = (F.nn.Parameter(F.randn(8, 8) * 0.3) for _ in range(2))
        x, y = F.randn(32, 8), F.randn(32, 8)
        optimizer = F.optim.SGD([w1, w2], lr=0.1)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            with autocast(enabled=cast):
                out = F.relu(x @ w1) @ w2
                loss = ((out.float() - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    full, mixed = train(False), train(True)
    assert mixed != full
    np.testing.assert_allclose(mixed, full, rtol=0.02)


def test_vmap_inside_autocast():
    a = F.ones(3, 2, 2)
    with autocast():
        result = F.vmap(lambda m: m @ m)(a)
    assert result.dtype == F.bfloat16
    assert result.float().tolist() == (2 * F.ones(3, 2, 2)).tolist()


def make_function(**options):
    class Product(F.autograd.Function):
        @staticmethod
        @F.amp.custom_fwd(device_type="cpu", **options)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @F.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            Product.seen = F.is_autocast_enabled("cpu")
            return grad @ b.t(), a.t() @ grad

    return Product


def test_custom_functions_run_as_their_surroundings_or_in_a_given_dtype():
    a = F.ones(2, 2, requires_grad=True)
    for options, dtype, inside in (
        ({}, F.bfloat16, True),
        ({"cast_inputs": F.float32}, F.float32, False),
    ):
        function = make_function(**options)
        with autocast():
            result = function.apply(a, a.bfloat16())
        assert result.dtype == dtype
        result.float().sum().backward()
        assert function.seen is inside


# ---- scaling


def scaler_and_model(**options):
    p = F.nn.Parameter(F.tensor([1.0, 2.0]))
    optimizer = F.optim.SGD([p], lr=0.1)
    return F.amp.GradScaler("cpu", **options), p, optimizer


def test_scaled_gradients_are_unscaled_before_the_step():
    scaler, p, optimizer = scaler_and_model(init_scale=128.0)
    scaler.scale((p * 3).sum()).backward()
    assert p.grad.tolist() == [384.0, 384.0]
    scaler.step(optimizer)
    assert p.grad.tolist() == [3.0, 3.0]
    assert p.detach().tolist() == pytest.approx([0.7, 1.7])
    scaler.update()
    assert scaler.get_scale() == 128.0


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_infinite_gradients_leave_the_step_out_and_shrink_the_factor(bad):
    scaler, p, optimizer = scaler_and_model(init_scale=128.0)
    scaler.scale((p * F.tensor([1.0, bad])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.detach().tolist() == [1.0, 2.0]
    assert scaler.get_scale() == 64.0


def test_a_subclass_of_the_scaler_may_decide_whether_to_step():
    class Patient(F.amp.GradScaler):
        def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
            seen.append(
                [found.item() for found in optimizer_state["found_inf_per_device"].values()]
            )
            return "decided"

    seen = []
    p = F.nn.Parameter(F.ones(1))
    optimizer = F.optim.SGD([p], lr=0.1)
    scaler = Patient("cpu", init_scale=4.0)
    scaler.scale(p.sum()).backward()
    assert scaler.step(optimizer) == "decided"
    assert (seen, p.item()) == ([[0.0]], 1.0)


def test_the_factor_grows_after_good_steps():
    scaler, p, optimizer = scaler_and_model(init_scale=4.0, growth_interval=2)
    factors = []
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(p.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        factors.append(scaler.get_scale())
    assert factors == [4.0, 8.0, 8.0, 16.0, 16.0]


def test_unscale_before_clipping():
    scaler, p, optimizer = scaler_and_model(init_scale=1024.0)
    scaler.scale((p * 3).sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="since the last update"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    scaler.update()


def test_scaling_lists_of_losses():
    scaler, p, _ = scaler_and_model(init_scale=2.0)
    a, (b,) = scaler.scale([p.sum(), (p.sum(),)])
    assert (a.item(), b.item()) == (6.0, 6.0)
    with pytest.raises(ValueError, match="Tensor"):
        scaler.scale(3)


def test_misuse_of_a_scaler_is_explained():
    scaler, p, optimizer = scaler_and_model()
    with pytest.raises(AssertionError, match=r"scaler.scale\(loss or outputs\)"):
        scaler.step(optimizer)
    scaler.scale(p.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(AssertionError, match="growth factor"):
        F.amp.GradScaler("cpu", growth_factor=1.0)


def test_a_new_factor_can_be_set():
    scaler, p, _ = scaler_and_model()
    scaler.scale(p.sum())
    scaler.update(8.0)
    assert scaler.get_scale() == 8.0
    scaler.update(F.tensor(16.0))
    assert scaler.get_scale() == 16.0


def test_a_disabled_scaler_passes_everything_through():
    scaler, p, optimizer = scaler_and_model(enabled=False)
    loss = p.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.detach().tolist() == pytest.approx([0.9, 1.9])
    assert scaler.state_dict() == {}
    assert scaler.get_scale() == 1.0


def test_scaler_state_round_trip():
    scaler, p, optimizer = scaler_and_model(init_scale=4.0, growth_interval=3)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 3,
        "_growth_tracker": 1,
    }
    other = F.amp.GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state
    for twin in (copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))):
        assert twin.state_dict() == state
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})


def test_cuda_scaler_without_a_device_is_disabled():
    if F.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.warns(UserWarning, match="Disabling"):
        assert not F.amp.GradScaler().is_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.amp.GradScaler(enabled=False)


def test_optimizers_that_unscale_themselves_get_the_factor():
    class Own(F.optim.Optimizer):
        _step_supports_amp_scaling = True

        def __init__(self, params):
            super().__init__(params, {})
            self.seen = []

        def step(self, closure=None):
            scale = None if self.grad_scale is None else self.grad_scale.item()
            self.seen.append((scale, float(self.found_inf)))

    w = F.nn.Parameter(F.ones(2))
    optimizer = Own([w])
    scaler = F.amp.GradScaler("cpu", init_scale=4.0)
    for factor, unscaled in ((1.0, False), (float("inf"), False), (1.0, True)):
        w.grad = None
        scaler.scale((w * factor).sum()).backward()
        if unscaled:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    assert optimizer.seen == [(4.0, 0.0), (4.0, 1.0), (None, 0.0)]
    assert not hasattr(optimizer, "grad_scale") and scaler.get_scale() == 2.0
    assert w.grad.tolist() == [1, 1]


def test_autocast_is_asked_for_by_devices_that_there_are():
    assert F.amp.is_autocast_available("cpu") and not F.amp.is_autocast_available("meta")
    assert isinstance(F.amp.is_autocast_available("xpu"), bool)
    with pytest.raises(RuntimeError):
        F.amp.is_autocast_available("bogus")
