"""The reference: every public name has a text and an example that prints what it says."""

import doctest
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from example_output import AnyZero
from package_under_test import IS_FACULA, F

pytestmark = pytest.mark.skipif(not IS_FACULA, reason="the reference is Facula's")

TOOL = Path(__file__).resolve().parent.parent / "tools" / "reference.py"


def load_tool():
    spec = importlib.util.spec_from_file_location("reference", TOOL)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load_tool()
EXTRA = reference.extra_examples()


def test_every_public_name_has_a_text_and_an_example():
    assert not list(reference.holes())


def test_extra_examples_are_of_names_that_exist_and_have_none():
    entries = {e.path: e for space in reference.NAMESPACES for e in reference.entries(space)}
    assert not EXTRA.keys() - entries.keys()
    assert not [name for name in EXTRA if ">>> " in entries[name].text]


def failures(name, text, home):
    """What doctest says about the examples in a text; they may use the names of their module."""
    # Those of the package itself would hide Python's float, sum and others.
    around = vars(sys.modules[home]) if home in sys.modules and home != F.__name__ else {}
    names = {**around, "facula": F, "__name__": "reference"}
    parsed = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    output = []
    doctest.DocTestRunner(AnyZero(), verbose=False).run(parsed, out=output.append)
    return output


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", EXTRA)
def test_extra_example(name, keep_random_state):
    assert not "".join(failures(name, EXTRA[name], ""))


# Examples that register something by name, which a process can do once: test_module_examples.py.
REGISTERS = re.compile(r"custom_op\(|functional_datapipe\(")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", [s for s in reference.NAMESPACES if s != "library"])
def test_examples_in_docstrings(space, keep_random_state):
    """Those of operators and modules run elsewhere too; here none is left out."""
    seen, output = set(), []
    for entry in reference.entries(space, {}):
        text = reference.docstring(entry.value)
        if ">>> " in text and text not in seen and not REGISTERS.search(text):
            seen.add(text)
            home = getattr(entry.value, "__module__", None) or ""
            output += failures(entry.path, text, home)
    assert not "".join(output)


def test_pages(tmp_path):
    """Every name is on one page of its namespace, and every link leads somewhere."""
    assert reference.write(tmp_path) > 2500
    files = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    assert max(map(len, files.values())) < 60_000
    for space in reference.NAMESPACES:
        parts = [text for name, text in files.items() if re.match(rf"{space}(-\d+)?\.md$", name)]
        headings = re.findall(r"^## (\w+)$", "\n".join(parts), re.MULTILINE)
        assert sorted(headings) == sorted(e.name for e in reference.entries(space, EXTRA))
    for text in files.values():
        for target in re.findall(r"\]\(([\w.-]+\.md)", text):
            assert target in files
        assert text.count("```") % 2 == 0


def test_markdown_of_a_docstring():
    text = "Does it.\n\nArgs:\n    a: one\n        thing.\n    b: other.\n\n"
    text += "Example::\n\n    >>> 1\n    1\n"
    assert reference.markdown(text) == (
        "Does it.\n\n*Args:*\n\n- a: one thing.\n- b: other.\n\n```python\n>>> 1\n1\n```"
    )
