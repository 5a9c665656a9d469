#!/usr/bin/env python3
"""Writes the reference: a page for each namespace, with signature, text and example of every name.

tools/reference.py [--out docs/reference] [--holes]

The package is imported and asked: operators have the docstrings of their rows in ops/, everything
else its own. docs/examples.txt has the examples of names whose docstring is a line in a table of
C++ or too short to hold one. Every example runs in tests/test_reference.py. ``--holes`` names what
has no text or no example, and writes nothing.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "facula"
LONGEST_PAGE = 90  # names; namespaces with more get several pages

# A class stands for its members.
NAMESPACES = [
    PACKAGE, "Tensor", "accelerator", "amp", "array_api", "autograd", "autograd.forward_ad",
    "autograd.functional", "autograd.graph", "autograd.profiler", "compiler", "cpu", "cuda",
    "distributed", "distributions", "distributions.constraints", "distributions.transforms", "fft",
    "func", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "monitor", "mtia",
    "multiprocessing", "nested", "nn", "nn.Module", "nn.attention", "nn.functional", "nn.init",
    "nn.utils", "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "onnx", "optim",
    "optim.lr_scheduler", "optim.swa_utils", "overrides", "profiler", "quasirandom", "random",
    "safetensors", "serialization",
    "signal.windows", "sparse", "special", "storage", "testing", "torch_version", "utils._pytree",
    "utils.benchmark", "utils.checkpoint", "utils.data", "utils.dlpack", "utils.tensorboard",
]  # fmt: skip

# Where an example would show nothing that holds on every machine, or nothing of this package.
WITHOUT_EXAMPLES = {
    "accelerator": "the answers depend on the devices of the machine",
    "array_api": "the functions are those of facula under the names of the standard",
    "cuda": "an example needs a GPU; docs/cuda.md has some",
    "multiprocessing": "the names are those of Python's own multiprocessing",
}


@dataclass
class Entry:
    """A public name: ``path`` is what one types after ``facula.``."""

    space: str
    name: str
    value: Any
    signature: list[str]
    text: str
    example: str

    @property
    def path(self) -> str:
        return self.name if self.space == PACKAGE else f"{self.space}.{self.name}"

    @property
    def needs_example(self) -> bool:
        """Exceptions, enumerations and aliases of types say all in their text."""
        if self.space in WITHOUT_EXAMPLES:
            return False
        home = getattr(self.value, "__module__", None) or PACKAGE
        if not home.startswith((PACKAGE, "nanobind")):
            return False  # an alias of a type of Python
        return not (
            isinstance(self.value, type) and issubclass(self.value, (BaseException, enum.Enum))
        )


def extra_examples() -> dict[str, str]:
    """Path -> example, from blocks that begin with ``== path``."""
    text = (ROOT / "docs" / "examples.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^== ([\w.]+)\n", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(blocks[::2], blocks[1::2], strict=True)}


def owner(space: str) -> Any:
    """The module or class that a namespace is."""
    if space == PACKAGE:
        return importlib.import_module(PACKAGE)
    try:
        return importlib.import_module(f"{PACKAGE}.{space}")
    except ModuleNotFoundError:
        parent, _, name = f"{PACKAGE}.{space}".rpartition(".")
        return getattr(importlib.import_module(parent), name)


def public_names(holder: Any) -> list[str]:
    names = None if isinstance(holder, type) else getattr(holder, "__all__", None)
    if names is None and hasattr(holder, "_LAZY_NAMES"):
        names = {*dir(holder), *holder._LAZY_NAMES}  # also those that nothing has asked for yet
    return sorted({n for n in (dir(holder) if names is None else names) if not n.startswith("_")})


def is_documentable(holder: Any, value: Any) -> bool:
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return True
    if isinstance(value, types.ModuleType) or not callable(value):
        return False
    home = getattr(value, "__module__", None) or PACKAGE
    listed = hasattr(holder, "__all__")  # what a module lists is its own wherever it was made
    return listed or home.partition(".")[0] in (PACKAGE, "builtins", "nanobind")


def docstring(value: Any) -> str:
    """The value's own text: a class without one does not speak with its parent's."""
    if get_origin(value) is not None or value is Any:
        return f"The type ``{value}``.".replace("typing.", "").replace("collections.abc.", "")
    if isinstance(value, type):
        return inspect.cleandoc(value.__dict__.get("__doc__") or "")
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def plain(signature: inspect.Signature) -> str:
    """Without annotations, which the stubs have."""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


def entry(space: str, holder: Any, name: str, value: Any, extras: dict[str, str]) -> Entry:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    text = docstring(value)
    # Operators and functions of C++ begin with their signatures.
    head = re.compile(rf"^(?:Tensor\.)?(?:\w+\.)*{re.escape(name.rstrip('_'))}_?\(.*\)( -> .*)?$")
    signature = [line for line in text.splitlines() if head.match(line)]
    if signature:
        text = "\n".join(line for line in text.splitlines() if not head.match(line)).strip()
        text = re.sub(r"\n{3,}", "\n\n", text)
    elif callable(value) and not inspect.isdatadescriptor(value):
        try:
            signature = [name + plain(inspect.signature(value))]
        except (TypeError, ValueError):  # a function of C++ that says nothing
            signature = [f"{name}(...)"]
    path = name if space == PACKAGE else f"{space}.{name}"
    example = extras.get(path, "")
    if not example and ">>> " not in text:
        # A class that stands in two namespaces has its example under the shorter path.
        example = extras.get(f"{space.rpartition('.')[0]}.{name}".lstrip("."), "")
    if not text and space in WITHOUT_EXAMPLES:
        text = f"{name} of {WITHOUT_EXAMPLES[space].rpartition(' of ')[2]}."
    return Entry(space, name, value, list(dict.fromkeys(signature)), text, example)


def entries(space: str, extras: dict[str, str] | None = None) -> Iterator[Entry]:
    """The public names of a namespace that are functions, classes or attributes."""
    extras = extra_examples() if extras is None else extras
    holder = owner(space)
    for name in public_names(holder):
        is_class = isinstance(holder, type)
        value = inspect.getattr_static(holder, name) if is_class else getattr(holder, name)
        if isinstance(value, (staticmethod, classmethod)) or is_documentable(holder, value):
            yield entry(space, holder, name, value, extras)


def holes() -> Iterator[str]:
    """What has no text, or no example where one belongs."""
    extras = extra_examples()
    for space in NAMESPACES:
        for e in entries(space, extras):
            if not e.text:
                yield f"{e.path}: no text"
            elif e.needs_example and ">>> " not in e.text + e.example:
                yield f"{e.path}: no example"


# ------------------------------------------------------------------------------------- Markdown


def fenced(text: str) -> str:
    return f"```python\n{textwrap.dedent(text).strip()}\n```"


def markdown(text: str) -> str:
    """A docstring in Markdown: examples fenced, arguments as lists, roles as code."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    parts = []
    for block in re.split(r"\n\s*\n", text):
        if block.strip() in ("Example::", "Examples::", "Example:", "Examples:"):
            continue
        if ">>> " in block:
            prose, _, code = block.partition(">>> ")
            indent = prose.rpartition("\n")[2]
            if prose.strip():
                parts.append(prose.strip())
            code = fenced(f"{indent}>>> {code}")
            # Examples with an empty line between them are one example.
            if parts and parts[-1].startswith("```python\n>>> "):
                parts[-1] = (
                    parts[-1].removesuffix("\n```") + "\n" + code.removeprefix("```python\n")
                )
            else:
                parts.append(code)
            continue
        head, newline, rest = block.partition("\n")
        if newline and re.fullmatch(r"\w+:", head.strip()) and rest.startswith("    "):
            rest = textwrap.dedent(rest)
            if head.strip() == "Returns:":
                parts.append(f"*Returns:* {rest.strip()}")
                continue
            items = re.sub(r"\n\s{4,}", " ", "\n" + rest).strip().splitlines()
            parts.append("\n".join([f"*{head.strip()}*\n", *(f"- {i.strip()}" for i in items)]))
        else:
            parts.append(block)
    return "\n\n".join(parts)


