"""Trees of containers: flattening, mapping, structures, paths."""

import collections
import dataclasses
import importlib
import time

import pytest
from package_under_test import F

pytree = importlib.import_module(f"{F.__name__}.utils._pytree")

Point = collections.namedtuple("Point", "x y")


def example_tree():
    return {
        "b": [1, (2, Point(3, None))],
        "a": collections.OrderedDict(z=4, y=collections.deque([5, 6], maxlen=4)),
        "d": collections.defaultdict(list, {"q": 7}),
    }


def test_flatten_lists_the_leaves_in_order_and_unflatten_restores_the_types():
    tree = example_tree()
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again["b"][1][1]) is Point
    assert type(again["a"]) is collections.OrderedDict
    assert again["a"]["y"].maxlen == 4
    assert again["d"].default_factory is list
    assert (spec.num_leaves, spec.num_children) == (8, 3)


def test_tensors_strings_and_none_are_leaves():
    for leaf in (F.ones(2), "text", None, 3, object()):
        assert pytree.tree_is_leaf(leaf)
        leaves, spec = pytree.tree_flatten(leaf)
        assert leaves[0] is leaf and spec.is_leaf()


def test_subclasses_of_containers_are_leaves():
    class Numbers(list):
        pass

    class Names(dict):
        pass

    for value in (Numbers([1]), Names(a=1), time.localtime()):
        assert pytree.tree_leaves(value)[0] is value


def test_named_results_of_operators_are_nodes():
    result = F.max(F.tensor([[1.0, 3.0], [2.0, 0.0]]), 1)
    doubled = pytree.tree_map(lambda t: t * 2, result)
    assert type(doubled) is type(result)
    assert doubled.values.tolist() == [6.0, 4.0]
    assert doubled.indices.tolist() == [2, 0]


def test_specs_print_like_constructors():
    spec = pytree.tree_structure({"a": [1, (2,)]})
    assert repr(spec) == (
        "TreeSpec(dict, ['a'], [TreeSpec(list, None, [*,\n    TreeSpec(tuple, None, [*])])])"
    )
    assert repr(pytree.tree_structure(Point(1, 2))).startswith("TreeSpec(namedtuple, ")
    assert pytree.treespec_pprint(spec) == "{'a': [*, (*,)]}"


def test_specs_compare_by_structure_and_order_of_keys():
    structure = pytree.tree_structure
    assert structure([1, (2,)]) == structure(["a", ("b",)])
    assert structure([1]) != structure((1,))
    assert structure({"a": 1, "b": 2}) != structure({"b": 1, "a": 2})
    assert structure(Point(1, 2)) != structure((1, 2))
    assert hash(structure({"a": [1]})) == hash(structure({"a": [2]}))
    assert len({structure([1]), structure([2]), structure((1,))}) == 2
    assert pytree.treespec_tuple([pytree.treespec_leaf()]) == structure((1,))
    assert pytree.treespec_dict({"a": pytree.treespec_leaf()}) == structure({"a": 1})
    assert structure(1) == pytree.LeafSpec()


def test_children_of_a_spec():
    spec = pytree.tree_structure([1, {"k": 2}])
    assert spec.type is list and spec.context is None
    assert spec.children() == [spec.child(0), spec.child(1)]
    assert spec.child(0).is_leaf() and spec.child(1).context == ["k"]


def test_map_over_several_trees_stops_at_the_leaves_of_the_first():
    assert pytree.tree_map(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert pytree.tree_map(lambda a, b: (a, b), [1, 2], [3, [4]]) == [(1, 3), (2, [4])]


def test_map_pairs_dicts_by_key():
    result = pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 20, "a": 10})
    assert result == {"a": (1, 10), "b": (2, 20)}
    ordered = collections.OrderedDict(a=3)
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1}, ordered) == {"a": 4}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([1, 2], [1, 2, 3], "arity"),
        ([1, 2], (1, 2), "type"),
        ([[1], 2], [1, 2], "type"),
        ({"a": 1}, {"b": 1}, "key"),
        (Point(1, 2), (1, 2), "type"),
    ],
)
def test_map_refuses_trees_of_another_structure(first, second, words):
    with pytest.raises(ValueError, match=words):
        pytree.tree_map(lambda a, b: a, first, second)


