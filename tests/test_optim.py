"""Optimizers: groups, state, hooks, state dicts, and what a step does to tensors of every kind."""

import copy
import pickle
import warnings
from importlib import import_module

import numpy as np
import pytest
from package_under_test import F

facula_only = pytest.mark.facula_only

ALL = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("Adam", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adadelta", {"lr": 1.0}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
    ("Rprop", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1}),
]
RULES = [case for case in ALL if case[0] != "Adafactor"]
by_name = pytest.mark.parametrize(("name", "options"), ALL, ids=[name for name, _ in ALL])
by_rule = pytest.mark.parametrize(("name", "options"), RULES, ids=[name for name, _ in RULES])


def make(name, params, **options):
    return getattr(F.optim, name)(params, **options)


def parameter(*values, dtype=None):
    return F.nn.Parameter(F.tensor(values, dtype=dtype or F.float32))


# ---- what a step computes


def test_sgd_step_is_the_textbook_formula():
    p = parameter(1.0, -2.0)
    p.grad = F.tensor([0.5, 1.0])
    make("SGD", [p], lr=0.1).step()
    assert p.detach().tolist() == pytest.approx([0.95, -2.1])


def test_adam_follows_its_recurrence():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5)
    p = F.nn.Parameter(F.tensor(x.tolist(), dtype=F.float64))
    optimizer = make("Adam", [p], lr=0.05, betas=(0.8, 0.9), weight_decay=0.01)
    m, v = np.zeros(5), np.zeros(5)
    for t in range(1, 30):
        g = rng.normal(size=5)
        p.grad = F.tensor(g.tolist(), dtype=F.float64)
        optimizer.step()
        g = g + 0.01 * x
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        x = x - 0.05 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-8)
    np.testing.assert_allclose(p.detach().numpy(), x, rtol=1e-12)


@by_name
def test_every_optimizer_finds_the_minimum_of_a_parabola(name, options):
    p = F.nn.Parameter(F.tensor([[2.0, -3.0], [1.0, 4.0]]))
    optimizer = make(name, [p], **options)
    first = None
    for _ in range(150):
        optimizer.zero_grad()
        loss = (p**2).sum()
        first = loss.item() if first is None else first
        loss.backward()
        optimizer.step()
    assert (p**2).sum().item() < (0.9 if name == "Adadelta" else 0.2) * first


@by_rule
def test_maximize_goes_the_other_way(name, options):
    p, q = parameter(1.0, 2.0), parameter(1.0, 2.0)
    for _ in range(3):
        p.grad, q.grad = F.tensor([0.3, -0.4]), F.tensor([-0.3, 0.4])
    a = make(name, [p], **options)
    b = make(name, [q], **options, maximize=True)
    for _ in range(3):
        a.step()
        b.step()
    assert F.equal(p, q)


@by_rule
def test_parameters_without_gradient_stay_and_get_no_step(name, options):
    p, q = parameter(1.0), parameter(2.0)
    p.grad = F.ones(1)
    optimizer = make(name, [p, q], **options)
    optimizer.step()
    assert q.item() == 2.0
    assert p.item() != 1.0
    assert "step" not in optimizer.state[q] or optimizer.state[q]["step"] == 0


def layouts(values, dtype):
    """The same numbers in memory in several ways."""
    dense = F.tensor(values, dtype=dtype)
    yield dense
    yield dense.t().contiguous().t()
    yield F.stack([dense, dense], -1)[..., 0]
    yield F.zeros(8, dtype=dtype)[2:].view(2, 3).copy_(dense)


@by_rule
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_does_not_depend_on_strides(name, options, dtype):
    dtype = getattr(F, dtype)
    values = [[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]]
    grads = [[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]]
    results = []
    for p in layouts(values, dtype):
        for g in layouts(grads, dtype):
            q = F.nn.Parameter(p.clone(memory_format=F.preserve_format))
            q.data = p.clone() if p.is_contiguous() else p.detach().clone().t().contiguous().t()
            q.grad = g
            optimizer = make(name, [q], **options)
            for _ in range(3):
                optimizer.step()
            results.append(q.detach().clone())
    for r in results[1:]:
        assert F.allclose(r, results[0], rtol=1e-6, atol=0)