def anchor(name: str) -> str:
    """GitHub's: the heading in lower case; names that differ in case only are numbered."""
    return name.lower().replace(".", "")


def section(e: Entry) -> str:
    parts = [f"## {e.name}", fenced("\n".join(e.signature)) if e.signature else ""]
    parts.append(markdown(e.text))
    if e.example:
        parts.append(fenced(e.example))
    return "\n\n".join(p for p in parts if p)


def chunks(found: list[Entry]) -> list[list[Entry]]:
    """Pages of about the same length, none longer than LONGEST_PAGE."""
    pages = -(-len(found) // LONGEST_PAGE) or 1
    size = -(-len(found) // pages) or 1
    return [found[i : i + size] for i in range(0, len(found), size)]


def pages(space: str, extras: dict[str, str]) -> dict[str, str]:
    """File name -> text. The first page has the introduction and the index of all of them."""
    found = sorted(entries(space, extras), key=lambda e: (e.name.lower(), e.name))
    title = space if space == PACKAGE else f"{PACKAGE}.{space}"
    parts = chunks(found)
    split = len(parts) > 1
    index, texts = [], {}
    for i, part in enumerate(parts, 1):
        file = f"{space}-{i}.md" if split else f"{space}.md"
        seen: dict[str, int] = {}
        for e in part:
            name = anchor(e.name)
            times = seen[name] = seen.get(name, 0) + 1
            link = name if times == 1 else f"{name}-{times - 1}"
            index.append(f"[{e.name}]({file if split else ''}#{link})")
        body = "\n\n".join(map(section, part))
        if split:
            span = f"{part[0].name} to {part[-1].name}"
            texts[file] = f"# {title}: {span}\n\n[Index]({space}.md)\n\n{body}\n"
        else:
            texts[file] = body
    head = [f"# {title}", markdown(docstring_of_page(owner(space))), " · ".join(index)]
    if not split and parts:
        head.append(texts[f"{space}.md"])
    texts[f"{space}.md"] = "\n\n".join(h for h in head if h) + "\n"
    return texts


def docstring_of_page(holder: Any) -> str:
    return docstring(holder) if isinstance(holder, type) else inspect.cleandoc(holder.__doc__ or "")


def contents(spaces: list[str]) -> str:
    """The page that lists the pages, with the first sentence of each."""
    lines = ["# Reference", ""]
    for space in spaces:
        first = docstring_of_page(owner(space)).split("\n\n")[0].replace("\n", " ")
        title = space if space == PACKAGE else f"{PACKAGE}.{space}"
        lines.append(f"- [{title}]({space}.md): {first.replace('``', '`')}")
    return "\n".join(lines) + "\n"


def write(out: Path) -> int:
    """Writes all pages into a folder, without those of an earlier time; returns how many names."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.md"):
        old.unlink()
    extras = extra_examples()
    for space in NAMESPACES:
        for file, text in pages(space, extras).items():
            (out / file).write_text(text, encoding="utf-8")
    (out / "README.md").write_text(contents(NAMESPACES), encoding="utf-8")
    return sum(len(list(entries(space, extras))) for space in NAMESPACES)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--out", type=Path, default=ROOT / "docs" / "reference")
    p.add_argument("--holes", action="store_true", help="name what is undocumented, write nothing")
    args = p.parse_args()
    if args.holes:
        found = list(holes())
        print("\n".join(found))
        sys.exit(1 if found else 0)
    print(f"{write(args.out)} names in {len(list(args.out.glob('*.md')))} pages of {args.out}")


if __name__ == "__main__":
    main()
