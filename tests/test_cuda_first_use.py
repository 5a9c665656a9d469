"""Kernels as the package writes them, compiled by NVRTC on a driver that is not one.

The package hands the compiler only those declarations of a template that a kernel needs, which the
other tests of compilation do not go through.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_cuda_kernels_compile import needs_nvrtc, nvrtc

SOURCES = Path(__file__).parent / "cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(
        not COMPILER or not sys.platform.startswith("linux"), reason="needs a C++ compiler"
    ),
]

WORK = """
import facula as F
from facula.nn import functional as nn
x = F.rand(64, 48).cuda().requires_grad_()
y = F.rand(64, 48).cuda()
c = F.rand(8, 8).to(F.complex64).cuda()
i = F.randint(0, 40, (64, 48)).cuda()
labels = F.randint(0, 48, (64,)).cuda()
image = F.rand(2, 4, 8, 8).cuda().requires_grad_()
w, b = F.rand(48).cuda().requires_grad_(), F.rand(48).cuda()
outputs = [
    x + y, x * 2, x.T.exp(), nn.gelu(x), x**y, F.sigmoid(x), F.logaddexp(x, y), x.to(F.bfloat16),
    nn.softplus(x), F.lerp(x, y, 0.3), x.digamma(), F.special.i0e(x.to(F.float64)),
    F.special.chebyshev_polynomial_t(y, i), F.special.zeta(y + 2, y), c * c, c.exp(), c**c, i // 7,
    F.gcd(i, i), F.where(x > y, x, y), F.nextafter(y, x.detach()), y.to(F.float16).frexp()[0],
    x.sum(), x.var(0), y.argmax(1), x.amax(0), c.sum(0), i.sum(), F.rand(1 << 20).cuda().sum(),
    F.softmax(x, 1), F.log_softmax(x, 0), nn.cross_entropy(x, labels, label_smoothing=0.1),
    nn.layer_norm(x, (48,), w, b), nn.batch_norm(image, None, None, training=True),
    nn.group_norm(image, 2), nn.group_norm(image[..., :3, :3].contiguous(), 2),
    nn.layer_norm(F.rand(4, 9001).cuda(), (9001,)), F.softmax(F.rand(4, 50257).cuda(), 1),
    x[labels % 64], x.gather(1, i), x.index_add(0, labels, y), F.cat([x, y], 1), x.sort(1)[0],
    F.rand(9000).cuda().sort()[0], x.topk(3, 1)[0], x.cumsum(1), y.cummax(1)[0],
    x.logcumsumexp(0), F.rand(9, device="cuda"), F.randn(9, device="cuda"), nn.dropout(x, 0.5),
    F.poisson(y), nn.max_pool2d(image, 2), nn.interpolate(image, scale_factor=2, mode="bicubic"),
    nn.unfold(image, 3), F.cdist(x, y, p=1.0), i @ i.T,
]
for out in outputs:
    if out.requires_grad:
        F.autograd.grad(out, [x, image], F.empty_like(out),
                        allow_unused=True, retain_graph=True)
x.grad = y
for name in ("SGD", "AdamW", "Rprop"):
    getattr(F.optim, name)([x]).step()
F.nn.utils.clip_grad_norm_([x], 1.0)
"""

# Nothing waits for the device: the process ends as soon as its first kernels are on their way.
SHORT_WORK = """
import facula as F
F.zeros(9000, dtype=F.uint8).cuda().sort()
"""


# Pages that the process touches for the first time while it compiles, after its first kernels.
FAULTS = """
import resource
import facula as F
x = F.rand(64).cuda()
x.exp(), x.cumsum(0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
x.log(), x.sin(), x.tanh(), x.sqrt()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 4)
"""


# The kernels of gradients are under way when the process ends, and when another one is forked off.
ATTENTION = """
import os, sys
import facula as F
q, k, v = (F.rand(1, 1, 64, 64).to(F.bfloat16).cuda().requires_grad_({grad}) for _ in range(3))
out = F.nn.functional.scaled_dot_product_attention(q, k, v)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    if {backward}:
        F.autograd.grad(out, [q, k, v], F.empty_like(out))
sys.exit(0)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", folder / "libcuda.so.1"]
    subprocess.run([*command, SOURCES / "fake_cuda_driver.cpp"], check=True)
    return folder


def output_of(arguments: list[str], driver: Path, cache: Path) -> str:
    from package_under_test import F

    path = os.pathsep.join([str(Path(F.__file__).parents[1]), *sys.path])
    env = {
        **os.environ,
        "FACULA_CUDA_PATH": str(driver),
        "FACULA_CACHE_DIR": str(cache),
        "FACULA_READY_KERNELS": "",  # those that came with the package would not be compiled
        "PYTHONPATH": path,
    }
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def run(work: str, driver: Path, cache: Path) -> set[str]:
    """The names of the kernels that are on disk afterwards."""
    output_of(["-c", work], driver, cache)
    return {path.name for path in (cache / "kernels").iterdir()}


def test_kernels_compile_once_on_a_machine(driver, tmp_path):
    assert nvrtc() is not None
    kernels = run(WORK, driver, tmp_path)
    assert len(kernels) > 100
    assert run(WORK, driver, tmp_path) == kernels


def test_a_process_may_end_right_after_its_first_kernels(driver, tmp_path):
    assert run(SHORT_WORK, driver, tmp_path)


def test_attention_compiles_the_kernels_of_its_gradients_ahead(driver, tmp_path):
    def kernels(name: str, **choices: bool) -> set[str]:
        return run(ATTENTION.format(**choices), driver, tmp_path / name)

    alone = kernels("alone", grad=False, backward=False)
    ahead = kernels("ahead", grad=True, backward=False)
    assert len(ahead - alone) == 3 and alone <= ahead
    assert kernels("all", grad=True, backward=True) == ahead


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="is about glibc's heap, in whose place sanitizers have their own",
)
def test_the_compiler_finds_the_memory_of_the_kernel_before(driver, tmp_path):
    assert float(output_of(["-c", FAULTS], driver, tmp_path)) < 300


def test_the_benchmark_of_first_use_counts_kernels_and_their_times(driver, tmp_path):
    program = Path(__file__).parents[1] / "bench" / "first_use.py"
    options = ["--without-device", "--only", "cumsum of", "--json", str(tmp_path / "report")]
    assert "cumsum of long rows" in output_of([str(program), *options], driver, tmp_path)
    report = json.loads((tmp_path / "report").read_text())
    assert report["failed"] == {}
    kernels = {row["case"]: row["kernels"] for row in report["cases"]}
    assert {name: len(found) for name, found in kernels.items()} == {
        "cumsum of long rows": 2,
        "cumsum of columns": 1,
    }
    assert all(k["clock"] > 0 and k["cpu"] > 0 for found in kernels.values() for k in found)


def test_kernels_are_compiled_without_the_types_that_they_do_not_have(driver, tmp_path):
    program = Path(__file__).parents[1] / "bench" / "first_use.py"
    options = ["--without-device", "--texts", str(tmp_path), "--only", "mul complex64", "relu"]
    output_of([str(program), *options, "silu bfloat16"], driver, tmp_path)
    texts = {path.name[2:-3]: path.read_text() for path in tmp_path.glob("*/*.cu")}

    def types(kernel: str) -> set[str]:
        names = ("Complex", "float16", "bfloat16", "float8_e5m2")
        return {name for name in names if f" {name} {{" in texts[f"facula_{kernel}"]}

    assert types("relu") == set()
    assert types("mul") == {"Complex"}
    assert types("_silu") == {"bfloat16"}
