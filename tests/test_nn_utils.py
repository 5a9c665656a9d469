"""facula.nn.utils: clipping, vectors of parameters, fusion, parametrizations, pruning."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

nn = F.nn
utils = F.nn.utils
parametrize = F.nn.utils.parametrize
parametrizations = F.nn.utils.parametrizations


class Linear(nn.Module):
    def __init__(self, inputs, outputs, device=None, dtype=None):
        super().__init__()
        self.weight = nn.Parameter(F.randn(outputs, inputs, device=device, dtype=dtype))
        self.bias = nn.Parameter(F.zeros(outputs, device=device, dtype=dtype))

    def forward(self, x):
        return x @ self.weight.t() + self.bias


@pytest.fixture(autouse=True)
def seeded():
    F.manual_seed(0)


def with_grads(*grads):
    params = []
    for grad in grads:
        p = nn.Parameter(F.zeros(len(grad)))
        p.grad = F.tensor(grad)
        params.append(p)
    return params


# ---- clipping


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.5, math.inf])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm_scales_all_gradients_by_one_factor(norm_type, max_norm):
    params = with_grads([3.0, -4.0], [1.0], [2.0, 0.5, -0.25])
    before = np.concatenate([p.grad.numpy().copy() for p in params])
    norm = utils.clip_grad_norm_(params, max_norm, norm_type=norm_type)
    expected = np.linalg.norm(before, norm_type)
    assert norm.item() == pytest.approx(expected, rel=1e-6)
    after = np.concatenate([p.grad.numpy() for p in params])
    factor = min(1.0, max_norm / (expected + 1e-6))
    np.testing.assert_allclose(after, before * factor, rtol=1e-6)


def test_clip_grad_norm_takes_one_tensor_generators_and_missing_gradients():
    (p,) = with_grads([3.0, 4.0])
    q = nn.Parameter(F.ones(1))
    assert utils.clip_grad_norm_(p, 1.0).item() == 5.0
    assert utils.clip_grad_norm_((t for t in (p, q)), 10.0).item() == pytest.approx(1.0)
    assert q.grad is None
    assert utils.clip_grad_norm_([q], 1.0).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((t for t in ()), 1.0)


def test_non_finite_norms_raise_when_asked_and_leave_gradients():
    (p,) = with_grads([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [math.inf, 1.0]
    utils.clip_grad_norm_(p, 1.0)
    assert math.isnan(p.grad[0].item())


def test_clip_grad_value_limits_each_element():
    params = with_grads([3.0, -4.0], [0.5])
    utils.clip_grad_value_(params, 2)
    assert [p.grad.tolist() for p in params] == [[2.0, -2.0], [0.5]]


def test_norm_and_scaling_in_two_steps():
    params = with_grads([3.0], [4.0])
    norm = utils.get_total_norm(p.grad for p in params)
    utils.clip_grads_with_norm_(params, 1.0, norm)
    assert [p.grad.item() for p in params] == pytest.approx([0.6, 0.8])
    assert utils.get_total_norm([]).item() == 0


def test_half_precision_gradients_are_clipped():
    p = nn.Parameter(F.zeros(2, dtype=F.bfloat16))
    p.grad = F.tensor([3.0, 4.0], dtype=F.bfloat16)
    utils.clip_grad_norm_(p, 1.0)
    assert p.grad.dtype == F.bfloat16
    assert p.grad.float().norm().item() == pytest.approx(1.0, rel=1e-2)


# ---- vectors, fusion, initialisation


def test_parameters_as_a_vector_and_back():
    m = Linear(3, 2)
    vector = utils.parameters_to_vector(m.parameters())
    assert vector.shape == (8,)
    utils.vector_to_parameters(F.arange(8.0), m.parameters())
    assert m.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert m.bias.tolist() == [6, 7]
    with pytest.raises(TypeError, match="expected"):
        utils.vector_to_parameters([1.0], m.parameters())


@pytest.mark.parametrize("transpose", [False, True])
def test_fused_convolution_weights(transpose):
    w = F.randn(4, 4, 3)
    mean, var = F.randn(4), F.rand(4) + 0.5
    gamma, beta = F.randn(4), F.randn(4)
    weight, bias = utils.fuse_conv_bn_weights(w, None, mean, var, 1e-5, gamma, beta, transpose)
    scale = gamma / (var + 1e-5).sqrt()
    assert F.allclose(weight, w * (scale[None, :, None] if transpose else scale[:, None, None]))
    assert F.allclose(bias, beta - mean * scale)
    assert isinstance(weight, nn.Parameter)


def test_fused_linear_weights():
    w, b = F.randn(4, 3), F.randn(4)
    mean, var = F.randn(4), F.rand(4) + 0.5
    gamma, beta = F.randn(4), F.randn(4)
    weight, bias = utils.fuse_linear_bn_weights(w, b, mean, var, 1e-5, gamma, beta)
    x = F.randn(5, 3)
    expected = (x @ w.t() + b - mean) / (var + 1e-5).sqrt() * gamma + beta
    assert F.allclose(x @ weight.t() + bias, expected, atol=1e-5)


def test_skip_init_makes_parameters_without_values():
    m = utils.skip_init(Linear, 3, 2)
    assert m.weight.shape == (2, 3)
    assert m.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="device"):
        utils.skip_init(nn.Identity.__base__)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        utils.skip_init(dict)


# ---- parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, a):
        return a.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y

    def right_inverse(self, z):
        return z, F.zeros_like(z)


def test_parametrized_weight_is_computed_and_trained_through():
    m = Linear(3, 3)
    start = m.weight.detach().clone()
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert F.equal(m.weight, m.weight.t())
    assert F.equal(m.weight.triu(), start.triu())
    assert sorted(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(m).__name__ == "ParametrizedLinear"
    assert isinstance(m, Linear)
    m(F.ones(1, 3)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None


def test_assignment_goes_through_the_inverse():
    m = Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Doubled())
    m.weight = F.full((2, 2), 6.0)
    assert m.parametrizations.weight.original.tolist() == [[3, 3], [3, 3]]
    assert m.weight.tolist() == [[6, 6], [6, 6]]


def test_parametrizations_are_chained():
    m = Linear(2, 2)
    weight = m.weight
    before = weight.detach().clone()
    parametrize.register_parametrization(m, "weight", Doubled())
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert F.allclose(m.weight.triu(), before.triu())
    assert len(m.parametrizations.weight) == 2
    assert m.parametrizations.weight.original is weight  # optimizers keep their parameter
    m.weight = F.ones(2, 2)
    assert F.equal(m.weight, F.ones(2, 2))


def test_a_tensor_of_several_originals():
    m = Linear(2, 2)
    value = m.weight.detach().clone()
    parametrize.register_parametrization(m, "weight", Sum())
    names = [name for name, _ in m.named_parameters()]
    assert names == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert F.equal(m.weight, value)
    with pytest.raises(ValueError, match="leave_parametrized=False"):
        parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(m, "weight")
    assert F.equal(m.weight, value)
    assert isinstance(m.weight, nn.Parameter)


@pytest.mark.parametrize("leave", [True, False])
def test_removal_restores_the_class(leave):
    m = Linear(2, 2)
    original = m.weight
    parametrize.register_parametrization(m, "weight", Symmetric())
    value = m.weight.detach().clone()
    raw = m.parametrizations.weight.original.detach().clone()
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=leave)
    assert type(m) is Linear
    assert m.weight is original
    assert F.equal(m.weight, value if leave else raw)
    assert not parametrize.is_parametrized(m)


def test_cached_computes_once():
    m = Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert m.weight is not m.weight
    with parametrize.cached():
        first = m.weight
        assert m.weight is first
    assert m.weight is not first


def test_bad_parametrizations_are_refused():
    class Cut(nn.Module):
        def forward(self, x):
            return x[:1]

    class Cast(nn.Module):
        def forward(self, x):
            return x.double()

    class Nothing(nn.Module):
        def forward(self, x):
            return None

    for bad, text in ((Cut, "shape"), (Cast, "dtype"), (Nothing, "must return a tensor")):
        m = Linear(2, 2)
        with pytest.raises(ValueError, match=text):
            parametrize.register_parametrization(m, "weight", bad())
    m = Linear(2, 2)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(m, "nothing", Symmetric())
    parametrize.register_parametrization(m, "weight", Cut(), unsafe=True)
    assert m.weight.shape == (1, 2)
    with pytest.raises(RuntimeError, match="right_inverse"):
        m.weight = F.ones(1, 2)


def test_parametrized_modules_can_be_copied_but_not_pickled():
    m = Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Symmetric())
    twin = copy.deepcopy(m)
    assert F.equal(twin.weight, m.weight)
    assert twin.parametrizations.weight.original is not m.parametrizations.weight.original
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(m)


def test_buffers_can_be_parametrized_and_parametrizations_transferred():
    m = nn.Module()
    m.register_buffer("scale", F.ones(2))
    parametrize.register_parametrization(m, "scale", Doubled())
    assert m.scale.tolist() == [1, 1]
    assert list(dict(m.named_buffers())) == ["parametrizations.scale.original"]

    a, b = Linear(2, 2), Linear(2, 2)
    parametrize.register_parametrization(a, "weight", Symmetric())
    parametrize.transfer_parametrizations_and_params(a, b)
    assert F.equal(a.weight, b.weight)
    assert parametrize.type_before_parametrizations(b) is Linear


# ---- ready-made ones


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("trivialization", [True, False])
def test_orthogonal_weights_stay_orthogonal_in_training(shape, kind, trivialization):
    m = nn.Module()
    m.weight = nn.Parameter(F.randn(*shape, dtype=F.float64))
    parametrizations.orthogonal(m, "weight", kind, use_trivialization=trivialization)
    optimizer = F.optim.SGD(m.parameters(), lr=0.1)

    def gap():
        w = m.weight if shape[-2] >= shape[-1] else m.weight.mT
        return (w.mT @ w - F.eye(w.size(-1), dtype=w.dtype)).abs().max().item()

    assert gap() < 1e-10
    before = m.weight.detach().clone()
    optimizer.zero_grad()
    (m.weight * F.randn(*shape, dtype=F.float64)).sum().backward()
    optimizer.step()
    assert gap() < 1e-10
    assert not F.allclose(before, m.weight)


def test_an_orthogonal_value_can_be_assigned():
    m = nn.Module()
    m.weight = nn.Parameter(F.randn(3, 3, dtype=F.float64))
    parametrizations.orthogonal(m)
    q = F.linalg.qr(F.randn(3, 3, dtype=F.float64)).Q
    m.weight = q
    assert F.allclose(m.weight, q)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_weight_norm_splits_size_and_direction(dim):
    m = Linear(3, 4)
    value = m.weight.detach().clone()
    parametrizations.weight_norm(m, dim=dim)
    assert F.allclose(m.weight, value, atol=1e-6)
    g = m.parametrizations.weight.original0
    with F.no_grad():
        g *= 2
    assert F.allclose(m.weight, 2 * value, atol=1e-6)
    m.weight.sum().backward()
    assert g.grad is not None


def test_weight_norm_loads_the_older_form():
    old, new = Linear(3, 4), Linear(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        utils.weight_norm(old)
    parametrizations.weight_norm(new)
    new.load_state_dict(old.state_dict())
    old(F.ones(1, 3))
    assert F.allclose(new.weight, old.weight)


def test_the_older_weight_norm_and_its_removal():
    m = Linear(3, 4)
    value = m.weight.detach().clone()
    with pytest.warns(FutureWarning, match="parametrizations"):
        utils.weight_norm(m, "weight")
    assert sorted(m.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert m.weight_g.shape == (4, 1)
    with F.no_grad():
        m.weight_g.mul_(3)
    m(F.ones(1, 3))
    assert F.allclose(m.weight, 3 * value, atol=1e-5)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="two weight_norm hooks"):
        warnings.simplefilter("ignore")
        utils.weight_norm(m, "weight")
    utils.remove_weight_norm(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        utils.remove_weight_norm(m)


def test_spectral_norm_divides_by_the_largest_singular_value():
    m = Linear(5, 4)
    value = m.weight.detach().clone()
    parametrizations.spectral_norm(m, n_power_iterations=20)
    sigma = F.linalg.svdvals(value)[0]
    assert F.allclose(m.weight, value / sigma, rtol=1e-3)
    assert sorted(m.state_dict()) == [
        "bias",
        "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
        "parametrizations.weight.original",
    ]
    m.eval()
    u = m.parametrizations.weight[0]._u.clone()
    m.weight.sum().backward()
    assert F.equal(u, m.parametrizations.weight[0]._u)
    with pytest.raises(IndexError, match="out of range"):
        parametrizations.spectral_norm(Linear(2, 2), dim=3)


def test_the_older_spectral_norm_and_its_removal():
    m = Linear(5, 4)
    value = m.weight.detach().clone()
    utils.spectral_norm(m, n_power_iterations=30)
    assert sorted(m.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert m.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    m(F.ones(1, 5)).sum().backward()
    assert m.weight_orig.grad is not None
    assert F.allclose(m.weight, value / F.linalg.svdvals(value)[0], rtol=1e-3)
    other = utils.spectral_norm(Linear(5, 4))
    other.load_state_dict(m.state_dict())
    utils.remove_spectral_norm(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    assert not m._forward_pre_hooks
    assert not m._load_state_dict_pre_hooks or not IS_FACULA


# ---- pruning

prune = pytest.importorskip(f"{F.__name__}.nn.utils.prune")


def test_pruned_elements_stay_zero_in_training():
    m = Linear(4, 3)
    prune.l1_unstructured(m, "weight", amount=0.5)
    assert (m.weight == 0).sum() == 6
    assert [name for name, _ in m.named_parameters()] == ["bias", "weight_orig"]
    assert sorted(m.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    optimizer = F.optim.SGD(m.parameters(), lr=0.1)
    m(F.ones(1, 4)).sum().backward()
    optimizer.step()
    m(F.ones(1, 4))
    assert F.equal(m.weight == 0, m.weight_mask == 0)
    assert prune.is_pruned(m)
    prune.remove(m, "weight")
    assert not prune.is_pruned(m)
    assert (m.weight == 0).sum() == 6
    assert isinstance(m.weight, nn.Parameter)


def test_pruning_twice_takes_a_share_of_what_is_left():
    m = Linear(10, 10)
    prune.random_unstructured(m, "weight", amount=0.5)
    prune.l1_unstructured(m, "weight", amount=0.5)
    assert m.weight_mask.sum() == 25
    (hook,) = m._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer)
    assert len(hook) == 2


def test_structured_pruning_takes_whole_channels():
    m = Linear(4, 6)
    norms = m.weight.detach().norm(dim=1)
    prune.ln_structured(m, "weight", amount=2, n=2, dim=0)
    gone = (m.weight_mask.sum(1) == 0).nonzero().flatten().tolist()
    assert sorted(gone) == sorted(norms.topk(2, largest=False).indices.tolist())
    prune.random_structured(m, "weight", amount=0.5, dim=1)
    assert (m.weight_mask.sum(0) == 0).sum() == 2


def test_global_pruning_compares_all_parameters():
    a, b = Linear(2, 2), Linear(2, 2)
    with F.no_grad():
        a.weight.copy_(F.tensor([[1.0, 2.0], [3.0, 4.0]]))
        b.weight.copy_(F.tensor([[0.1, 0.2], [0.3, 5.0]]))
    prune.global_unstructured(
        [(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=4
    )
    assert a.weight.tolist() == [[0, 2], [3, 4]]
    assert b.weight.tolist() == [[0, 0], [0, 5]]


def test_masks_scores_and_identity():
    m = Linear(2, 1)
    prune.identity(m, "bias")
    assert m.bias_mask.tolist() == [1]
    prune.custom_from_mask(m, "weight", F.tensor([[0.0, 1.0]]))
    assert m.weight[0, 0] == 0
    other = Linear(2, 1)
    prune.l1_unstructured(other, "weight", 1, importance_scores=F.tensor([[1.0, 0.0]]))
    assert other.weight_mask.tolist() == [[1, 0]]
    t = F.tensor([1.0, -2.0, 3.0])
    assert prune.L1Unstructured(1).prune(t).tolist() == [0, -2, 3]


@pytest.mark.parametrize(
    ("amount", "error"), [("a", TypeError), (-1, ValueError), (1.5, ValueError), (100, ValueError)]
)
def test_bad_amounts_are_refused_and_leave_the_module(amount, error):
    m = Linear(2, 2)
    with pytest.raises(error, match="amount"):
        prune.l1_unstructured(m, "weight", amount)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    assert isinstance(m.weight, nn.Parameter)


def test_removing_what_was_not_pruned_raises():
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(Linear(2, 2), "weight")
    with pytest.raises(ValueError, match="multidimensional"):
        prune.random_structured(Linear(2, 2), "bias", 1, 0)


# ---- averages of weights


def test_averaged_model_is_the_mean_of_what_it_saw():
    swa = F.optim.swa_utils
    m = Linear(2, 2)
    average = swa.AveragedModel(m)
    total = 0
    for k in range(4):
        with F.no_grad():
            m.weight.fill_(float(k))
        average.update_parameters(m)
        total += k
    assert F.allclose(average.module.weight, F.full((2, 2), total / 4))
    assert average.n_averaged == 4
    assert F.equal(average(F.ones(1, 2)), average.module(F.ones(1, 2)))
    assert "n_averaged" in average.state_dict()


def test_exponential_averages():
    swa = F.optim.swa_utils
    for options in (
        {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.5)},
        {"avg_fn": swa.get_ema_avg_fn(0.5)},
    ):
        m = Linear(1, 1)
        average = swa.AveragedModel(m, **options)
        for value in (0.0, 1.0, 2.0):
            with F.no_grad():
                m.weight.fill_(value)
            average.update_parameters(m)
        assert average.module.weight.item() == 1.25
    with pytest.raises(ValueError, match="decay"):
        swa.get_ema_multi_avg_fn(1.5)
    with pytest.raises(AssertionError, match="Only one"):
        swa.AveragedModel(Linear(1, 1), avg_fn=max, multi_avg_fn=max)


def test_buffers_are_copied_or_averaged():
    swa = F.optim.swa_utils
    for use_buffers, expected in ((False, 3.0), (True, 2.0)):
        m = Linear(1, 1)
        m.register_buffer("seen", F.zeros(1))
        average = swa.AveragedModel(m, use_buffers=use_buffers)
        for value in (1.0, 3.0):
            m.seen.fill_(value)
            average.update_parameters(m)
        assert average.module.seen.item() == expected
