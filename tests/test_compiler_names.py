"""``jit``, ``compiler`` and seeds of devices answer as PyTorch does in plain Python."""

import copy
import warnings

import pytest
from package_under_test import F


def test_nothing_is_scripted_traced_or_compiled():
    assert not F.jit.is_scripting()
    assert not F.jit.is_tracing()
    assert not F.compiler.is_compiling()


@pytest.mark.parametrize(
    "mark",
    [
        F.jit.ignore,
        F.jit.ignore(),
        F.jit.unused,
        F.jit.export,
        F.jit.script_if_tracing,
        F.compiler.disable,
        F.compiler.disable(recursive=False),
    ],
)
def test_marked_functions_compute_what_they_did(mark):
    def double(x):
        return 2 * x

    assert mark(double)(3) == 6


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        ([1, 2], list[int], True),
        ([1, "a"], list[int], False),
        ({"a": 1.0}, dict[str, float], True),
        ({"a": 1}, dict[str, float], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        ((1,), tuple[int, str], False),
        (None, int | None, True),
        ("a", int | None, False),
        (1, (str, int), True),
    ],
)
def test_isinstance_looks_into_containers(value, kind, fits):
    assert F.jit.isinstance(value, kind) is fits


def test_seeding_absent_devices_leaves_the_stream_of_the_host():
    if F.cuda.is_available():
        pytest.skip("there is a device")
    F.manual_seed(3)
    want = F.rand(4)
    F.manual_seed(3)
    F.cuda.manual_seed_all(9)
    F.cuda.manual_seed(9)
    assert F.equal(F.rand(4), want)
    assert F.cuda.get_rng_state_all() == []


def test_modules_may_be_listed_as_often_as_they_are_used():
    shared = F.nn.ReLU()
    net = F.nn.Sequential(shared, shared)
    assert len(list(net.modules())) == 2
    assert len(list(net.modules(remove_duplicate=False))) == 3


# ---- compile


@pytest.mark.parametrize("options", [{}, {"mode": "reduce-overhead"}, {"backend": "eager"}])
def test_compiled_functions_are_the_functions(options):
    def double(x):
        return 2 * x

    assert F.compile(double, **options) is double
    assert F.compile(**options)(double) is double


def test_that_nothing_is_compiled_is_said_once(monkeypatch):
    monkeypatch.setattr(F.compiler, "_said", False, raising=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            F.compile(abs)
    if F.__name__ == "facula":
        assert [str(w.message).split(":")[0] for w in said] == [
            "facula.compile() compiles nothing yet"
        ]


def test_a_compiled_module_has_pytorchs_names_and_the_modules_attributes():
    module = F.nn.Sequential(F.nn.Linear(2, 2), F.nn.Dropout())
    module.width = 2
    compiled = F.compile(module)
    assert isinstance(compiled, F.nn.Module)
    assert compiled._orig_mod is module
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    compiled.height = 3
    assert (compiled.width, module.height, len(compiled)) == (2, 3, 2)
    compiled.eval()
    assert not module.training
    module.train()
    assert compiled.training
    x = F.ones(1, 2)
    assert F.equal(compiled.eval()(x), module(x))
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'nothing'"):
        compiled.nothing  # noqa: B018
    assert F.compile(module, disable=True) is module


def test_copies_and_files_of_compiled_modules(tmp_path):
    compiled = F.compile(F.nn.Linear(2, 2))
    twin = copy.deepcopy(compiled)
    assert twin._orig_mod is not compiled._orig_mod
    twin.load_state_dict(compiled.state_dict())
    F.save(compiled, tmp_path / "module.pt")
    loaded = F.load(tmp_path / "module.pt", weights_only=False)
    x = F.ones(1, 2)
    assert F.equal(loaded(x), compiled(x)) and F.equal(twin(x), compiled(x))


def test_modules_can_be_compiled_in_place():
    module = F.nn.Linear(2, 2)
    x = F.ones(1, 2)
    expected = module(x)
    module.compile(fullgraph=True)
    assert F.equal(module(x), expected)


def test_compile_refuses_what_pytorch_refuses():
    with pytest.raises(RuntimeError, match="Either mode or options"):
        F.compile(len, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        F.compile(len, mode="fast")
    with pytest.raises(AssertionError, match="callable function is expected"):
        F.compile(5)


def test_stances_are_functions_blocks_and_decorators():
    @F.compiler.set_stance("force_eager")
    def double(x):
        return 2 * x

    F.compiler.set_stance("default")
    with F.compiler.set_stance("eager_on_recompile"):
        assert double(3) == 6
    assert isinstance(F.compiler.list_backends(), list)


def test_settings_of_compilers_are_kept():
    config = F._dynamo.config
    before = config.suppress_errors
    with config.patch(suppress_errors=not before):
        assert config.suppress_errors is not before
    assert config.suppress_errors is before
    F._inductor.config.coordinate_descent_tuning = True
    assert F._inductor.config.coordinate_descent_tuning
    F._inductor.config.triton.unique_kernel_names = True


def test_libraries_find_compiled_modules_and_mark_sizes():
    linear = F.nn.Linear(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = F.compile(linear)
    assert isinstance(compiled, F._dynamo.eval_frame.OptimizedModule)
    assert F._dynamo.OptimizedModule is F._dynamo.eval_frame.OptimizedModule
    x = F.ones(3, 2)
    F._dynamo.mark_dynamic(x, 0)
    F._dynamo.mark_static(x, 1)
    F._dynamo.reset()
    assert x.shape == (3, 2)