@by_rule
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_parameters_follow_the_float32_ones(name, options, dtype):
    values = [float(v) for v in F.linspace(-1, 1, 1100)]  # more than one tile
    half = F.nn.Parameter(F.tensor(values, dtype=getattr(F, dtype)))
    full = F.nn.Parameter(half.detach().float())
    options = {**options, "lr": 0.01}
    a, b = make(name, [half], **options), make(name, [full], **options)
    for k in range(3):
        g = (F.tensor(values[k:] + values[:k]) + 1.5).to(half.dtype)
        half.grad, full.grad = g, g.float()
        a.step()
        b.step()
    assert half.dtype == getattr(F, dtype)
    assert (half.detach().float() - full.detach()).abs().max() < 0.05


@by_rule
def test_many_tensors_and_one_large_tensor_are_stepped_alike(name, options):
    n = 100_000  # enough for several threads
    values, grads = F.linspace(-2, 2, n), F.linspace(1, -1, n)
    whole = F.nn.Parameter(values.clone())
    parts = [F.nn.Parameter(v.clone()) for v in values.split(7_919)]
    a, b = make(name, [whole], **options), make(name, parts, **options)
    for _ in range(2):
        whole.grad = grads.clone()
        for p, g in zip(parts, grads.split(7_919), strict=True):
            p.grad = g.clone()
        a.step()
        b.step()
    assert F.equal(whole.detach(), F.cat([p.detach() for p in parts]))


def test_a_parameter_listed_twice_is_stepped_twice():
    p = F.nn.Parameter(F.zeros(50_000))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = make("SGD", [p, p], lr=0.5)
    p.grad = F.ones(50_000)
    optimizer.step()
    assert F.equal(p.detach(), F.full((50_000,), -1.0))


def test_empty_parameters_are_stepped():
    p = F.nn.Parameter(F.empty(0, 3))
    p.grad = F.empty(0, 3)
    optimizer = make("Adam", [p])
    optimizer.step()
    assert optimizer.state[p]["step"] == 1


def test_lr_as_a_tensor_is_read_at_each_step():
    lr = F.tensor(0.5)
    p = parameter(1.0)
    p.grad = F.ones(1)
    optimizer = make("SGD", [p], lr=lr)
    optimizer.step()
    lr.fill_(0.25)
    optimizer.step()
    assert p.item() == 0.25


def test_conjugate_gradients_of_complex_parameters_are_resolved():
    p = F.nn.Parameter(F.tensor([1 + 2j]))
    p.grad = F.tensor([1 + 1j]).conj()
    make("SGD", [p], lr=1.0).step()
    assert p.tolist() == [3j]


def test_all_functions_step_as_their_classes_do():
    functional = import_module(f"{F.__name__}.optim._functional")
    cases = {
        "adamax": (["exp_avg", "exp_inf"], {"eps": 1e-8, "beta1": 0.9, "beta2": 0.999}),
        "adadelta": (
            ["square_avg", "acc_delta"],
            {"rho": 0.9, "eps": 1e-6, "maximize": False},
        ),
        "radam": (["exp_avg", "exp_avg_sq"], {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}),
        "adagrad": (["sum"], {"lr_decay": 0, "eps": 1e-10, "maximize": False}),
    }
    classes = {"adamax": "Adamax", "adadelta": "Adadelta", "radam": "RAdam", "adagrad": "Adagrad"}
    for name, (states, options) in cases.items():
        p, q = parameter(1.0, 2.0), parameter(1.0, 2.0)
        q.grad = F.tensor([0.1, -0.2])
        make(classes[name], [q], lr=0.1).step()
        with F.no_grad():
            lists = [[F.zeros(2)] for _ in states]
            step = [F.tensor(0.0)]
            getattr(functional, name)(
                [p], [q.grad], *lists, step, lr=0.1, weight_decay=0, **options
            )
        assert F.equal(p, q), name
        assert step[0].item() == 1


