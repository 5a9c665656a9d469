"""vmap against loops: where the batch goes in and out, nesting, chunks, and what is refused."""

import functools

import pytest
from package_under_test import IS_FACULA, F, assert_close, assert_equal

vmap = F.func.vmap


def sample(*shape):
    return F.arange(1, 1 + functools.reduce(lambda a, b: a * b, shape, 1)).reshape(shape) / 7.0


def test_maps_over_the_first_dimension_by_default():
    x, y = sample(4, 3), sample(4, 3).cos()
    assert_close(vmap(F.dot)(x, y), F.stack([F.dot(a, b) for a, b in zip(x, y, strict=True)]))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_in_dims_counts_from_either_end(dim):
    x = sample(2, 3, 4)
    expected = F.stack([s.sin().sum(0) for s in x.unbind(dim)])
    assert_close(vmap(lambda s: s.sin().sum(0), in_dims=dim)(x), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_out_dims_says_where_the_batch_goes(dim):
    x = sample(5, 2, 3)
    expected = F.stack([s * 2 for s in x], dim)
    result = vmap(lambda s: s * 2, out_dims=dim)(x)
    assert_equal(result, expected)


def test_arguments_that_are_not_mapped_are_shared():
    x, w = sample(4, 3), sample(3)
    assert_close(vmap(lambda a, b: a * b, in_dims=(0, None))(x, w), x * w)
    assert_close(vmap(lambda a, b: a * b, in_dims=(None, 0))(w, x), w * x)


def test_closures_and_keyword_arguments_are_shared():
    x, w = sample(4, 3), sample(3)
    assert_close(vmap(lambda a: a + w)(x), x + w)
    assert tuple(vmap(lambda a, scale=2.0: a * scale)(x, scale=x).shape) == (4, 4, 3)


def test_several_outputs_and_their_dims():
    x = sample(4, 3)
    a, b = vmap(lambda s: (s * 2, s.sum()), out_dims=(1, 0))(x)
    assert_equal(a, (x * 2).T)
    assert_close(b, x.sum(1))


def test_trees_of_inputs_and_outputs():
    x, y = sample(4, 3), sample(2, 4)

    def function(arguments, scale):
        return {"sum": arguments["x"].sum() + arguments["pair"][0].sum(), "scaled": [scale]}

    result = vmap(
        function, in_dims=({"x": 0, "pair": [1]}, None), out_dims={"sum": 0, "scaled": 0}
    )({"x": x, "pair": [y]}, F.tensor(3.0))
    assert_close(result["sum"], x.sum(1) + y.sum(0))
    assert_equal(result["scaled"][0], F.full((4,), 3.0))


def test_a_dim_may_stand_for_a_whole_subtree():
    x = sample(3, 2)
    result = vmap(lambda pair, z: pair[0] + pair[1] * z, in_dims=(0, None))((x, x * 2), 3.0)
    assert_close(result, x * 7)


def test_outputs_that_do_not_depend_on_the_batch_are_repeated():
    result = vmap(lambda s: F.ones(2))(sample(3))
    assert_equal(result, F.ones(3, 2))
    if IS_FACULA:  # PyTorch raises
        assert_equal(vmap(lambda s: F.ones(2), out_dims=1)(sample(3)), F.ones(2, 3))


def test_an_output_without_batch_may_keep_that_with_dim_none():
    a, b = vmap(lambda s: (s * 2, F.ones(2)), out_dims=(0, None))(sample(3))
    assert tuple(a.shape) == (3,) and tuple(b.shape) == (2,)


def test_nests():
    x, y = sample(3), sample(4)
    outer = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))
    assert_close(outer(x, y), x[:, None] * y)
    z = sample(2, 3, 4)
    assert_close(vmap(vmap(vmap(F.sin)))(z), z.sin())
    twice = vmap(vmap(lambda s: s.cumsum(0), in_dims=1, out_dims=1), in_dims=2, out_dims=2)
    w = sample(5, 3, 2)
    assert_close(twice(w), w.cumsum(0))


def test_the_function_sees_one_example():
    seen = []

    def function(s):
        seen.append((tuple(s.shape), s.dim(), s.numel(), s.size(-1), len(s)))
        return s

    vmap(function, in_dims=1)(sample(3, 4, 2))
    assert seen == [((3, 2), 2, 6, 2, 3)]


