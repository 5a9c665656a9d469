#!/usr/bin/env python3
"""What the first use of an operator on a GPU costs: milliseconds of compiling for each kernel.

bench/first_use.py [--without-device] [--without-ready] [--only TEXT ...] [--rounds 1] [--cpu]
                   [--json FILE] [--texts FOLDER]

Each case runs in a process of its own with an empty cache of kernels, forward and, where a case
says so, backward. Needs a C++ compiler for the library that stands between the package and NVRTC
(``nvrtc_clock.cpp``). With ``--without-device`` the package runs on the driver of the tests that is
not one, and NVRTC compiles for compute capability 9.0; cases that need values or another library
than NVRTC then say so. With ``--without-ready`` kernels that came with the package are compiled,
too. The best of the rounds counts. Times are those of the clock, or with
``--cpu`` of the processor, which other work disturbs less. "together" is how long kernels were
compiled by the clock: threads do so at once. ``--texts`` keeps what was compiled.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Make = Callable[[Any], tuple[Any, ...]]
CASES: dict[str, tuple[Make, Callable[..., Any], bool]] = {}
HALF, SINGLE, TWICE, LONG, COMPLEX = "bfloat16", "float32", "float64", "int64", "complex64"


# ---- arguments: made on the host, so that making them compiles nothing


def numbers(*shape: int, dtype: str = SINGLE, count: int = 1) -> Make:
    return lambda T: tuple(T.rand(*shape).to(getattr(T, dtype)) for _ in range(count))


def integers(high: int, *shape: int, dtype: str = LONG, count: int = 1) -> Make:
    return lambda T: tuple(T.randint(0, high, shape).to(getattr(T, dtype)) for _ in range(count))


def both(*makes: Make) -> Make:
    return lambda T: tuple(value for make in makes for value in make(T))


def layer(make: Callable[[Any], Any], arguments: Make, dtype: str = SINGLE) -> Make:
    """A layer, then its arguments."""
    return lambda T: (make(T.nn).to(getattr(T, dtype)), *arguments(T))


def add(name: str, make: Make, run: Callable[..., Any]) -> None:
    """The case ``run(package, *make(package))``."""
    CASES[name] = (make, run, False)


def add_grad(name: str, make: Make, run: Callable[..., Any]) -> None:
    """The same, and its gradients as another case, which counts what the first does not compile."""
    CASES[name] = (make, run, False)
    CASES[f"{name}, gradients"] = (make, run, True)


# ---- elementwise
PAIR = numbers(64, 48, count=2)
add("add", PAIR, lambda T, a, b: a + b)
add("add bfloat16", numbers(64, 48, dtype=HALF, count=2), lambda T, a, b: a + b)
add("add of broadcast columns", PAIR, lambda T, a, b: a + b[:, :1])
add("mul by a number", PAIR, lambda T, a, b: a * 2)
add("div", PAIR, lambda T, a, b: a / b)
add("div int64", integers(40, 64, 48, count=2), lambda T, a, b: a / (b + 1))
add("floor_divide int64", integers(40, 64, 48), lambda T, a: a // 7)
add("remainder float32", PAIR, lambda T, a, b: a % b)
add("compare", PAIR, lambda T, a, b: a > b)
add(
    "contiguous of 6 dimensions",
    numbers(4, 3, 5, 4, 3, 7),
    lambda T, a: a.permute(4, 1, 5, 0, 3, 2).contiguous(),
)
add("where", PAIR, lambda T, a, b: T.where(a > b, a, b))
add("clamp", PAIR, lambda T, a, b: a.clamp(0.1, 0.9))
add("lerp", PAIR, lambda T, a, b: T.lerp(a, b, 0.3))
add("addcmul", PAIR, lambda T, a, b: T.addcmul(a, a, b))
add("to bfloat16", PAIR, lambda T, a, b: a.to(T.bfloat16))
add("contiguous of a transposition", PAIR, lambda T, a, b: a.T.contiguous())
for _name in ("exp", "log", "tanh", "sigmoid", "sin", "erf", "sqrt", "lgamma", "digamma", "erfinv"):
    add(_name, PAIR, lambda T, a, b, f=_name: getattr(a, f)())
add("polygamma", PAIR, lambda T, a, b: T.polygamma(2, a))
for _name in ("i0e", "bessel_j1", "log_ndtr"):
    add(_name, PAIR, lambda T, a, b, f=_name: getattr(T.special, f)(a))
for _name in ("gammainc", "zeta", "xlog1py"):
    add(_name, PAIR, lambda T, a, b, f=_name: getattr(T.special, f)(a, b))
add("exp float64", numbers(64, 48, dtype=TWICE), lambda T, a: a.exp())
add("sin float64", numbers(64, 48, dtype=TWICE), lambda T, a: a.sin())
add_grad("pow", PAIR, lambda T, a, b: a**b)
add("pow float64", numbers(64, 48, dtype=TWICE, count=2), lambda T, a, b: a**b)
add("pow of a number", PAIR, lambda T, a, b: a**2.5)
add("pow int64", integers(5, 64, 48, count=2), lambda T, a, b: a**b)
add("atan2", PAIR, lambda T, a, b: T.atan2(a, b))
add("logaddexp", PAIR, lambda T, a, b: T.logaddexp(a, b))
add_grad("gelu", PAIR, lambda T, a, b: T.nn.functional.gelu(a))
add_grad("silu bfloat16", numbers(64, 48, dtype=HALF), lambda T, a: T.nn.functional.silu(a))
add_grad("relu", PAIR, lambda T, a, b: a.relu())
add("mul complex64", numbers(64, 48, dtype=COMPLEX, count=2), lambda T, a, b: a * b)
add("div complex64", numbers(64, 48, dtype=COMPLEX, count=2), lambda T, a, b: a / b)
add("exp complex64", numbers(64, 48, dtype=COMPLEX), lambda T, a: a.exp())
add("pow complex64", numbers(64, 48, dtype=COMPLEX, count=2), lambda T, a, b: a**b)

# ---- reductions, scans, order
add("sum", PAIR, lambda T, a, b: a.sum())
add("sum of rows", PAIR, lambda T, a, b: a.sum(1))
add("sum of columns bfloat16", numbers(64, 48, dtype=HALF), lambda T, a: a.sum(0))
add("sum of 2**22", numbers(1 << 22), lambda T, a: a.sum())
add("sum int64", integers(40, 64, 48), lambda T, a: a.sum())
add("sum complex64", numbers(64, 48, dtype=COMPLEX), lambda T, a: a.sum(0))
add("mean bfloat16", numbers(64, 48, dtype=HALF), lambda T, a: a.mean())
add("amax", PAIR, lambda T, a, b: a.amax(1))
add("argmax", PAIR, lambda T, a, b: a.argmax(1))
add("max along rows", PAIR, lambda T, a, b: a.max(1))
add("var", PAIR, lambda T, a, b: a.var(0))
add("prod", PAIR, lambda T, a, b: a.prod(1))
add("all", integers(2, 64, 48, dtype="bool"), lambda T, a: a.all())
add("norm", PAIR, lambda T, a, b: a.norm())
add("logsumexp", PAIR, lambda T, a, b: a.logsumexp(1))
add_grad("cumsum", PAIR, lambda T, a, b: a.cumsum(1))
add("cumsum of long rows", numbers(4, 20000), lambda T, a: a.cumsum(1))
add("cumsum int64", integers(40, 64, 48), lambda T, a: a.cumsum(1))
add("cumsum of columns", PAIR, lambda T, a, b: a.cumsum(0))
add("cumprod", PAIR, lambda T, a, b: a.cumprod(1))
add("cummax", PAIR, lambda T, a, b: a.cummax(1))
add("logcumsumexp", PAIR, lambda T, a, b: a.logcumsumexp(1))
add("sort of rows", PAIR, lambda T, a, b: a.sort(1))
add("sort of rows of 4000", numbers(8, 4000), lambda T, a: a.sort(1))
add("sort of 2**20", numbers(1 << 20), lambda T, a: a.sort())
add("sort int64", integers(40, 64, 48), lambda T, a: a.sort(1))
add("argsort", PAIR, lambda T, a, b: a.argsort(1))
add("topk", numbers(16, 5000), lambda T, a: a.topk(5, 1))
add("median", PAIR, lambda T, a, b: a.median(1))
add("searchsorted", PAIR, lambda T, a, b: T.searchsorted(a, b))

# ---- indexing, joining
INDEX = both(PAIR, integers(40, 64, 48))
add_grad("index by a tensor", INDEX, lambda T, a, b, i: a[i[:, 0]])
add_grad("gather", INDEX, lambda T, a, b, i: a.gather(1, i))
add("scatter_add", INDEX, lambda T, a, b, i: a.scatter_add(1, i, b))
add("index_add", INDEX, lambda T, a, b, i: a.index_add(0, i[:, 0], b))
add("index_put", INDEX, lambda T, a, b, i: a.index_put((i[:, 0],), b))
add("scatter_reduce amax", INDEX, lambda T, a, b, i: a.scatter_reduce(1, i, b, "amax"))
add_grad(
    "embedding",
    both(numbers(100, 64), integers(100, 8, 16)),
    lambda T, w, i: T.nn.functional.embedding(i, w),
)
add_grad(
    "embedding_bag",
    both(numbers(100, 64), integers(100, 8, 16)),
    lambda T, w, i: T.nn.functional.embedding_bag(i, w),
)
add_grad("cat", PAIR, lambda T, a, b: T.cat([a, b], 1))
add("stack of three", PAIR, lambda T, a, b: T.stack([a, b, a]))
add("masked_fill", INDEX, lambda T, a, b, i: a.masked_fill(i > 3, 0.0))
add("masked_select", INDEX, lambda T, a, b, i: a.masked_select(i > 3))
add("nonzero", INDEX, lambda T, a, b, i: i.nonzero())
add("tril", PAIR, lambda T, a, b: a.tril())
add("roll and flip", PAIR, lambda T, a, b: (a.roll(3, 1), a.flip(0)))

# ---- softmax, losses, norms
for _dtype in (SINGLE, HALF):
    add_grad(
        f"softmax {_dtype}",
        numbers(64, 512, dtype=_dtype),
        lambda T, a: a.softmax(1),
    )
add_grad("softmax of columns", numbers(64, 48), lambda T, a: a.softmax(0))
add_grad("softmax of long rows", numbers(4, 50257), lambda T, a: a.softmax(1))
add_grad("softmax of rows of 4096", numbers(8, 4096), lambda T, a: a.softmax(1))
add_grad("log_softmax", numbers(64, 512), lambda T, a: a.log_softmax(1))
add_grad(
    "cross_entropy",
    both(numbers(64, 1000), integers(1000, 64)),
    lambda T, a, i: T.nn.functional.cross_entropy(a, i),
)
add_grad(
    "cross_entropy of long rows bfloat16",
    both(numbers(8, 50257, dtype=HALF), integers(50257, 8)),
    lambda T, a, i: T.nn.functional.cross_entropy(a, i),
)
add_grad("mse_loss", PAIR, lambda T, a, b: T.nn.functional.mse_loss(a, b))
add_grad(
    "binary_cross_entropy_with_logits",
    PAIR,
    lambda T, a, b: T.nn.functional.binary_cross_entropy_with_logits(a, b),
)
add_grad("smooth_l1_loss", PAIR, lambda T, a, b: T.nn.functional.smooth_l1_loss(a, b))
add_grad(
    "ctc_loss",
    both(numbers(20, 4, 10), integers(10, 4, 8)),
    lambda T, a, i: T.nn.functional.ctc_loss(a, i, [20] * 4, [8] * 4),
)
for _dtype in (SINGLE, HALF):
    add_grad(
        f"layer_norm {_dtype}",
        layer(lambda nn: nn.LayerNorm(768), numbers(64, 768, dtype=_dtype), _dtype),
        lambda T, f, a: f(a),
    )
add_grad(
    "layer_norm of rows of 4096",
    layer(lambda nn: nn.LayerNorm(4096), numbers(8, 4096)),
    lambda T, f, a: f(a),
)
add_grad(
    "rms_norm bfloat16",
    layer(lambda nn: nn.RMSNorm(768), numbers(64, 768, dtype=HALF), HALF),
    lambda T, f, a: f(a),
)
IMAGE = numbers(2, 8, 16, 16)
add_grad("group_norm", layer(lambda nn: nn.GroupNorm(4, 8), IMAGE), lambda T, f, a: f(a))
add_grad("instance_norm", IMAGE, lambda T, a: T.nn.functional.instance_norm(a))
add_grad("batch_norm", layer(lambda nn: nn.BatchNorm2d(8), IMAGE), lambda T, f, a: f(a))

# ---- attention


def attention(causal: bool) -> Callable[..., Any]:
    return lambda T, q, k, v: T.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal
    )


for _dtype, _size in ((HALF, 64), (HALF, 128), ("float16", 64), (SINGLE, 64)):
    add_grad(
        f"attention {_dtype}, heads of {_size}",
        numbers(2, 4, 256, _size, dtype=_dtype, count=3),
        attention(True),
    )
add_grad(
    "attention with a mask bfloat16",
    both(
        numbers(2, 4, 256, 64, dtype=HALF, count=3),
        lambda T: (T.zeros(256, 256).to(T.bfloat16),),
    ),
    lambda T, q, k, v, m: T.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m),
)

# ---- images, convolutions that cuDNN does not do, recurrent cells
add_grad("max_pool2d", IMAGE, lambda T, a: T.nn.functional.max_pool2d(a, 2))
add_grad("avg_pool2d", IMAGE, lambda T, a: T.nn.functional.avg_pool2d(a, 2))
add_grad("adaptive_avg_pool2d", IMAGE, lambda T, a: T.nn.functional.adaptive_avg_pool2d(a, 1))
for _name in ("nearest", "bilinear", "bicubic"):
    add_grad(
        f"interpolate {_name}",
        IMAGE,
        lambda T, a, m=_name: T.nn.functional.interpolate(a, scale_factor=2, mode=m),
    )
add_grad(
    "grid_sample",
    both(IMAGE, numbers(2, 8, 8, 2)),
    lambda T, a, g: T.nn.functional.grid_sample(a, g, align_corners=False),
)
add_grad(
    "grid_sample bicubic",
    both(IMAGE, numbers(2, 8, 8, 2)),
    lambda T, a, g: T.nn.functional.grid_sample(a, g, mode="bicubic", align_corners=False),
)
add_grad("unfold", IMAGE, lambda T, a: T.nn.functional.unfold(a, 3))
add("pad reflect", IMAGE, lambda T, a: T.nn.functional.pad(a, (1, 1, 1, 1), mode="reflect"))
add_grad(
    "depthwise convolution",
    both(IMAGE, numbers(8, 1, 3, 3)),
    lambda T, a, w: T.nn.functional.conv2d(a, w, padding=1, groups=8),
)
add(
    "convolution int64",
    both(integers(40, 2, 8, 16, 16), integers(40, 8, 8, 3, 3)),
    lambda T, a, w: T.nn.functional.conv2d(a, w),
)
add("matmul int64", integers(40, 48, 48, count=2), lambda T, a, b: a @ b)
add_grad(
    "LSTMCell",
    layer(lambda nn: nn.LSTMCell(16, 32), numbers(4, 16)),
    lambda T, f, a: f(a),
)
add_grad("GRUCell", layer(lambda nn: nn.GRUCell(16, 32), numbers(4, 16)), lambda T, f, a: f(a))

# ---- random numbers
add("rand", numbers(8), lambda T, a: T.rand(9, device="cuda"))
add("randn", numbers(8), lambda T, a: T.randn(9, device="cuda"))
add("randn_like bfloat16", numbers(8, dtype=HALF), lambda T, a: T.randn_like(a))
add("randint", numbers(8), lambda T, a: T.randint(0, 9, (9,), device="cuda"))
add("randperm", numbers(8), lambda T, a: T.randperm(99, device="cuda"))
add("bernoulli", PAIR, lambda T, a, b: T.bernoulli(a))
add("multinomial", PAIR, lambda T, a, b: T.multinomial(a, 2))
add("poisson", PAIR, lambda T, a, b: T.poisson(a))
add_grad("dropout", PAIR, lambda T, a, b: T.nn.functional.dropout(a, 0.5))

# ---- distances, linear algebra without libraries, creation
add_grad("cdist p=1", numbers(8, 16, count=2), lambda T, a, b: T.cdist(a, b, p=1.0))
add("arange", numbers(8), lambda T, a: T.arange(9, device="cuda"))
add("full", numbers(8), lambda T, a: T.full((9,), 2.0, device="cuda"))
add("eye", numbers(8), lambda T, a: T.eye(9, device="cuda"))

# ---- optimisers


def step(optimiser: str, **options: Any) -> Callable[..., Any]:
    def run(T: Any, a: Any, grad: Any) -> None:
        a.grad = grad
        getattr(T.optim, optimiser)([a], lr=0.1, **options).step()

    return run


for _name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "Rprop"):
    add(_name, PAIR, step(_name))
add("SGD with momentum", PAIR, step("SGD", momentum=0.9, weight_decay=0.1))
add("AdamW capturable", PAIR, step("AdamW", capturable=True))
add("AdamW bfloat16", numbers(64, 48, dtype=HALF, count=2), step("AdamW"))


def clip(T: Any, a: Any, grad: Any) -> None:
    a.grad = grad
    T.nn.utils.clip_grad_norm_([a], 1.0)


add("clip_grad_norm_", PAIR, clip)


# ---- running


def run_case(T: Any, name: str, clock: Path) -> None:
    """In the child. The gradient comes from the host, too."""
    make, run, backward = CASES[name]
    T.zeros(1).cuda().isneginf()  # a process's first kernel also pays for what NVRTC sets up
    clock.write_text("")
    arguments = [x.cuda() for x in make(T)]
    if backward:
        for x in arguments:
            if isinstance(x, T.Tensor) and x.is_floating_point():
                x.requires_grad_()
    out = run(T, *arguments)
    if backward:
        leaves = [
            leaf
            for x in arguments
            for leaf in ([x] if isinstance(x, T.Tensor) else x.parameters())
            if leaf.requires_grad
        ]
        out = out[0] if isinstance(out, tuple) else out
        gradient = T.ones(out.shape, dtype=out.dtype).cuda()
        T.autograd.grad(out, leaves, gradient, allow_unused=True)
    T.cuda.synchronize()


def real_nvrtc() -> str | None:
    """In the order in which the package looks, as far as it matters here."""
    folders = [f"{root}/lib64" for root in (os.environ.get("CUDA_HOME"),) if root]
    for site in sys.path:
        folders += sorted(glob.glob(f"{site}/nvidia/*/lib"))
    folders += sorted(glob.glob("/usr/local/cuda*/lib64"), reverse=True)
    for folder in folders:
        for version in (13, 12):
            if os.path.exists(path := f"{folder}/libnvrtc.so.{version}"):
                return path
    return None


def build(folder: Path, without_device: bool) -> None:
    """The library that clocks NVRTC, under the names that the package asks for."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        sys.exit("first_use: needs a C++ compiler")
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-o"]
    subprocess.run([*command, folder / "libnvrtc.so.12", HERE / "nvrtc_clock.cpp"], check=True)
    (folder / "libnvrtc.so.13").symlink_to("libnvrtc.so.12")
    if without_device:
        driver = HERE.parent / "tests" / "cpp" / "fake_cuda_driver.cpp"
        subprocess.run([*command, folder / "libcuda.so.1", driver], check=True)