def test_sgd_function_makes_missing_buffers():
    sgd = import_module(f"{F.__name__}.optim.sgd").sgd
    p, q, buffers = parameter(1.0), parameter(1.0), [None, F.ones(1)]
    options = {"weight_decay": 0, "momentum": 0.5, "lr": 1.0, "dampening": 0.5}
    with F.no_grad():
        sgd([p, q], [F.ones(1), F.ones(1)], buffers, nesterov=False, maximize=False, **options)
    assert [b.item() for b in buffers] == [1.0, 1.0]
    assert (p.item(), q.item()) == (0.0, 0.0)


def test_float64_default_dtype_counts_steps_in_float64(keep_default_dtype):
    F.set_default_dtype(F.float64)
    p = F.nn.Parameter(F.ones(1))
    p.grad = F.ones(1)
    optimizer = make("Adam", [p])
    optimizer.step()
    assert optimizer.state[p]["step"].dtype == F.float64


# ---- autograd


def test_a_step_counts_as_a_write():
    p = parameter(1.0, 2.0)
    loss = (p * p).sum()
    p.grad = F.ones(2)
    make("SGD", [p], lr=0.1).step()
    assert p._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@by_rule
def test_differentiable_steps_have_gradients(name, options):
    start = F.tensor([0.7, -0.8], dtype=F.float64, requires_grad=True)
    grad = F.tensor([0.3, -0.2], dtype=F.float64, requires_grad=True)
    p = start.clone()
    p.grad = grad
    make(name, [p], **options, differentiable=True).step()
    p.sum().backward()
    assert F.equal(start.grad, F.ones(2, dtype=F.float64)) or name in ("AdamW", "ASGD")
    assert p.grad_fn is not None


def test_differentiable_sgd_gives_the_gradient_of_the_learning_rate():
    lr = F.tensor(0.5, requires_grad=True)
    p = F.tensor([1.0, 2.0], requires_grad=True).clone()
    p.grad = F.tensor([3.0, 4.0])
    make("SGD", [p], lr=lr, differentiable=True).step()
    p.sum().backward()
    assert lr.grad.item() == -7.0


def test_differentiable_step_passes_gradcheck():
    def step(p, g):
        q = p.clone()
        q.grad = g
        optimizer = make("Adam", [q], lr=0.1, weight_decay=0.1, differentiable=True)
        optimizer.step()
        return q

    p = F.tensor([0.4, -0.6], dtype=F.float64, requires_grad=True)
    g = F.tensor([0.3, 0.9], dtype=F.float64, requires_grad=True)
    assert F.autograd.gradcheck(step, (p, g))


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    p = parameter(3.0)
    optimizer = make("SGD", [p], lr=0.1)

    def closure():
        assert F.is_grad_enabled()
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    with F.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 9.0
    assert p.item() == pytest.approx(2.4)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    p = parameter(1.0)
    (2 * p).sum().backward()
    grad = p.grad
    make("SGD", [p], lr=0.1).zero_grad(set_to_none)
    if set_to_none:
        assert p.grad is None
    else:
        assert p.grad is grad
        assert grad.item() == 0


# ---- groups


def test_groups_have_their_own_options():
    p, q = parameter(1.0), parameter(1.0)
    p.grad, q.grad = F.ones(1), F.ones(1)
    make("SGD", [{"params": [p]}, {"params": q, "lr": 0.5}], lr=0.25).step()
    assert (p.item(), q.item()) == (0.75, 0.5)


