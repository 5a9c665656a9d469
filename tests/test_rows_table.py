"""Checks on the operator table itself, on its tests, and on the generator's refusals."""

import ast
import collections
import fnmatch

import pytest
from free_results import FORMS
from references import BY_ROW, REFERENCES
from row_cases import (
    FUNCTIONS_OF_USERS,
    PUBLIC,
    ROWS,
    SAMPLED,
    USERS,
    callable_of,
    has_reference,
    row_cases,
    row_id,
)
from samples import BY_NAME, all_samples, generator_of, has_samples, sampled_dtypes
from samples import BY_ROW as SAMPLES_BY_ROW
from skips import KINDS, LOOPS, MOST_SKIPS, NO_DERIVATIVE, SKIPS, TOLERANCES

import gen.rows
from gen import emit_loops, emit_ops
from gen.rows import Row, composite, elementwise, kernel, op, reduction
from gen.schema import TYPES, parse

IDS = {row_id(r) for r in ROWS}


# ---- the rows


def test_names_are_unique():
    counts = collections.Counter(row_id(r) for r in ROWS)
    assert [name for name, n in counts.items() if n > 1] == []


def test_names_in_cpp_are_unique():
    """add.out and add_out would be one C++ name."""
    counts = collections.Counter(r.schema.cpp_name for r in ROWS)
    assert [name for name, n in counts.items() if n > 1] == []


def test_aliases_are_not_rows_and_are_unique():
    names = {r.python for r in ROWS if r.python}
    owners = collections.defaultdict(set)
    for row in ROWS:
        for alias in row.aliases:
            assert alias not in names, f"{alias} is a row and an alias of {row_id(row)}"
            owners[alias].add(row.python)
    assert [a for a, rows in owners.items() if len(rows) > 1] == []


@pytest.mark.parametrize("row", row_cases(ROWS))
def test_row_is_consistent(row):
    names = [a.name for a in row.schema.args]
    assert len(set(names)) == len(names), "two arguments have one name"
    for a in row.schema.args:
        assert a.type in TYPES
        if a.default is not None:
            ast.literal_eval(a.default)
    optional = [a.default is not None for a in row.schema.args if not a.keyword_only]
    assert optional == sorted(optional), "a required argument follows one with a default"
    if row.method or row.inplace:
        assert row.schema.args[0].is_tensor, "a method needs a tensor as its first argument"
    assert not (row.inplace and row.mutates), "a row that mutates has no further in-place variant"
    for name in row.nondifferentiable:
        assert name in [n for _, n in row.schema.rets]
    if row.is_elementwise:
        for letter in row.family.options["types"]:
            assert row.f.get(letter, row.f.get("")), f"no formula for {letter!r}"


@pytest.mark.parametrize("row", row_cases(r for r in PUBLIC if r.is_elementwise))
def test_floating_point_row_has_a_derivative(row):
    """Unless tests/skips.py lists it: a forgotten derivative detaches graphs silently."""
    if not set(row.family.options["types"]) & set("fc"):
        return
    if row_id(row) in NO_DERIVATIVE:
        assert not row.grad, "listed as having no derivative, but has one"
        return
    operands = [a.name for a in row.schema.args if a.operand]
    masks = row.family.options.get("masks", ())
    missing = [n for n in operands if n not in masks and n not in row.grad]
    assert not missing, f"no derivative by {missing}"


# ---- the tests of the rows


@pytest.mark.parametrize("row", row_cases(ROWS))
def test_row_can_be_batched(row):
    """Families and composites bring their rule; a primitive names it, a loop says why."""
    draws = any(a.type == "Generator?" for a in row.schema.args)
    takes_tensors = any(a.is_tensor for a in row.schema.args)
    if row.family.name in ("kernel", "view") and takes_tensors and not draws:
        assert row.batch, "a primitive needs batch="
    assert (row.batch == "loop") == (row_id(row) in LOOPS), "skips.py has the reasons of loops"


def test_loops_under_vmap_have_reasons():
    assert set(LOOPS) <= IDS
    assert all(len(reason.split()) > 3 for reason in LOOPS.values())


