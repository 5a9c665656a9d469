"""Kernels that take long to compile, compiled while the package is built.

``python -m gen.ready_kernels --extension FILE --generated FOLDER --to FOLDER
[--capabilities 80 90] [--required]``

NVRTC needs no GPU. The calls of ready_calls.py run on the driver of the tests that is not one; what
they make the package compile goes into the folder ``--to``, which becomes
``facula/_kernels/ready``. Without NVRTC or a compiler for that driver nothing is made: such kernels
are compiled when they are first used, as all others are. A kernel is found by its text, so one that
has changed since is not used.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from gen.ready_calls import Call, calls

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / "tests" / "cpp" / "fake_cuda_driver.cpp"


def stage(folder: Path, extension: Path, generated: Path) -> None:
    """The package as it will be installed, of links."""
    package = folder / "facula"
    package.mkdir()
    for source in (*(ROOT / "src" / "facula").iterdir(), *generated.iterdir(), extension):
        if source.name != "__pycache__" and not (package / source.name).exists():
            (package / source.name).symlink_to(source)


def build_driver(folder: Path) -> bool:
    compiler = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    if not compiler:
        return False
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", folder / "libcuda.so.1"]
    return subprocess.run([*command, DRIVER], check=False).returncode == 0


def run(call: Call) -> int:
    """In a process of its own, so that calls run side by side. Its process number."""
    import facula.nn  # before the fork: once for all calls

    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(300)
        try:
            facula.set_num_threads(1)
            call(facula)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def run_all(capability: int) -> int:
    """How many calls failed."""
    os.environ["FAKE_CUDA_CAPABILITY"] = str(capability)
    failed = running = 0
    for call in calls():
        if running == len(os.sched_getaffinity(0)):
            failed += os.wait()[1] != 0
            running -= 1
        run(call)
        running += 1
    for _ in range(running):
        failed += os.wait()[1] != 0
    return failed


def has_compiler() -> str | None:
    """Why the package cannot compile kernels."""
    reader, writer = os.pipe()

    def probe(F: Any) -> None:
        try:
            F.zeros(1, device="cuda") + 1
        except Exception as error:
            os.write(writer, str(error).encode())

    os.waitpid(run(probe), 0)
    os.close(writer)
    with open(reader) as answer:
        return answer.read() or None


def fingerprint(capabilities: list[int]) -> str:
    """Of what the kernels are made from: where it is the same, so are they."""
    digest = hashlib.sha256(repr(capabilities).encode())
    folders = (ROOT / "csrc" / "cuda", ROOT / "src" / "facula" / "_kernels")
    files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    for path in sorted((*files, *Path(__file__).parent.glob("ready_*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_all(folder: Path, args: argparse.Namespace) -> str | None:
    """Why no kernels were made."""
    if not build_driver(folder):
        return "no C++ compiler for the driver of the tests"
    stage(folder, args.extension.resolve(), args.generated.resolve())
    sys.path.insert(0, str(folder))
    os.environ.update(
        FACULA_CUDA_PATH=str(folder), FACULA_CACHE_DIR=str(folder), FACULA_READY_KERNELS=""
    )
    if why := has_compiler():
        return why
    failed = 0
    for capability in args.capabilities:
        print(f"Compiling kernels for compute capability {capability / 10}", flush=True)
        failed += run_all(capability)
    args.to.mkdir(parents=True)
    for kernel in (folder / "kernels").iterdir():
        # Without the version of NVRTC: any driver that loads the kernel may use it.
        shutil.copy(kernel, args.to / kernel.name.split("-")[0])
    return f"{failed} calls of gen/ready_kernels.py failed" if failed else None


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--extension", type=Path, required=True, help="the built _C")
    p.add_argument("--generated", type=Path, required=True, help="the modules made from the table")
    p.add_argument("--to", type=Path, required=True)
    p.add_argument("--capabilities", type=int, nargs="*", default=[80, 90])
    p.add_argument("--required", action="store_true", help="fail where kernels cannot be compiled")
    args = p.parse_args()
    made_from = fingerprint(args.capabilities)
    stamp = args.to.with_suffix(".stamp")
    if args.to.exists() and stamp.exists() and stamp.read_text() == made_from:
        return
    shutil.rmtree(args.to, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        why = compile_all(Path(temporary), args)
    if why:
        print(f"Some kernels are left to their first use: {why}")
        sys.exit(1 if args.required else 0)
    stamp.write_text(made_from)


if __name__ == "__main__":
    main()