def test_named_parameters_are_kept_by_name():
    p, q = parameter(1.0), parameter(1.0)
    optimizer = make("SGD", [("first", p), ("second", q)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["first", "second"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [parameter(1.0)]})


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        (lambda: F.ones(1), TypeError, "iterable of Tensors or dicts"),
        (list, ValueError, "empty parameter list"),
        (lambda: [1], TypeError, "can only optimize Tensors"),
        (lambda: [parameter(1.0) * 2], ValueError, "non-leaf"),
        (lambda: [{"params": {parameter(1.0)}}], TypeError, "ordered collections"),
        (lambda: [("a", parameter(1.0)), parameter(1.0)], ValueError, "names are missing"),
    ],
)
def test_unusable_parameters_are_refused(params, error, text):
    with pytest.raises(error, match=text):
        make("SGD", params(), lr=0.1)


def test_a_parameter_belongs_to_one_group():
    p = parameter(1.0)
    with pytest.raises(ValueError, match="more than one parameter group"):
        make("SGD", [{"params": [p]}, {"params": [p]}], lr=0.1)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("SGD", {"lr": -1}, "Invalid learning rate: -1"),
        ("SGD", {"nesterov": True}, "Nesterov momentum requires"),
        ("SGD", {"momentum": -1}, "Invalid momentum value: -1"),
        ("SGD", {"lr": F.ones(2)}, "Tensor lr must be 1-element"),
        ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        ("Adam", {"eps": -1}, "Invalid epsilon value: -1"),
        ("AdamW", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ("Adadelta", {"rho": 2}, "Invalid rho value: 2"),
        ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
        ("Rprop", {"etas": (1.0, 0.5)}, "Invalid eta values: 1.0, 0.5"),
        ("Muon", {"momentum": -1}, "momentum should be >= 0 but is: -1"),
        ("Adafactor", {"d": 0.5}, "threshold d should be >= 1"),
    ],
)
def test_bad_options_are_refused(name, options, text):
    with pytest.raises(ValueError, match=text):
        make(name, [F.nn.Parameter(F.ones(1, 1))], **options)


def test_fused_excludes_differentiable_and_foreach():
    for other in ("differentiable", "foreach"):
        with pytest.raises(RuntimeError, match="fused"):
            make("Adam", [parameter(1.0)], fused=True, **{other: True})


def test_capturable_needs_a_cuda_device():
    p = parameter(1.0)
    p.grad = F.ones(1)
    with pytest.raises(AssertionError, match="supported devices"):
        make("Adam", [p], capturable=True).step()


def test_repr_lists_the_options_of_each_group():
    p, q = parameter(1.0), parameter(1.0)
    optimizer = make("SGD", [{"params": [p]}, {"params": [q], "lr": 1}], lr=0.1)
    lines = repr(optimizer).split("\n")
    assert lines[:4] == [
        "SGD (",
        "Parameter Group 0",
        "    dampening: 0",
        "    differentiable: False",
    ]
    assert "    lr: 1" in lines
    assert lines[-1] == ")"


# ---- state


@by_name
def test_state_dict_round_trip_continues_the_same_way(name, options):
    p = F.nn.Parameter(F.tensor([[1.0, 2.0], [3.0, 4.0]]))
    q = F.nn.Parameter(p.detach().clone())
    a = make(name, [p], **options)
    for k in range(5):
        p.grad = F.full((2, 2), 0.1 * (k + 1))
        a.step()
    q.data.copy_(p.data)
    b = make(name, [q], **options)
    b.load_state_dict(copy.deepcopy(a.state_dict()))
    for _ in range(3):
        p.grad, q.grad = F.full((2, 2), -0.3), F.full((2, 2), -0.3)
        a.step()
        b.step()
    assert F.equal(p, q)


def test_state_dict_numbers_parameters_through_the_groups():
    params = [parameter(1.0) for _ in range(3)]
    optimizer = make("Adam", [{"params": params[:2]}, {"params": params[2:]}])
    for p in params:
        p.grad = F.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0, 1], [2]]
    assert list(state["state"]) == [0, 1, 2]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["state"][0]["exp_avg"] is optimizer.state[params[0]]["exp_avg"]