def in_child(errors: Path, work: Callable[[], Any]) -> str | None:
    """Why ``work`` failed. This process must not touch the device, or its children could not."""
    errors.write_text("the process died\n")
    child = os.fork()
    if child == 0:
        status = 0
        try:
            work()
        except BaseException:
            errors.write_text(traceback.format_exc())
            status = 1
        os._exit(status)
    return errors.read_text().splitlines()[-1] if os.waitpid(child, 0)[1] else None


def measure(T: Any, name: str, folder: Path) -> list[dict[str, Any]] | str:
    """The kernels of a case, or why it could not be run."""
    clock, cache = folder / "clock", folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    os.environ["FACULA_CACHE_DIR"] = str(cache)
    if why := in_child(folder / "errors", lambda: run_case(T, name, clock)):
        return why
    rows = [line.split() for line in clock.read_text().splitlines()]
    kernels = [
        {"kernel": row[0], "clock": float(row[1]), "cpu": float(row[2]), "done": float(row[3])}
        for row in rows
    ]
    return sorted(kernels, key=lambda kernel: str(kernel["kernel"]))  # threads end in any order


def together(kernels: list[dict[str, Any]]) -> float:
    """Milliseconds on the clock in which at least one of the kernels was compiled."""
    total, until = 0.0, 0.0
    for begin, end in sorted((k["done"] - k["clock"], k["done"]) for k in kernels):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--without-device", action="store_true")
    p.add_argument("--without-ready", action="store_true")
    p.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--json", type=Path)
    p.add_argument("--texts", type=Path, help="a folder for the texts of the kernels")
    args = p.parse_args()
    library = real_nvrtc()
    if library is None:
        print("NVRTC is not installed: pip install facula[cuda]")
        return
    names = [n for n in CASES if not args.only or any(part in n for part in args.only)]
    best: dict[str, list[dict[str, Any]]] = {}
    whole: dict[str, float] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build(folder, args.without_device)
        os.environ["CUDA_CACHE_DISABLE"] = "1"  # NVRTC keeps what it compiled, too
        os.environ["FACULA_CUDA_PATH"] = temporary
        if args.without_ready:
            os.environ["FACULA_READY_KERNELS"] = ""
        os.environ["FACULA_CLOCKED_NVRTC"] = library
        os.environ["FACULA_NVRTC_CLOCK"] = str(folder / "clock")
        import facula as T

        if why := in_child(folder / "errors", lambda: T.zeros(1).cuda()):
            print(f"{why} See --without-device.")
            return
        unit = "cpu" if args.cpu else "clock"
        for _ in range(args.rounds):
            for name in names:
                if args.texts:
                    texts = args.texts / name.replace("/", "_").replace(" ", "_")
                    texts.mkdir(parents=True, exist_ok=True)
                    os.environ["FACULA_NVRTC_TEXTS"] = str(texts)
                kernels = measure(T, name, folder)
                if isinstance(kernels, str):
                    failed[name] = kernels
                    continue
                whole[name] = min(together(kernels), whole.get(name, float("inf")))
                before = best.get(name, kernels)
                for old, new in zip(before, kernels, strict=True):
                    if old[unit] > new[unit]:
                        old.update(new)
                best[name] = before
    report(best, whole, failed, unit, args.json)


