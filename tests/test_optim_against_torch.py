"""Optimizers, schedulers and their state beside the real PyTorch, where it is installed."""

import io
import itertools
import warnings

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not IS_FACULA, reason="compares Facula with PyTorch"),
    pytest.mark.filterwarnings("ignore"),
]

STEPS = 100
SHAPES = ((3, 5), (37,), (), (2, 3, 4))
PRECISION = {"float32": 1e-6, "float64": 1e-13, "complex64": 1e-6}


def product(**options):
    keys, values = list(options), list(options.values())
    return [dict(zip(keys, choice, strict=True)) for choice in itertools.product(*values)]


TWO = (False, True)
DECAY = {"weight_decay": (0, 0.1), "maximize": TWO}
CASES = [
    *(
        ("SGD", {"lr": 0.05, **o})
        for o in product(momentum=(0, 0.9), nesterov=TWO, dampening=(0, 0.3), **DECAY)
        if not (o["nesterov"] and (o["momentum"] == 0 or o["dampening"]))
    ),
    *(
        (name, {"lr": 0.01, "betas": (0.8, 0.95), **o})
        for name in ("Adam", "AdamW")
        for o in product(amsgrad=TWO, **DECAY)
    ),
    ("Adam", {"betas": (0.3, 0.9)}),
    *(("Adamax", {"lr": 0.01, **o}) for o in product(**DECAY)),
    *(("NAdam", {"lr": 0.01, **o}) for o in product(decoupled_weight_decay=TWO, **DECAY)),
    *(
        ("RAdam", {"lr": 0.01, "betas": (0.9, 0.99), **o})
        for o in product(decoupled_weight_decay=TWO, **DECAY)
    ),
    *(
        ("Adagrad", {"lr": 0.05, "lr_decay": 0.01, "initial_accumulator_value": 0.1, **o})
        for o in product(**DECAY)
    ),
    *(("Adadelta", o) for o in product(**DECAY)),
    *(("RMSprop", {"lr": 0.005, **o}) for o in product(centered=TWO, momentum=(0, 0.9), **DECAY)),
    *(("ASGD", {"lr": 0.01, "t0": 20, **o}) for o in product(**DECAY)),
    *(("Rprop", {"lr": 0.01, **o}) for o in product(maximize=TWO)),
    *(("Adafactor", {"lr": 0.01, **o}) for o in product(**DECAY)),
]


def numbers(rng, shape, dtype):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if "complex" in dtype else values


def train(package, name, options, dtype, steps=STEPS, state=None, tensor_lr=False):
    """Parameters and optimizer after some steps on the same numbers."""
    rng = np.random.default_rng(0)

    def tensor(values):
        return package.tensor(np.asarray(values).tolist(), dtype=getattr(package, dtype))

    params = [package.nn.Parameter(tensor(numbers(rng, s, dtype))) for s in SHAPES]
    if tensor_lr:
        options = {**options, "lr": package.tensor(options.get("lr", 0.01))}
    optimizer = getattr(package.optim, name)(params, **options)
    if state is not None:
        optimizer.load_state_dict(state)
    for _ in range(steps):
        for p in params:
            p.grad = tensor(numbers(rng, tuple(p.shape), dtype))
        optimizer.step()
    return params, optimizer


def assert_near(ours, theirs, precision):
    a, b = ours.detach().numpy(), theirs.detach().numpy()
    assert np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0) <= precision


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("dtype", PRECISION)
def test_the_same_updates_and_the_same_state(name, options, dtype):
    if name == "Adafactor" and "complex" in dtype:
        pytest.skip("Adafactor takes real parameters")
    ours, optimizer = train(F, name, options, dtype)
    theirs, other = train(torch, name, options, dtype)
    for a, b in zip(ours, theirs, strict=True):
        assert_near(a, b, PRECISION[dtype])
    state, expected = optimizer.state_dict(), other.state_dict()
    assert repr(optimizer) == repr(other)
    assert str(state["param_groups"]) == str(expected["param_groups"])
    for number, values in expected["state"].items():
        assert list(state["state"][number]) == list(values)
        for key, value in values.items():
            mine = state["state"][number][key]
            assert str(mine.dtype).partition(".")[2] == str(value.dtype).partition(".")[2]
            assert_near(mine, value, PRECISION[dtype])


BY_NAME = list({name: (name, options) for name, options in reversed(CASES)}.values())


