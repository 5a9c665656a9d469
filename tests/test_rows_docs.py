"""Every public operator is documented, and its example prints what it says."""

import doctest
import inspect

import pytest
from example_output import AnyZero
from package_under_test import IS_FACULA, F
from row_cases import PUBLIC, attribute, row_cases, row_id, skips_allowed

EXAMPLES = [r for r in PUBLIC if r.example]


@pytest.mark.parametrize("row", row_cases(PUBLIC))
def test_public_row_has_a_docstring_and_an_example(row):
    with skips_allowed(row, "example"):
        assert row.doc.strip(), f"{row_id(row)} has no doc"
        assert row.doc.strip().endswith("."), f"the doc of {row_id(row)} is not a sentence"
        assert ">>> " in row.example, f"{row_id(row)} has no example"


@pytest.mark.parametrize("row", row_cases(EXAMPLES))
def test_example_prints_what_it_says(row):
    text = row.example if IS_FACULA else row.example.replace("facula.", f"{F.__name__}.")
    names = {"facula": F, F.__name__: F}
    parsed = doctest.DocTestParser().get_doctest(text, names, row_id(row), None, None)
    assert parsed.examples
    output = []
    with skips_allowed(row, "example", "run"):
        runner = doctest.DocTestRunner(AnyZero(), verbose=False)
        result = runner.run(parsed, out=output.append)
        assert result.failed == 0, "".join(output)


@pytest.mark.parametrize("row", row_cases(EXAMPLES))
def test_example_shows_the_operator(row):
    last = row.python.rpartition(".")[2]
    assert any(f"{name}(" in row.example for name in (row.python, last, *row.aliases))


@pytest.mark.skipif(not IS_FACULA, reason="the docstrings are Facula's")
@pytest.mark.parametrize("row", row_cases(PUBLIC))
def test_docstring_is_the_rows(row):
    """help() shows the signature, the text and the example, of the function and of the method."""
    callables = []
    if row.function:
        callables.append(attribute(F, row.python))
    if row.method:
        callables.append(inspect.getattr_static(F.Tensor, row.python.rpartition(".")[2]))
    for operator in callables:
        if not type(operator).__name__.startswith("Operator"):
            continue  # a Python function around the operator, with its own docstring
        text = operator.__doc__ or ""
        assert f"{row.python}(" in text
        assert row.doc.strip() in text
        for line in row.example.strip().splitlines():
            assert line.strip() in text