@pytest.mark.parametrize("row", row_cases(r for r in ROWS if has_samples(r)))
def test_row_has_samples(row):
    """Fails, with what to do, for names that tests/samples*.py do not know."""
    generator_of(row)  # raises LookupError
    dtypes = sampled_dtypes(row)
    assert dtypes
    assert all_samples(row, dtypes[-1])
    callable_of(row)


@pytest.mark.parametrize("row", row_cases(SAMPLED))
def test_samples_are_the_same_every_time(row):
    dtype = sampled_dtypes(row)[-1]
    assert repr(all_samples(row, dtype)) == repr(all_samples(row, dtype))


@pytest.mark.parametrize("row", row_cases(SAMPLED))
def test_samples_cover_layouts_and_sizes(row):
    """Contiguous and strided memory for all rows; zero-size and 0-dim where the shapes allow."""
    operands = [o for s in all_samples(row, sampled_dtypes(row)[-1]) for o in s.operands()]
    assert any(o.offset or o.strides != o.contiguous().strides for o in operands) or (
        row_id(row) in ("as_strided", "as_strided_copy", "histc")
    ), "no strided sample"


@pytest.mark.parametrize("row", row_cases(SAMPLED))
def test_row_has_a_reference(row):
    """NumPy's, so that the suite is complete where PyTorch is not installed."""
    assert has_reference(row), (
        f"give {row_id(row)} ref=, or a function of that name in BY_ROW of tests/references.py"
    )
    if isinstance(row.ref, str):
        assert row.ref in REFERENCES, f"tests/references.py has no {row.ref!r}"


def test_samples_and_references_belong_to_rows():
    """Nothing is left of rows that went away."""
    # A row without a public name is reached through its users, so its samples are in use as well.
    assert sorted(set(BY_NAME) - {r.samples for r in ROWS}) == []
    assert sorted(set(SAMPLES_BY_ROW) - IDS) == []
    assert sorted(set(BY_ROW) - IDS) == []
    assert sorted({*USERS, *FUNCTIONS_OF_USERS, *FORMS} - IDS) == []
    assert sorted(set(REFERENCES) - {r.ref for r in ROWS if isinstance(r.ref, str)}) == []


# ---- skips


def test_skips_name_rows_kinds_and_samples_that_exist():
    for skip in SKIPS:
        assert skip.row in IDS, f"{skip}: no such row"
        assert skip.kind in KINDS, f"{skip}: no such kind"
        assert skip.reason
        if skip.sample:
            row = next(r for r in ROWS if row_id(r) == skip.row)
            names = {s.name for d in sampled_dtypes(row) for s in all_samples(row, d)}
            assert fnmatch.filter(names, skip.sample), f"{skip}: no such sample"
    for tolerance in TOLERANCES:
        assert tolerance.row in IDS, f"{tolerance}: no such row"
        assert tolerance.reason
    assert sorted(NO_DERIVATIVE - IDS) == []


def test_skips_are_unique_and_counted():
    keys = [(s.row, s.kind, s.dtypes, s.sample) for s in SKIPS]
    assert len(set(keys)) == len(keys)
    assert len(SKIPS) <= MOST_SKIPS, (
        f"{len(SKIPS)} skips, {MOST_SKIPS} allowed: fix the operator, or say in review why not"
    )


# ---- what the generator refuses


@pytest.fixture
def empty_table(monkeypatch):
    """A table of its own: rows that a test adds stay in the test."""
    rows: list[Row] = []
    monkeypatch.setattr(gen.rows, "ROWS", rows)
    return rows


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("add(Tensor self)", "malformed"),
        ("add Tensor self -> Tensor", "malformed"),
        ("add(Tensr self) -> Tensor", "unknown type 'Tensr'"),
        ("add(self) -> Tensor", "unknown type"),
        ("", "malformed"),
    ],
)
def test_malformed_schema_is_refused(schema, words):
    with pytest.raises(ValueError, match=words):
        parse(schema)