def test_python_control_flow_on_shapes_works():
    def function(s):
        return sum((s[i] * i for i in range(s.shape[0])), F.zeros(()))

    x = sample(4, 3)
    assert_close(vmap(function)(x), (x * F.arange(3)).sum(1))


def test_views_and_indexing():
    x = sample(4, 3, 5)

    def function(s):
        return s[1:, ::2].T.reshape(-1)[2:] + s.diagonal()[0] + s[..., -1].mean()

    assert_close(vmap(function)(x), F.stack([function(s) for s in x]))


def test_indices_may_be_batched():
    x, i = sample(4, 5), F.tensor([0, 3, 2, 4])
    assert_close(vmap(lambda s, k: s[k])(x, i), F.stack([s[k] for s, k in zip(x, i, strict=True)]))
    assert_close(vmap(lambda k: x[0][k])(i), x[0][i])


def test_reductions_with_and_without_dim():
    x = sample(4, 3, 2)
    for function in (
        lambda s: s.sum(),
        lambda s: s.mean(0),
        lambda s: s.amax(-1, keepdim=True),
        lambda s: s.argmax(),
        lambda s: s.std(),
        lambda s: s.logsumexp(1),
        lambda s: s.softmax(0),
    ):
        assert_close(vmap(function)(x), F.stack([function(s) for s in x]))


def test_matrix_products_of_every_rank():
    v, m, b = sample(4, 3), sample(4, 3, 3), sample(4, 2, 3, 3)
    for left in (v, m, b):
        for right in (v, m, b):
            expected = F.stack([a @ c for a, c in zip(left, right, strict=True)])
            assert_close(vmap(F.matmul)(left, right), expected)
            assert_close(
                vmap(F.matmul, in_dims=(0, None))(left, right[0]),
                F.stack([a @ right[0] for a in left]),
            )


def test_inplace_operators_on_the_argument_write_to_the_tensor():
    x = sample(3, 2)
    expected = x * 2 + 1
    result = vmap(lambda s: s.mul_(2).add_(1))(x)
    assert_close(result, expected)
    assert_close(x, expected)


def test_inplace_writes_through_views():
    def function(s):
        out = F.zeros_like(s)
        out[0] = s[1]
        out[1:].add_(s[0])
        return out

    x = sample(4, 3)
    assert_close(vmap(function)(x), F.stack([function(s) for s in x]))


def test_inplace_write_of_a_batch_into_a_captured_tensor_is_refused():
    captured = F.zeros(3)
    with pytest.raises(RuntimeError):
        vmap(lambda s: captured.mul_(s))(sample(4, 3))
    assert_equal(captured, F.zeros(3))


@pytest.mark.facula_only
def test_tensors_made_inside_may_be_written_to():
    def function(s):
        out = F.zeros(3)
        out.add_(s)
        table = F.ones(2, 3)
        table[0] = s
        table.T[1:, 1] *= s[:2]
        return out + table.sum(0)

    x = sample(4, 3)
    assert_close(vmap(function)(x), F.stack([function(s) for s in x]))
    assert_close(vmap(vmap(lambda s: F.zeros(()).add_(s)))(x), x)
    assert_close(F.func.grad(lambda x: (vmap(function)(x) ** 2).sum())(x), by_backward(function, x))
    assert_close(vmap(F.func.grad(lambda s: (function(s) ** 2).sum()))(x), by_backward(function, x))


def by_backward(function, x):
    leaf = x.clone().requires_grad_()
    (F.stack([function(s) for s in leaf]) ** 2).sum().backward()
    return leaf.grad


@pytest.mark.facula_only
def test_a_tensor_with_further_views_is_not_given_a_batch():
    def function(s):
        out = F.zeros(3)
        view = out[1:]
        out.add_(s)
        return out, view

    with pytest.raises(RuntimeError, match="vmap"):
        vmap(function)(sample(4, 3))


def test_dtypes_promote_as_outside():
    x = F.arange(4)
    result = vmap(lambda s: s * 1.5)(x)
    assert result.dtype == F.float32
    result = vmap(lambda s: s * F.tensor(1.5, dtype=F.float64))(x.to(F.float32))
    # A single example has no dimensions, as the other operand has none.
    assert result.dtype == F.float64


def test_batch_of_size_one_and_zero():
    assert_equal(vmap(lambda s: s * 2)(F.ones(1, 2)), F.full((1, 2), 2.0))
    assert tuple(vmap(lambda s: s * 2)(F.ones(0, 2)).shape) == (0, 2)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5, 100])
