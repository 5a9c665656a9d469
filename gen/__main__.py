"""``python -m gen --out DIR [--list]``: writes (or only names) the generated files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gen import emit_loops, emit_ops, emit_python
from gen.rows import load_table


def generate() -> dict[str, str]:
    rows = load_table()
    modules = list(dict.fromkeys(r.module for r in rows))
    files = {
        "op/ops.h": emit_ops.emit_umbrella(modules),
        "op/ops/defaults.h": emit_ops.emit_defaults(rows),
        "registry.cpp": emit_ops.emit_registry(rows),
        "facula/_op_docs.py": emit_python.emit_docs(rows),
    }
    files |= {f"facula/{n}": t for n, t in emit_python.emit_stubs(rows).items()}
    for module in modules:
        mine = [r for r in rows if r.module == module]
        files[f"op/ops/{module}.h"] = emit_ops.emit_header(module, mine)
        files[f"op/kernels/{module}.h"] = emit_ops.emit_kernels_header(module, mine)
        files[f"ops_{module}.cpp"] = emit_ops.emit_module(module, mine, rows)
        files |= emit_loops.emit_loops(module, mine)
    return files


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument(
        "--list", action="store_true", help="print the names of the C++ files, write nothing"
    )
    p.add_argument("--stubs-only", action="store_true", help="write only the Python files")
    args = p.parse_args()
    files = generate()
    if args.list:
        print(";".join(n for n in files if n.endswith(".cpp")))
        return
    for name, text in files.items():
        if args.stubs_only and not name.startswith("facula/"):
            continue
        path = args.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
