"""Several Python threads at once: nothing crashes or waits for ever."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(program: str) -> str:
    """What a program prints in a process of its own, whose end may be a crash."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_first_reads_of_documentation_from_several_threads_do_not_wait_for_each_other():
    # The texts are imported on first use, which lets other threads run.
    program = """
        import sys, threading
        import facula
        sys.setswitchinterval(1e-6)
        start = threading.Barrier(8)
        found = []

        def read():
            start.wait()
            found.append(len(facula.sin.__doc__) > 0)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(sum(found))
    """
    assert run(program) == "8"


def test_gradients_are_cleared_while_other_threads_run_backward_passes():
    program = """
        import threading
        import facula
        facula.set_num_threads(1)
        leaf = facula.ones(3, requires_grad=True)
        finished = []

        def differentiate():
            for _ in range(5000):
                (leaf * 2).sum().backward()

        def clear():
            while not finished:
                leaf.grad = None
                leaf.grad
                leaf.grad = facula.zeros(3)

        workers = [threading.Thread(target=differentiate) for _ in range(4)]
        clearing = [threading.Thread(target=clear) for _ in range(2)]
        for t in workers + clearing:
            t.start()
        for t in workers:
            t.join()
        finished.append(True)
        for t in clearing:
            t.join()
        leaf.grad = None
        (leaf * 2).sum().backward()
        print(leaf.grad.tolist())
    """
    assert run(program) == "[2.0, 2.0, 2.0]"