@pytest.mark.parametrize(("name", "options"), BY_NAME, ids=str)
def test_the_same_updates_with_the_learning_rate_as_a_tensor(name, options):
    ours, _ = train(F, name, options, "float32", tensor_lr=True)
    theirs, _ = train(torch, name, options, "float32", tensor_lr=True)
    for a, b in zip(ours, theirs, strict=True):
        assert_near(a, b, 2e-6)


def moved(value, package):
    """State with the tensors of the other package."""
    if isinstance(value, dict):
        return {k: moved(v, package) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, package) for v in value)
    if hasattr(value, "numpy"):
        return package.tensor(
            value.detach().tolist(), dtype=getattr(package, str(value.dtype).partition(".")[2])
        )
    return value


@pytest.mark.parametrize(("name", "options"), BY_NAME, ids=str)
def test_each_continues_from_the_others_state(name, options):
    _, optimizer = train(F, name, options, "float32", steps=5)
    _, other = train(torch, name, options, "float32", steps=5)
    theirs, _ = train(torch, name, options, "float32", 5, moved(optimizer.state_dict(), torch))
    ours, _ = train(F, name, options, "float32", 5, moved(other.state_dict(), F))
    for a, b in zip(ours, theirs, strict=True):
        assert_near(a, b, 1e-6)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_takes_the_same_path(search):
    def run(package):
        x = package.nn.Parameter(package.tensor([-1.2, 1.0, 0.5], dtype=package.float64))
        y = package.nn.Parameter(package.tensor([[2.0]], dtype=package.float64))
        optimizer = package.optim.LBFGS(
            [x, y], lr=0.5, line_search_fn=search, history_size=5, max_iter=8
        )
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = (x[1] - x[0]) ** 2 + (x[2] * y[0, 0] - 3) ** 2 + 0.1 * (y**4).sum()
            if search:
                loss = loss + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            losses.append(loss.item())
            return loss

        for _ in range(4):
            optimizer.step(closure)
        state = optimizer.state_dict()["state"][0]
        return losses, sorted(state), state["func_evals"], state["n_iter"]

    ours, theirs = run(F), run(torch)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6, atol=1e-9)
    assert ours[1:] == theirs[1:]


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}])
def test_muon_takes_the_same_path(options):
    def run(package):
        rng = np.random.default_rng(0)
        params = [
            package.nn.Parameter(package.tensor(rng.normal(size=s).tolist()))
            for s in ((4, 6), (6, 3))
        ]
        optimizer = package.optim.Muon(params, lr=0.02, **options)
        for _ in range(STEPS):
            for p in params:
                p.grad = package.tensor(rng.normal(size=tuple(p.shape)).tolist())
            optimizer.step()
        return params

    for a, b in zip(run(F), run(torch), strict=True):
        assert_near(a, b, 1e-2)  # the iteration itself runs in bfloat16


# ---- schedulers


def resumed(make):
    def with_initial_rates(s, optimizer):
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        return make(s, optimizer)

    return with_initial_rates


SCHEDULERS = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 3, 8, 20], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o),
    "LinearLR": lambda s, o: s.LinearLR(o, total_iters=7),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 5)], [4, 12]
    ),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 13, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=2, cooldown=1),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(
        o, mode="max", threshold_mode="abs", patience=2, min_lr=[0.01, 0.02]
    ),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 5, 7),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, mode="exp_range", gamma=0.98),
    "CyclicLR function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 5, scale_fn=lambda x: 0.9**x, scale_mode="iterations"
    ),
    "WarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.001),
    "WarmRestarts equal": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.3, 85),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(
        o, [0.3, 0.1], 85, three_phase=True, anneal_strategy="linear"
    ),
    "CosineAnnealingLR resumed": resumed(lambda s, o: s.CosineAnnealingLR(o, 7, last_epoch=5)),
    "LinearLR resumed": resumed(lambda s, o: s.LinearLR(o, last_epoch=2)),
}