def test_loaded_state_takes_the_dtype_of_the_parameter_but_steps_stay():
    p = parameter(1.0)
    p.grad = F.ones(1)
    a = make("Adam", [p])
    a.step()
    q = parameter(1.0, dtype=F.float64)
    b = make("Adam", [q])
    b.load_state_dict(a.state_dict())
    assert b.state[q]["exp_avg"].dtype == F.float64
    assert b.state[q]["step"].dtype == F.float32


def test_state_dicts_of_other_sizes_are_refused():
    one = make("SGD", [parameter(1.0)], lr=0.1)
    two = make("SGD", [parameter(1.0), parameter(2.0)], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size"):
        two.load_state_dict(one.state_dict())
    two.add_param_group({"params": parameter(3.0)})
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())


def test_steps_saved_as_numbers_become_tensors():
    p = parameter(1.0)
    p.grad = F.ones(1)
    optimizer = make("Adam", [p])
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["step"] = 7
    optimizer.load_state_dict(state)
    assert isinstance(optimizer.state[p]["step"], F.Tensor)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 8


def test_sparse_adam_steps_with_a_state_dict_of_the_time_before_maximize():
    w = F.nn.Parameter(F.ones(3, 2))
    optimizer = F.optim.SparseAdam([w], lr=0.1)
    state = optimizer.state_dict()
    del state["param_groups"][0]["maximize"]
    optimizer.load_state_dict(state)
    w.grad = F.sparse_coo_tensor([[1]], F.ones(1, 2), (3, 2))
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [[1, 1], [0.9, 0.9], [1, 1]], rtol=1e-6)


def test_a_fused_step_on_the_host_may_be_called_capturable():
    w = parameter(1.0)
    optimizer = F.optim.Adam([w], lr=0.1, fused=True, capturable=True)
    w.grad = F.ones(1)
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [0.9], rtol=1e-6)


def test_pickle_and_deepcopy_keep_state():
    p = parameter(1.0)
    p.grad = F.ones(1)
    optimizer = make("Adam", [p], lr=0.1)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q = other.param_groups[0]["params"][0]
        assert q is not p
        assert other.state[q]["step"].item() == 1
        q.grad = F.ones(1)
        other.step()
        assert other.state[q]["step"].item() == 2
    assert optimizer.state[p]["step"].item() == 1


@facula_only
def test_state_of_another_shape_is_refused_before_anything_is_written():
    p, q = parameter(1.0), parameter(1.0, 2.0)
    p.grad, q.grad = F.ones(1), F.ones(2)
    optimizer = make("Adam", [p, q])
    optimizer.step()
    before = p.item()
    optimizer.state[q]["exp_avg"] = F.zeros(3)
    with pytest.raises(RuntimeError, match=r"Adam.step\(\).*shape \[3\].*\[2\]"):
        optimizer.step()
    assert p.item() == before
    assert optimizer.state[p]["step"].item() == 1


def test_overlapping_parameters_are_refused():
    p = F.nn.Parameter(F.ones(1)).detach().expand(3).requires_grad_()
    p.grad = F.ones(3)
    optimizer = make("SGD", [p], lr=0.1)
    with pytest.raises(RuntimeError, match=r"single memory location|overlap"):
        optimizer.step()


# ---- hooks