def test_unflatten_checks_its_arguments():
    with pytest.raises(ValueError, match="3 but the spec refers to a pytree that holds 2"):
        pytree.tree_unflatten([1, 2, 3], pytree.tree_structure([0, 0]))
    with pytest.raises(TypeError, match="treespec"):
        pytree.tree_unflatten([1], 3)


def test_map_only_chooses_by_type_or_predicate():
    tree = [1, "s", 2.0]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == [-1, "s", 2.0]
    assert pytree.tree_map_only((int, float), lambda x: -x, tree) == [-1, "s", -2.0]
    assert pytree.tree_map_only(lambda x: x == 2.0, lambda x: -x, tree) == [1, "s", -2.0]
    with pytest.raises(TypeError):
        pytree.tree_map_only(3, lambda x: x, tree)


def test_map_in_place_returns_its_argument():
    seen, tree = [], [1, (2,)]
    assert pytree.tree_map_(seen.append, tree) is tree
    assert pytree.tree_map_only_(int, seen.append, tree) is tree
    assert seen == [1, 2, 1, 2]


def test_any_and_all():
    assert pytree.tree_all(lambda x: x > 0, [1, (2,)])
    assert not pytree.tree_any(lambda x: x > 2, [1, (2,)])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    assert not pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])


def test_is_leaf_stops_the_descent():
    def is_pair(x):
        return isinstance(x, list) and len(x) == 2

    assert pytree.tree_leaves([[1, 2], [3]], is_leaf=is_pair) == [[[1, 2], [3]]]
    assert pytree.tree_leaves([[1, 2], [3], 4], is_leaf=is_pair) == [[1, 2], 3, 4]
    assert list(pytree.tree_iter([[1, 2], [3], 4], is_leaf=is_pair)) == [[1, 2], 3, 4]


def test_registered_classes_are_nodes():
    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    def flatten(pair):
        return [pair.first, pair.second], None

    def with_keys(pair):
        return [(pytree.GetAttrKey(k), getattr(pair, k)) for k in ("first", "second")], None

    pytree.register_pytree_node(
        Pair, flatten, lambda v, _: Pair(*v), flatten_with_keys_fn=with_keys
    )
    moved = pytree.tree_map(lambda x: x + 1, [Pair(1, 2)])[0]
    assert (moved.first, moved.second) == (2, 3)
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path([Pair(1, 2)])]
    assert paths == ["[0].first", "[0].second"]
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, flatten, lambda v, _: Pair(*v))


def test_constants_are_part_of_the_structure():
    class Mode(str):
        pass

    pytree.register_constant(Mode)
    assert pytree.tree_leaves([1, Mode("a")]) == [1]
    structure = pytree.tree_structure
    assert structure([1, Mode("a")]) == structure([2, Mode("a")])
    assert structure([1, Mode("a")]) != structure([1, Mode("b")])
    with pytest.raises(TypeError):
        pytree.register_constant(type("NoEq", (), {}))


def test_paths_lead_to_the_leaves():
    tree = example_tree()
    pairs, spec = pytree.tree_flatten_with_path(tree)
    assert spec == pytree.tree_structure(tree)
    assert [leaf for _, leaf in pairs] == pytree.tree_leaves(tree)
    for path, leaf in pairs:
        assert pytree.key_get(tree, path) is leaf
    assert pytree.keystr(pairs[2][0]) == "['b'][1][1].x"
    mapped = pytree.tree_map_with_path(lambda path, x: (len(path), x), {"a": [5]})
    assert mapped == {"a": [(2, 5)]}


def test_prefixes_are_spread_over_the_structure():
    spread = pytree._broadcast_to_and_flatten
    structure = pytree.tree_structure
    assert spread((0, None), structure(([1, 2], 3))) == [0, 0, None]
    assert spread({"a": 0}, structure({"a": [1, 2]})) == [0, 0]
    assert spread(0, structure([1, (2, 3)])) == [0, 0, 0]
    assert spread((0, None, 1), structure(([1, 2], 3))) is None
    assert spread([0], structure((1,))) is None
    assert spread(((0,),), structure((1,))) is None