def test_chunks_give_the_same(chunk_size):
    x, y = sample(3, 5), sample(5, 2)

    def function(a, b):
        return (a.sum() * b, {"k": a})

    plain = vmap(function, in_dims=(1, 0), out_dims=(1, 0))(x, y)
    chunked = vmap(function, in_dims=(1, 0), out_dims=(1, 0), chunk_size=chunk_size)(x, y)
    assert_close(chunked[0], plain[0])
    assert_close(chunked[1]["k"], plain[1]["k"])


def test_wraps_the_function():
    def named(x):
        """Says what it does."""
        return x

    assert vmap(named).__name__ == "named" and vmap(named).__doc__ == "Says what it does."
    assert_equal(vmap(functools.partial(F.mul, F.tensor(2.0)))(F.ones(2)), F.full((2,), 2.0))


def test_the_top_level_name_is_the_same_function():
    assert_equal(F.vmap(lambda s: s + 1)(F.zeros(2)), F.ones(2))


def test_levels_end_when_the_function_raises():
    class Own(Exception):
        pass

    def failing(s):
        raise Own

    for _ in range(3):
        with pytest.raises(Own):
            vmap(vmap(failing))(sample(2, 3))
    assert_equal(vmap(lambda s: s + 1)(F.zeros(2)), F.ones(2))
    assert tuple(F.zeros(2).add(1).shape) == (2,)


# ---- what is refused


def test_no_inputs():
    with pytest.raises(ValueError, match="got no inputs"):
        vmap(lambda: F.ones(1))()


def test_nothing_mapped():
    with pytest.raises(ValueError, match="at least one Tensor"):
        vmap(lambda x: x, in_dims=(None,))(F.ones(2))


def test_sizes_that_differ():
    with pytest.raises(ValueError, match=r"same size in the mapped dimension, got sizes \[2, 3\]"):
        vmap(F.add)(F.ones(2), F.ones(3))


@pytest.mark.parametrize(
    ("in_dims", "words"),
    [
        ([0], "expected `in_dims` to be int or a"),
        (None, "expected `in_dims` to be int or a"),
        ((0, 0), "not compatible with the structure of `inputs`"),
        (((0,),), "not compatible with the structure of `inputs`"),
        ((0.5,), "must be either an integer dimension or None"),
        (2, "expected in_dim to satisfy -2 <= in_dim < 2"),
        (-3, "expected in_dim to satisfy -2 <= in_dim < 2"),
    ],
)
def test_in_dims_that_do_not_fit(in_dims, words):
    with pytest.raises(ValueError, match=words):
        vmap(lambda x: x, in_dims=in_dims)(F.ones(2, 3))


def test_values_that_are_no_tensors_are_not_mapped():
    with pytest.raises(ValueError, match="cannot vmap over non-Tensor arguments"):
        vmap(lambda x, y: x)(F.ones(2), 3)


@pytest.mark.parametrize(
    ("out_dims", "words"),
    [
        ("0", "`out_dims` must be an int"),
        ((0, 0), "not compatible with the structure of `outputs`"),
        ({"a": 0}, "not compatible with the structure of `outputs`"),
    ],
)
def test_out_dims_that_do_not_fit(out_dims, words):
    with pytest.raises(ValueError, match=words):
        vmap(lambda x: x, out_dims=out_dims)(F.ones(2, 3))


def test_a_tuple_of_one_dim_goes_with_one_tensor():
    assert_equal(vmap(lambda x: x, out_dims=(1,))(sample(2, 3)), sample(2, 3).T)


def test_out_dim_out_of_range():
    with pytest.raises(IndexError):
        vmap(lambda x: x, out_dims=5)(F.ones(2, 3))


def test_outputs_that_are_no_tensors():
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda x: (x, 3))(F.ones(2))
    assert vmap(lambda x: (x, 3), out_dims=(0, None))(F.ones(2))[1] == 3


def test_batched_output_with_dim_none():
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        vmap(lambda x: x * 2, out_dims=None)(F.ones(2))


def test_chunk_size_must_be_positive():
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        vmap(lambda x: x, chunk_size=0)


