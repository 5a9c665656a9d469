"""Which C++ files are compiled together.

    python -m gen.batches SIZE FILE...

prints ``FILE=BATCH`` for each file. A small file costs the compiler as much for the headers and
for what they instantiate as for itself, so up to SIZE neighbours make one translation unit. Files
keep their own names to themselves: two that declare the same name in an unnamed namespace never
share a batch, and one that leaves a macro defined is compiled alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_TYPE = re.compile(r"(?:struct|class|enum class|enum|union|using) (\w+)")
_FUNCTION = re.compile(r"(\w+)\s*\(")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*;?\s*$")


def _declared(text: str) -> str | None:
    """The name that a declaration at the outermost level introduces."""
    text = re.sub(r"^template <.*?>\s*(?=\w)", "", text)
    if found := _TYPE.match(text):
        return found[1]
    head = text.split("{")[0].split("=")[0]
    found = _FUNCTION.search(head) or _VARIABLE.search(head.strip())
    return found[1] if found else None


def own_names(path: Path) -> set[str]:
    """What a file declares for itself alone. Declarations start in the first column."""
    text = path.read_text()
    names = set(re.findall(r"^static [^=;({]*?(\w+)\(", text, re.M))
    for start in re.finditer(r"^namespace \{$", text, re.M):
        end = text.find("\n}  // namespace\n", start.end())
        body = text[start.end() : end if end > 0 else len(text)]
        declaration = ""
        for line in body.split("\n"):
            if not declaration and (not line or line[0] in " #}/"):
                continue
            declaration += " " + line
            if re.search(r"[{;]", line):
                if name := _declared(declaration.strip()):
                    names.add(name)
                declaration = ""
    return names


def leaves_macros(path: Path) -> bool:
    text = path.read_text()
    defined = set(re.findall(r"^#define (\w+)", text, re.M))
    return bool(defined - set(re.findall(r"^#undef (\w+)", text, re.M)))


def batches(files: list[Path], size: int) -> list[list[Path]]:
    """The files of one folder, in order, as batches of at most ``size``."""
    alone = [file for file in files if leaves_macros(file)]
    made: list[tuple[list[Path], set[str]]] = []
    for file in sorted(set(files) - set(alone)):
        names = own_names(file)
        for batch, taken in made:
            if len(batch) < size and not taken & names:
                batch.append(file)
                taken |= names
                break
        else:
            made.append(([file], names))
    return [batch for batch, _ in made] + [[file] for file in alone]


def main() -> None:
    size, files = int(sys.argv[1]), [Path(f) for f in sys.argv[2:]]
    for folder in dict.fromkeys(f.parent for f in files):
        for k, batch in enumerate(batches([f for f in files if f.parent == folder], size)):
            for file in batch:
                print(f"{file}={folder.name}_{k}")


if __name__ == "__main__":
    main()
