"""DataParallel and its parts, which take any devices: here the host in several roles."""

import sys

import pytest

import facula
from facula import nn
from facula.nn.parallel import data_parallel, gather, parallel_apply, replicate, scatter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4, track_running_stats=False)
        self.tied = self.first
        self.register_buffer("shift", facula.ones(4))

    def forward(self, x, scale=1.0):
        return {"y": self.norm(self.tied(x)) * scale + self.shift, "mean": x.mean()}


def test_without_cuda_the_module_is_called():
    if facula.cuda.is_available():
        pytest.skip("there is CUDA")
    net = Net()
    model = nn.DataParallel(net)
    x = facula.randn(6, 3)
    assert model.device_ids == [] and model.module is net
    assert facula.equal(model(x, scale=2.0)["y"], net(x, scale=2.0)["y"])
    assert list(model.state_dict()) == [f"module.{name}" for name in net.state_dict()]


def test_shares_of_a_batch_on_devices_give_gradients_to_the_module():
    facula.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = facula.randn(7, 3)
    want = net(x)
    want.pow(2).sum().backward()
    grads = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    got = data_parallel(net, x, ["cpu", "cpu", "cpu"])
    assert facula.allclose(got, want)
    got.pow(2).sum().backward()
    for p, grad in zip(net.parameters(), grads, strict=True):
        assert facula.allclose(p.grad, grad, atol=1e-6)


def test_results_in_dicts_and_numbers_are_gathered():
    out = data_parallel(Net(), facula.randn(8, 3), ["cpu", "cpu"], module_kwargs={"scale": 2.0})
    assert out["y"].shape == (8, 4) and out["mean"].shape == (2,)


def test_replicas_keep_what_is_shared_and_may_be_detached():
    net = Net()
    one, two = replicate(net, ["cpu", "cpu"])
    assert one.tied is one.first and one.first.weight is not net.first.weight
    assert one.first.weight.grad_fn is not None and not list(one.parameters())
    assert one.shift is net.shift
    (alone,) = replicate(net, ["cpu"], detach=True)
    assert not alone.first.weight.requires_grad and isinstance(net.first.weight, nn.Parameter)
    assert two is not one


def test_scatter_goes_into_containers_and_gives_fewer_shares_of_few_samples():
    data = {"x": [facula.arange(4), ("a", None)], "n": 3}
    first, second = scatter(data, ["cpu", "cpu"])
    assert first["x"][0].tolist() == [0, 1] and second["x"][0].tolist() == [2, 3]
    assert first["x"][1] == ("a", None) and second["n"] == 3
    assert len(scatter((facula.arange(1),), ["cpu", "cpu"])) == 1
    with pytest.raises(ValueError, match="keys"):
        gather([{"a": facula.ones(1)}, {}], "cpu")


def test_an_exception_in_a_replica_is_raised_with_its_place():
    def fail(x):
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        parallel_apply([abs, fail], [facula.ones(1), facula.ones(1)], devices=["cpu", "cpu"])
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["in replica 1 on cpu"]


def test_grad_mode_reaches_the_threads():
    layer = nn.Linear(2, 2)
    with facula.no_grad():
        results = parallel_apply([layer, layer], [facula.ones(1, 2)] * 2)
    assert not any(r.requires_grad for r in results)