def test_randomness_must_be_known():
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(lambda x: x, randomness="sometimes")


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.sum().item(),
        lambda s: bool(s.sum() > 0),
        lambda s: float(s.sum()),
        lambda s: int(s.sum()),
        lambda s: 1 if s.sum() > 0 else 2,
    ],
    ids=["item", "bool", "float", "int", "if"],
)
def test_numbers_of_a_batch_are_refused(use):
    def function(s):
        use(s)
        return s

    with pytest.raises(RuntimeError, match="vmap"):
        vmap(function)(sample(3, 2))


def test_results_of_a_shape_that_depends_on_data_are_refused():
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda s: s[s > 0.5])(sample(3, 2))
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(F.nonzero)(sample(3, 2))


# ---- printing


def test_a_batched_tensor_prints_its_value():
    texts = []

    def function(s):
        texts.append(repr(s))
        return s

    vmap(function)(F.tensor([1.0, 2.0]))
    assert texts[0].startswith("BatchedTensor(lvl=1, bdim=0, value=\n")
    assert "tensor([1., 2.])" in texts[0]


def test_debug_unwrap_shows_what_is_behind():
    seen = []

    def function(s):
        seen.append(F.func.debug_unwrap(s))
        seen.append(F.func.debug_unwrap(s, recurse=False))
        return s.sum()

    x = sample(3, 2)
    vmap(F.func.grad(function))(x)
    assert_equal(seen[0], x)
    assert tuple(seen[1].shape) == (2,)
    assert F.func.debug_unwrap(x) is x


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's default is float32 too, but says so elsewhere")
def test_a_tensor_that_outlives_its_vmap_behaves_like_its_value():
    kept = []

    def function(s):
        kept.append(s)
        return s

    x = sample(3, 2)
    vmap(function)(x)
    assert_close(kept[0] * 2, x * 2)


def test_gradients_of_what_masks_of_a_batch_scatter():
    x = F.arange(6.0).reshape(2, 3)
    source = F.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = F.tensor([[True, False, True], [False, True, False]])

    def loss(x, source, mask):
        return (x.masked_scatter(mask, source) * F.tensor([1.0, 10.0, 100.0])).sum()

    by_x, by_source = F.func.vmap(F.func.grad(loss, argnums=(0, 1)))(x, source, mask)
    assert by_x.tolist() == [[0.0, 10.0, 0.0], [1.0, 0.0, 100.0]]
    assert by_source.tolist() == [[1.0, 100.0, 0.0], [10.0, 0.0, 0.0]]


def test_gathering_has_the_shape_of_the_index():
    x, vector, scalar = F.arange(3.0), F.tensor([0, 0]), F.tensor(1)
    assert F.vmap(lambda x: F.gather(x, 0, vector))(x).tolist() == [[0.0, 0.0], [1, 1], [2, 2]]
    assert F.vmap(lambda x, i: F.gather(x, 0, i))(x, F.zeros(3, 1).long()).shape == (3, 1)
    rows = F.arange(6.0).reshape(3, 2)
    assert F.vmap(lambda x: F.gather(x, 0, scalar))(rows).tolist() == [1.0, 3.0, 5.0]
    assert F.vmap(lambda x: F.gather(x, 0, vector))(rows).tolist() == [[0.0, 0.0], [2, 2], [4, 4]]


def test_numbers_are_written_into_vectors():
    rows, numbers = F.zeros(2, 3), F.tensor([5.0, 7.0])
    written = F.vmap(lambda x, v: F.select_scatter(x, v, 0, -1))(rows, numbers)
    assert written.tolist() == [[0.0, 0.0, 5.0], [0.0, 0.0, 7.0]]
    shared = F.vmap(lambda v: F.select_scatter(rows, v.expand(3), 0, 1))(numbers)
    assert shared[1].tolist() == [[0.0] * 3, [7.0] * 3]


def test_counts_of_each_element_of_a_batch():
    x = F.tensor([[0, 1], [3, 3]])
    assert F.vmap(lambda x: F.bincount(x, minlength=4))(x).tolist() == [[1, 1, 0, 0], [0, 0, 0, 2]]
    weights = F.tensor([[0.5, 1.5], [1.0, 2.0]])
    counts = F.vmap(lambda w: F.bincount(F.tensor([1, 1]), w, minlength=3))(weights)
    assert counts.tolist() == [[0.0, 2.0, 0.0], [0.0, 3.0, 0.0]]
    with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size"):
        F.vmap(F.bincount)(x)
