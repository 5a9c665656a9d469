"""functional_call and stack_module_state: modules as functions of their parameters."""

import pytest
from package_under_test import F, assert_close, assert_equal, facula_module

state = facula_module("func.module_state")
nn = F.nn
functional_call, stack_module_state = state.functional_call, state.stack_module_state


class Linear(nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight = nn.Parameter(F.tensor(weight))
        self.bias = nn.Parameter(F.tensor(bias))

    def forward(self, x, scale=1.0):
        return x * self.weight * scale + self.bias


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Linear(2.0, 1.0)
        self.second = Linear(3.0, 0.5)
        self.register_buffer("count", F.tensor(0.0))

    def forward(self, x):
        self.count = self.count + 1
        return self.second(self.first(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(F.tensor(1.0))
        self.b = self.a

    def forward(self, x):
        return x + self.a + self.b


X = F.tensor([1.0, 2.0])


def test_calls_with_other_parameters_and_leaves_the_module():
    module = Linear(2.0, 1.0)
    before = dict(module.named_parameters())
    result = functional_call(module, {"weight": F.tensor(5.0), "bias": F.tensor(0.0)}, X)
    assert_equal(result, X * 5)
    assert all(module._parameters[k] is v for k, v in before.items())
    assert_equal(module(X), X * 2 + 1)


def test_parameters_that_are_not_given_stay():
    assert_equal(functional_call(Linear(2.0, 1.0), {"bias": F.tensor(7.0)}, X), X * 2 + 7)


def test_arguments_are_a_tuple_or_one_value():
    module = Linear(2.0, 1.0)
    assert_equal(functional_call(module, {}, (X, 3.0)), X * 6 + 1)
    assert_equal(functional_call(module, {}, (X,), {"scale": 3.0}), X * 6 + 1)
    assert_equal(functional_call(module, {}, kwargs={"x": X}), X * 2 + 1)


def test_submodules_by_dotted_names():
    result = functional_call(Network(), {"first.weight": F.tensor(10.0)}, X)
    assert_equal(result, (X * 10 + 1) * 3 + 0.5)


def test_several_dictionaries():
    module = Network()
    params = {k: v.detach() for k, v in module.named_parameters()}
    assert_equal(functional_call(module, (params, {"count": F.tensor(5.0)}), X), module(X))
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(module, (params, {"first.weight": F.tensor(1.0)}), X)


def test_assigned_buffers_arrive_in_the_dictionary():
    module = Network()
    buffers = {"count": F.tensor(5.0)}
    functional_call(module, buffers, X)
    assert_equal(buffers["count"], 6.0)
    assert_equal(module.count, 0.0)


def test_gradients_by_the_parameters():
    module = Network()

    def loss(params):
        return functional_call(module, params, X).sum()

    result = F.func.grad(loss)(dict(module.named_parameters()))
    assert_equal(result["first.weight"], (X * 3).sum())
    assert_equal(result["second.weight"], (X * 2 + 1).sum())
    assert_equal(result["second.bias"], 2.0)
    assert all(p.grad is None for _, p in module.named_parameters())


def test_tied_parameters_are_replaced_together():
    module = Tied()
    assert_equal(functional_call(module, {"a": F.tensor(0.0)}, X), X)
    assert_equal(functional_call(module, {"a": F.tensor(0.0)}, X, tie_weights=False), X + 1)
    same = F.tensor(2.0)
    assert_equal(functional_call(module, {"a": same, "b": same}, X), X + 4)
    with pytest.raises(ValueError, match="which are tied"):
        functional_call(module, {"a": F.tensor(0.0), "b": F.tensor(1.0)}, X)
    separate = {"a": F.tensor(0.0), "b": F.tensor(1.0)}
    assert_equal(functional_call(module, separate, X, tie_weights=False), X + 1)


def test_strict_names():
    module = Linear(2.0, 1.0)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        functional_call(module, {"weight": F.tensor(5.0)}, X, strict=True)
    complete = {"weight": F.tensor(5.0), "bias": F.tensor(0.0)}
    assert_equal(functional_call(module, complete, X, strict=True), X * 5)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'"):
        functional_call(module, {**complete, "other": F.tensor(5.0)}, X, strict=True)


def test_names_of_nothing_are_set_for_the_call():
    module = Linear(2.0, 1.0)
    functional_call(module, {"extra": F.tensor(5.0)}, X)
    assert not hasattr(module, "extra")
    with pytest.raises((AttributeError, KeyError)):
        functional_call(module, {"absent.weight": F.tensor(5.0)}, X)
    assert_equal(module(X), X * 2 + 1)


def test_the_module_is_restored_after_an_error():
    module = Linear(2.0, 1.0)
    own = module.weight
    with pytest.raises(TypeError):
        functional_call(module, {"weight": F.tensor(5.0)}, (X, X, X))
    assert module.weight is own


def test_arguments_that_do_not_fit():
    module = Linear(2.0, 1.0)
    with pytest.raises(ValueError, match="dict"):
        functional_call(module, 3, X)
    with pytest.raises(ValueError, match="dictionaries"):
        functional_call(module, ({}, 3), X)
    with pytest.raises(TypeError, match="not an instance"):
        functional_call(module, {"weight": 3.0}, X)
    assert_equal(module(X), X * 2 + 1)


# ---- stack_module_state


def test_stacked_state_runs_as_an_ensemble():
    models = [Linear(float(i), 1.0) for i in range(3)]
    params, buffers = stack_module_state(models)
    assert buffers == {}
    assert params["weight"].is_leaf and params["weight"].requires_grad
    assert_equal(params["weight"], [0.0, 1.0, 2.0])
    result = F.func.vmap(lambda p, x: functional_call(models[0], p, x), in_dims=(0, None))(
        params, X
    )
    assert_close(result, F.stack([m(X) for m in models]))
    result.sum().backward()
    assert_equal(params["weight"].grad, X.sum().expand(3))


def test_buffers_are_stacked_too():
    params, buffers = stack_module_state([Network(), Network()])
    assert tuple(buffers["count"].shape) == (2,) and not buffers["count"].requires_grad
    assert set(params) == {"first.weight", "first.bias", "second.weight", "second.bias"}


def test_models_that_differ_are_refused():
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([Linear(1.0, 1.0), Network()])
    evaluating = Linear(1.0, 1.0)
    evaluating.training = False
    with pytest.raises(RuntimeError, match="training/eval mode"):
        stack_module_state([Linear(1.0, 1.0), evaluating])
    frozen = Linear(1.0, 1.0)
    frozen.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"same \.requires_grad"):
        stack_module_state([Linear(1.0, 1.0), frozen])