def test_step_hooks_run_in_order_and_may_change_arguments():
    seen = []
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    module = import_module(f"{F.__name__}.optim.optimizer")
    handles = [
        optimizer.register_step_post_hook(lambda o, a, k: seen.append("post")),
        optimizer.register_step_pre_hook(lambda o, a, k: seen.append("pre")),
        module.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("global pre")),
        module.register_optimizer_step_post_hook(lambda o, a, k: seen.append("global post")),
    ]
    optimizer.step()
    assert seen == ["global pre", "pre", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4

    optimizer.register_step_pre_hook(lambda o, a, k: ((a[0], lambda: 5.0), k))
    assert optimizer.step() == 5.0


def test_a_pre_hook_must_return_arguments():
    optimizer = make("SGD", [parameter(1.0)], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_state_dict_hooks():
    seen = []
    optimizer = make("SGD", [parameter(1.0)], lr=0.1)
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append(s["extra"]))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == ["pre", 1, "loaded"]


def test_hooks_can_be_put_in_front():
    seen = []
    optimizer = make("SGD", [parameter(1.0)], lr=0.1)
    optimizer.register_state_dict_pre_hook(lambda o: seen.append(1))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append(2), prepend=True)
    optimizer.state_dict()
    assert seen == [2, 1]


@facula_only
def test_profilers_see_steps_by_name():
    p = parameter(1.0)
    p.grad = F.ones(1)
    optimizer = make("SGD", [p], lr=0.1)
    with F.autograd.profiler.profile() as profile:
        optimizer.step()
        optimizer.zero_grad()
    names = [event.name for event in profile.function_events]
    assert "Optimizer.step#SGD.step" in names
    assert "Optimizer.zero_grad#SGD.zero_grad" in names


def test_subclasses_may_define_their_own_step():
    class Descent(F.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @F.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    p = parameter(1.0)
    p.grad = F.ones(1)
    seen = []
    optimizer = Descent([p], 0.5)
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(1))
    optimizer.step()
    assert (p.item(), seen) == (0.5, [1])


# ---- single optimizers


def test_lbfgs_with_strong_wolfe_solves_rosenbrock():
    p = F.nn.Parameter(F.tensor([-1.2, 1.0], dtype=F.float64))
    optimizer = F.optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=50)

    def closure():
        optimizer.zero_grad()
        loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert F.allclose(p.detach(), F.ones(2, dtype=F.float64), atol=1e-4)


def test_lbfgs_searches_lines_as_finely_with_a_wide_tolerance_change():
    p = F.nn.Parameter(F.tensor([-1.5, 2.0], dtype=F.float64))
    optimizer = F.optim.LBFGS([p], line_search_fn="strong_wolfe", tolerance_change=1.0)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    assert losses[:3] == pytest.approx([12.5, 288.824, 5.87581], rel=1e-5)