def test_schema_is_read_completely():
    schema = parse(
        "f.over(Tensor(a) self, int[2] size, *, Scalar? x=None, bool y=False) "
        "-> (Tensor v, Tensor i)"
    )
    assert (schema.name, schema.overload, schema.cpp_name) == ("f", "over", "f_over")
    assert [a.name for a in schema.args] == ["self", "size", "x", "y"]
    assert [a.type for a in schema.args] == ["Tensor", "int[]", "Scalar?", "bool"]
    assert [a.keyword_only for a in schema.args] == [False, False, True, True]
    assert [a.default for a in schema.args] == [None, None, "None", "False"]
    assert schema.args[1].list_size == 2
    assert schema.rets == [("Tensor", "v"), ("Tensor", "i")]


def test_derivative_for_an_unknown_argument_is_refused(empty_table):
    with pytest.raises(ValueError, match="unknown argument 'other'"):
        op("f(Tensor self) -> Tensor", elementwise("f"), f="a", grad={"other": "grad"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grad * slef", "unknown name 'slef'"),
        ("grad * cosine(self)", "unknown operator 'cosine'"),
        ("grad *", "no expression"),
        ("grad_values * 2", "unknown name 'grad_values'"),
    ],
)
def test_mistake_in_a_derivative_is_refused(empty_table, text, words):
    op("f(Tensor self) -> Tensor", elementwise("f"), f="a", grad=text)
    with pytest.raises(ValueError, match=words):
        emit_ops.Derivative(empty_table[0], {"f", "cos"})


def test_derivative_saves_only_what_it_uses(empty_table):
    op(
        "f(Tensor self, Tensor other) -> Tensor",
        elementwise("f"),
        f="a * b",
        grad={"self": "grad * other", "other": "reshape(grad, self.sizes()) * result"},
    )
    derivative = emit_ops.Derivative(empty_table[0], {"f", "reshape"})
    # The bits say whose derivative needs the value.
    assert derivative.saved_args == {("other", "Whole"): 0b01, ("self", "Sizes"): 0b10}
    assert derivative.saved_rets == {"result": 0b10}


def test_missing_formula_is_refused(empty_table):
    op("f(Tensor self) -> Tensor", elementwise("if"), f={"f": "a + 1"})
    with pytest.raises(ValueError, match="no formula for the types 'i'"):
        emit_loops.formula_groups(empty_table[0])


@pytest.mark.parametrize("text", ["a +", "a if b", "lambda: a", "[x for x in a]", "a < b < a"])
def test_formula_that_is_no_cpp_is_refused(empty_table, text):
    op("f(Tensor self, Tensor other) -> Tensor", elementwise("f"), f=text)
    with pytest.raises(ValueError, match=r"no expression|not expressible"):
        emit_loops.elementwise_loops(empty_table[0])


def test_family_gives_the_variants(empty_table):
    op("f(Tensor self) -> Tensor", elementwise("f"), f="a")
    op("g(Tensor self) -> Tensor", reduction("f", combine="a + b"))
    op("h(int[] size) -> Tensor", composite())
    op("i_(Tensor(a!) self) -> Tensor(a!)", kernel())
    op("_j(Tensor self) -> Tensor", kernel())
    variants = {r.name: (r.function, r.method, r.inplace, r.out) for r in empty_table}
    assert variants == {
        "f": (True, True, True, True),
        "g": (True, True, False, True),
        "h": (True, False, False, True),
        "i_": (False, True, False, False),
        "_j": (False, False, False, True),
    }
    assert [r.python for r in empty_table] == ["f", "g", "h", "i_", ""]


def test_row_without_known_samples_is_reported(empty_table):
    op("f(Tensor self) -> Tensor", elementwise("f"), f="a", samples="no such samples")
    op("g(Tensor self, int k) -> Tensor", kernel())
    with pytest.raises(LookupError, match="no samples are called 'no such samples'"):
        generator_of(empty_table[0])
    with pytest.raises(LookupError, match="no samples for the argument 'k'"):
        generator_of(empty_table[1])
    assert row_id(empty_table[1]) == "g"


def test_new_elementwise_row_needs_no_test_code(empty_table):
    op("f(Tensor self, Tensor other) -> Tensor", elementwise("if"), f="a + b")
    row = empty_table[0]
    assert {"int64", "bfloat16"} <= set(sampled_dtypes(row))
    names = {s.name for s in all_samples(row, "float64")}
    assert {"contiguous", "transposed", "stepped", "broadcast", "0-dim", "zero-size"} <= names