def rates(package, make, name, by_epoch, tensor_lr):
    params = [package.nn.Parameter(package.ones(1)) for _ in range(2)]
    number = package.tensor if tensor_lr else float
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": number(0.3)}]
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(package.optim, name)(groups, lr=number(0.1), **options)
    module = package.optim.lr_scheduler
    scheduler = make(module, optimizer)
    seen = []
    for i in range(40):
        seen.append(
            (
                [float(group["lr"]) for group in optimizer.param_groups],
                [group.get("momentum", group.get("betas")) for group in optimizer.param_groups],
                [float(rate) for rate in scheduler.get_last_lr()],
            )
        )
        optimizer.step()
        if isinstance(scheduler, module.ReduceLROnPlateau):
            scheduler.step((3, 2, 1, 1, 1, 1, 0.5)[i % 7] + (i > 20))
        elif by_epoch:
            scheduler.step(2 * i)
        else:
            scheduler.step()
    return seen, sorted(scheduler.state_dict())


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("by_epoch", TWO)
@pytest.mark.parametrize("tensor_lr", TWO)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedulers_give_the_same_rates_bit_for_bit(scheduler, name, by_epoch, tensor_lr):
    make = SCHEDULERS[scheduler]
    if by_epoch and scheduler in ("SequentialLR", "ChainedScheduler"):
        pytest.skip("takes no epoch")
    assert rates(F, make, name, by_epoch, tensor_lr) == rates(
        torch, make, name, by_epoch, tensor_lr
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_schedulers_continue_from_the_others_state(scheduler):
    def run(package, steps, state=None):
        p = package.nn.Parameter(package.ones(1))
        optimizer = package.optim.SGD([{"params": [p]}, {"params": []}], lr=0.1, momentum=0.9)
        module = package.optim.lr_scheduler
        made = SCHEDULERS[scheduler](module, optimizer)
        if state is not None:
            made.load_state_dict(state[0])
            optimizer.load_state_dict(state[1])
        seen = []
        for _ in range(steps):
            optimizer.step()
            made.step(*((1.0,) if isinstance(made, module.ReduceLROnPlateau) else ()))
            seen.append(list(made.get_last_lr()))
        return seen, (made.state_dict(), optimizer.state_dict())

    whole, _ = run(torch, 12)
    _, state = run(torch, 6)
    assert run(F, 6, state)[0] == whole[6:]
    _, state = run(F, 6)
    assert run(torch, 6, state)[0] == whole[6:]


@pytest.mark.parametrize(
    "options", [{"anneal_epochs": 6}, {"anneal_epochs": 0, "anneal_strategy": "linear"}]
)
def test_swalr_gives_the_same_rates(options):
    def run(package):
        p = package.nn.Parameter(package.ones(1))
        optimizer = package.optim.SGD([p], lr=0.1)
        scheduler = package.optim.swa_utils.SWALR(optimizer, 0.05, **options)
        seen = []
        for _ in range(12):
            optimizer.step()
            scheduler.step()
            seen += scheduler.get_last_lr()
        return seen, sorted(set(scheduler.state_dict()) - {"anneal_func"})

    assert run(F) == run(torch)


@pytest.mark.parametrize(
    "make",
    [
        lambda package, o: package.optim.swa_utils.SWALR(o, 0.05),
        lambda package, o: package.optim.swa_utils.SWALR(o, 0.05, anneal_strategy="linear"),
        *(
            lambda package, o, mode=mode: package.optim.lr_scheduler.CyclicLR(
                o, 0.01, 0.1, 3, mode=mode, gamma=0.9
            )
            for mode in ("triangular", "triangular2", "exp_range")
        ),
        lambda package, o: package.optim.lr_scheduler.OneCycleLR(o, 0.3, 20),
    ],
)
@pytest.mark.parametrize(("package", "other"), [(F, torch), (torch, F)], ids=["out", "in"])
def test_schedulers_that_are_saved_whole_continue_in_the_other_package(make, package, other):
    p = package.nn.Parameter(package.ones(1))
    optimizer = package.optim.SGD([p], lr=0.1, momentum=0.9)
    saved = make(package, optimizer)
    file = io.BytesIO()
    package.save((optimizer, saved), file)
    file.seek(0)
    _, loaded = other.load(file, weights_only=False)
    assert isinstance(loaded.optimizer, other.optim.SGD)
    for _ in range(10):
        saved.step()
        loaded.step()
        assert loaded.get_last_lr() == saved.get_last_lr()


def test_the_warning_about_the_order_of_steps():
    for package in (F, torch):
        optimizer = package.optim.SGD([package.nn.Parameter(package.ones(1))], lr=0.1)
        scheduler = package.optim.lr_scheduler.StepLR(optimizer, 1)
        with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
            scheduler.step()
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scheduler.step()