def test_lbfgs_takes_sparse_gradients():
    table = F.nn.Embedding.from_pretrained(F.ones(4, 2), freeze=False, sparse=True)
    optimizer = F.optim.LBFGS(table.parameters(), lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = table(F.tensor([1, 2, 1])).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    rows = table.weight.detach()
    assert rows[[0, 3]].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert rows[1:3].abs().max() < 1e-2


def test_sparse_adam_needs_dense_parameters():
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        F.optim.SparseAdam([F.eye(2).to_sparse()])


def test_lbfgs_has_one_group():
    with pytest.raises(ValueError, match="per-parameter options"):
        F.optim.LBFGS([{"params": [parameter(1.0)]}, {"params": [parameter(1.0)]}])


def test_sparse_adam_refuses_dense_gradients():
    p = parameter(1.0)
    p.grad = F.ones(1)
    with pytest.raises(RuntimeError, match="dense gradients"):
        F.optim.SparseAdam([p]).step()


def test_muon_takes_matrices_only():
    with pytest.raises(ValueError, match="2D parameters"):
        F.optim.Muon([parameter(1.0)])


def test_muon_updates_are_nearly_orthogonal():
    F.manual_seed(0)
    p = F.nn.Parameter(F.zeros(4, 6))
    p.grad = F.randn(4, 6)
    F.optim.Muon([p], lr=1.0, weight_decay=0, nesterov=False).step()
    singular = F.linalg.svdvals(p.detach())
    assert singular.max() < 1.3
    assert singular.min() > 0.4


def test_functions_beside_the_classes_do_the_same():
    adam = import_module(f"{F.__name__}.optim.adam")
    p, q = parameter(1.0, 2.0), parameter(1.0, 2.0)
    q.grad = F.tensor([0.1, -0.2])
    optimizer = make("Adam", [q], lr=0.1)
    m, v, step = F.zeros(2), F.zeros(2), F.tensor(0.0)
    for _ in range(3):
        optimizer.step()
        with F.no_grad():
            adam.adam(
                [p],
                [q.grad],
                [m],
                [v],
                [],
                [step],
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=0.1,
                weight_decay=0,
                eps=1e-8,
                maximize=False,
            )
    assert F.equal(p, q)


# ---- the warning about gradients that are applied twice


@pytest.fixture
def reuse_warning():
    before = F.optim.set_gradient_reuse_warning(True)
    yield
    F.optim.set_gradient_reuse_warning(before)


def train(p, optimizer, steps, clear):
    for _ in range(steps):
        clear()
        (p * 2).sum().backward()
        optimizer.step()


@facula_only
def test_a_loop_without_zero_grad_warns_once(reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with pytest.warns(UserWarning, match="zero_grad") as caught:
        train(p, optimizer, 5, lambda: None)
    assert len(caught) == 1


@facula_only
def test_the_warning_can_be_switched_off(reuse_warning):
    F.optim.set_gradient_reuse_warning(False)
    p = parameter(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(p, make("SGD", [p], lr=0.1), 3, lambda: None)


@facula_only
@pytest.mark.parametrize("way", ["none", "zeros", "assign", "zero_", "data.zero_"])
def test_clearing_gradients_in_any_way_does_not_warn(way, reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)

    def clear():
        if p.grad is None:
            return
        if way == "none":
            optimizer.zero_grad()
        elif way == "zeros":
            optimizer.zero_grad(set_to_none=False)
        elif way == "assign":
            p.grad = None
        elif way == "zero_":
            p.grad.zero_()
        else:
            p.grad.data.zero_()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(p, optimizer, 4, clear)


@facula_only
def test_accumulating_over_several_batches_does_not_warn(reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(4):
                (p * 2).sum().backward()
            optimizer.step()


def clear_by_hand(p, way):
    if p.grad is None:
        return
    if way == "zero_":
        p.grad.zero_()
    elif way == "data.zero_":
        p.grad.data.zero_()
    elif way == "numpy":
        p.grad.numpy().fill(0)
    else:
        module = F.nn.Module()
        module.p = p
        module.zero_grad(set_to_none=False)


BY_HAND = pytest.mark.parametrize("way", ["zero_", "data.zero_", "numpy", "module"])


@facula_only
@BY_HAND
@pytest.mark.parametrize("batches", [2, 3])
def test_accumulating_after_clearing_by_hand_does_not_warn(way, batches, reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            clear_by_hand(p, way)
            for _ in range(batches):
                (p * 2).sum().backward()
            optimizer.step()


@facula_only
@BY_HAND
def test_gradients_of_another_loss_that_are_cleared_by_hand_do_not_warn(way, reuse_warning):
    """The discriminator of a GAN whose generator takes two batches for each step."""
    d, g, head = parameter(1.0), parameter(1.0), parameter(1.0)
    optimizers = make("SGD", [d, head], lr=0.1), make("SGD", [g], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            clear_by_hand(d, way)
            clear_by_hand(head, way)  # only the generator's loss reaches it
            for _ in range(2):
                (d * 2).sum().backward()
            optimizers[0].step()
            clear_by_hand(g, way)
            for _ in range(2):
                (g * d * head).sum().backward()
            optimizers[1].step()


@facula_only
def test_gradients_that_the_program_lets_decay_do_not_warn(reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            if p.grad is not None:
                p.grad.mul_(0.9)
            (p * 2).sum().backward()
            optimizer.step()
    assert p.item() == pytest.approx(1 - 0.1 * (2 + 3.8 + 5.42), abs=1e-6)


@facula_only
def test_gradients_that_the_program_assigns_do_not_warn(reuse_warning):
    """The gradient of a prior, to which that of the data is added."""
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            p.grad = None
            p.grad = F.ones(1)  # where the former one lay
            (p * 2).sum().backward()
            optimizer.step()


@facula_only
def test_a_loop_over_several_batches_without_zero_grad_warns(reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with pytest.warns(UserWarning, match="zero_grad") as caught:
        for _ in range(3):
            for _ in range(3):
                (p * 2).sum().backward()
            F.nn.utils.clip_grad_norm_([p], 0.5)
            optimizer.step()
    assert len(caught) == 1


@facula_only
@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_of_another_loss_in_between_do_not_warn(set_to_none, reuse_warning):
    """As in a GAN: the generator's loss also reaches the discriminator, which is cleared later."""
    d, g = parameter(1.0), parameter(1.0)
    optimizers = make("SGD", [d], lr=0.1), make("SGD", [g], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimizers[0].zero_grad(set_to_none)
            (d * 2).sum().backward()
            optimizers[0].step()
            optimizers[1].zero_grad(set_to_none)
            (g * d).sum().backward()
            optimizers[1].step()


@facula_only
def test_the_warning_is_given_after_clipping_too(reuse_warning):
    p = parameter(1.0)
    optimizer = make("SGD", [p], lr=0.1)
    with pytest.warns(UserWarning, match="zero_grad"):
        for _ in range(3):
            (p * 2).sum().backward()
            F.nn.utils.clip_grad_norm_([p], 0.5)
            optimizer.step()


def test_state_dicts_of_schedulers_have_pytorchs_order():
    schedule = F.optim.lr_scheduler
    optimizer = F.optim.SGD([F.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    parts = [schedule.ConstantLR(optimizer), schedule.ExponentialLR(optimizer, 0.9)]
    assert list(schedule.SequentialLR(optimizer, parts, [1]).state_dict())[-1] == "_schedulers"
    assert list(schedule.LambdaLR(optimizer, lambda e: 1).state_dict())[-1] == "lr_lambdas"
    cycle = list(schedule.OneCycleLR(optimizer, 0.1, total_steps=4).state_dict())
    assert cycle.index("_schedule_phases") < cycle.index("_anneal_func_type")


def test_cyclic_lr_saves_its_own_scale_function_last():
    optimizer = F.optim.SGD([F.nn.Parameter(F.ones(1))], lr=0.1, momentum=0.9)
    scheduler = F.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0)
    assert list(scheduler.state_dict())[-1] == "_scale_fn_custom"


def test_schedulers_hold_the_functions_that_pickles_of_pytorch_name():
    optimizer = F.optim.SGD([F.nn.Parameter(F.ones(1))], lr=0.1, momentum=0.9)
    averaging, cyclic = F.optim.swa_utils.SWALR, F.optim.lr_scheduler.CyclicLR
    linear = averaging(optimizer, 0.1, anneal_strategy="linear")
    assert linear.anneal_func is averaging._linear_anneal
    assert linear.anneal_func(0.25) == 0.25
    linear.load_state_dict(averaging(optimizer, 0.1).state_dict())
    assert linear.anneal_func is averaging._cosine_anneal
    assert linear.anneal_func(1) == 1.0
    halving = cyclic(optimizer, 0.1, 1.0, mode="triangular2")
    assert halving._scale_fn_ref is cyclic._triangular2_scale_fn
    decaying = cyclic(optimizer, 0.1, 1.0, mode="exp_range", gamma=0.5)
    assert decaying._scale_fn_ref.func is cyclic._exp_range_scale_fn
    assert (halving.scale_fn(3), decaying.scale_fn(3)) == (0.25, 0.125)
    assert "anneal_func" not in linear.state_dict()
    assert "_scale_fn_ref" not in halving.state_dict()
    assert pickle.loads(pickle.dumps(decaying)).scale_fn(2) == 0.25