def report(
    best: dict[str, list[dict[str, Any]]],
    whole: dict[str, float],
    failed: dict[str, str],
    unit: str,
    path: Path | None,
) -> None:
    rows = []
    for name, kernels in best.items():
        times = [kernel[unit] for kernel in kernels]
        mean = sum(times) / len(times) if times else 0.0
        rows.append(
            {"case": name, "milliseconds": mean, "together": whole[name], "kernels": kernels}
        )
    rows.sort(key=lambda row: -row["milliseconds"])
    print(f"{'case':44}{'kernels':>8}{'ms each':>9}{'together':>10}{'slowest':>9}")
    for row in rows:
        slowest = max(row["kernels"], key=lambda k: k[unit], default={unit: 0.0, "kernel": ""})
        print(
            f"{row['case']:44}{len(row['kernels']):8}{row['milliseconds']:9.1f}"
            f"{row['together']:10.1f}{slowest[unit]:9.1f}  {slowest['kernel']}"
        )
    for name, why in failed.items():
        print(f"{name:44} {why}")
    slow = sum(row["milliseconds"] >= 80 for row in rows)
    middle = rows[len(rows) // 2]["milliseconds"] if rows else 0.0
    print(
        f"{len(rows)} cases, {slow} of 80 ms and more for each kernel, half below {middle:.0f} ms"
    )
    if path:
        path.write_text(json.dumps({"cases": rows, "failed": failed}, indent=1) + "\n")


if __name__ == "__main__":
    main()