def test_arguments_are_flattened_together():
    assert pytree.arg_tree_leaves(1, [2, (3,)], key={"a": 4}) == [1, 2, 3, 4]


def test_kinds_of_tuples():
    assert pytree.is_namedtuple(Point) and pytree.is_namedtuple(Point(1, 2))
    assert pytree.is_namedtuple_instance(Point(1, 2)) and not pytree.is_namedtuple((1, 2))
    assert pytree.is_structseq(time.localtime()) and pytree.is_structseq_class(time.struct_time)
    assert not pytree.is_structseq(Point(1, 2))


class Weights:
    def __init__(self, values, unit):
        self.values, self.unit = values, unit


@pytest.fixture
def weights():
    pytree.register_pytree_node(
        Weights,
        lambda w: ([w.values], w.unit),
        lambda values, unit: Weights(*values, unit),
        serialized_type_name="tests.Weights",
    )
    yield Weights
    pytree._deregister_pytree_node(Weights)


def test_structures_are_written_as_json_and_read_again(weights):
    tree = [{"b": 1, "a": (2, None)}, collections.deque([3], maxlen=4), weights([4, 5], "kg")]
    tree.append(collections.defaultdict(list, q=[6]))
    spec = pytree.tree_structure(tree)
    text = pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(text) == spec
    assert pytree.treespec_dumps(pytree.tree_structure([1])) == (
        '[1, {"type": "builtins.list", "context": "null", "children_spec": '
        '[{"type": null, "context": null, "children_spec": []}]}]'
    )
    assert '{"type": "tests.Weights", "context": "\\"kg\\""' in text


def test_structures_that_cannot_be_written_or_read_say_why():
    with pytest.raises(NotImplementedError, match="Point"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    with pytest.raises(NotImplementedError, match="Deserializing tests"):
        pytree.treespec_loads(
            '[1, {"type": "tests.Unknown", "context": "null", "children_spec": []}]'
        )
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        pytree.treespec_dumps(pytree.tree_structure(1), 2)
    with pytest.raises(TypeError, match="TreeSpec"):
        pytree.treespec_dumps([1])


def test_a_named_tuple_with_a_name_can_be_written():
    Pair = collections.namedtuple("Pair", "a b")
    pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    spec = pytree.tree_structure([Pair(1, [2])])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


@dataclasses.dataclass
class Batch:
    inputs: object
    mask: object = None
    step: int = 0


def test_dataclasses_are_nodes_whose_fields_of_none_belong_to_the_structure():
    pytree.register_dataclass(Batch, field_names=["inputs", "mask"], drop_field_names=["step"])
    pairs, spec = pytree.tree_flatten_with_path([Batch((1, 2), None, 7)])
    assert [(pytree.keystr(path), leaf) for path, leaf in pairs] == [
        ("[0].inputs[0]", 1),
        ("[0].inputs[1]", 2),
    ]
    assert pytree.tree_unflatten([3, 4], spec) == [Batch((3, 4))]
    assert spec != pytree.tree_structure([Batch((1, 2), 5)])
    with pytest.raises(ValueError, match="does not include all dataclass fields"):
        pytree.register_dataclass(Batch, field_names=["inputs"])
    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(int)
    pytree._deregister_pytree_node(Batch)
    assert len(pytree.tree_leaves(Batch(1))) == 1


def test_the_older_registration_replaces_what_was_registered(weights):
    with pytest.warns((FutureWarning, UserWarning)):
        pytree._register_pytree_node(
            weights, lambda w: ([w.unit], None), lambda values, _: Weights(None, *values)
        )
    assert pytree.tree_leaves(weights([1], "kg")) == ["kg"]


def test_map_only_leaves_other_values_alone():
    twice = pytree.map_only(int)(lambda x: 2 * x)
    assert [twice(3), twice("3")] == [6, "3"]
