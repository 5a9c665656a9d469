"""rearrange: patterns of named dimensions."""

import pytest
from package_under_test import F, assert_equal, facula_module

rearrange = facula_module("func.rearranging").rearrange

X = F.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "expected"),
    [
        ("a b c -> c b a", {}, X.permute(2, 1, 0)),
        ("a b c -> (a b) c", {}, X.reshape(6, 4)),
        ("a b c -> b (c a)", {}, X.permute(1, 2, 0).reshape(3, 8)),
        ("a b (c d) -> d a b c", {"c": 2}, X.reshape(2, 3, 2, 2).permute(3, 0, 1, 2)),
        ("a b (c d) -> a b c d", {"d": 4}, X.reshape(2, 3, 1, 4)),
        ("a ... -> ... a", {}, X.permute(1, 2, 0)),
        ("... -> (...)", {}, X.reshape(24)),
        ("... a b c -> a (... b) c", {}, X),
        ("a b c -> a 1 b c", {}, X.unsqueeze(1)),
        ("a b c -> a () b c", {}, X.unsqueeze(1)),
        ("a b c -> a b c", {"a": 2}, X),
        ("  a   b c->c a  b", {}, X.permute(2, 0, 1)),
    ],
)
def test_patterns(pattern, lengths, expected):
    assert_equal(rearrange(X, pattern, **lengths), expected)


def test_dimensions_of_size_one():
    assert_equal(rearrange(X.unsqueeze(1), "a 1 b c -> a b c"), X)
    assert tuple(rearrange(F.tensor(3.0), " -> 1 1").shape) == (1, 1)


def test_a_sequence_is_stacked():
    assert_equal(rearrange([X, X + 1], "n a b c -> a n b c"), F.stack([X, X + 1], 1))


def test_a_split_is_undone_by_the_reverse_pattern():
    split = rearrange(X, "a b (h w) -> (a h) w b", h=2)
    assert_equal(rearrange(split, "(a h) w b -> a b (h w)", h=2), X)


@pytest.mark.parametrize(
    ("pattern", "lengths"),
    [
        ("a b -> b a", {}),
        ("a b c d -> a b c d", {}),
        ("a b c -> a b", {}),
        ("a b c -> a b c d", {}),
        ("a a c -> a c", {}),
        ("a b c", {}),
        ("a -> b -> c", {}),
        ("a (b c -> a b c", {}),
        ("a b) c -> a b c", {}),
        ("a ((b)) c -> a b c", {}),
        ("a b c -> a b c", {"z": 3}),
        ("a b c -> a b c", {"a": 5}),
        ("a (2 b) c -> a b c", {}),
        ("... ... -> ...", {}),
        ("a$ b c -> a", {}),
        ("(...) -> ...", {}),
        ("a b c -> ... a b c", {}),
        ("a.b c -> b c", {}),
        ("a b (c d) -> d a b c", {}),
        ("a b (c d) -> d a b c", {"c": 3}),
        ("a b (c d) -> a b c d", {"c": -2}),
        ("a 1 b -> a b", {}),
    ],
)
def test_patterns_that_do_not_fit(pattern, lengths):
    with pytest.raises(ValueError, match="rearrange"):
        rearrange(X, pattern, **lengths)


def test_lengths_are_integers():
    with pytest.raises(TypeError, match="integers"):
        rearrange(X, "a b (c d) -> a b c d", c=2.0)
