"""Trees of Python containers: taken apart into a flat list of leaves and put together again.

A node is a container that is registered here (tuple, list, dict, OrderedDict, defaultdict, deque,
named tuples and the named results of operators from the start); everything else, ``None``
included, is a leaf. Subclasses of the containers are leaves unless they are registered themselves.

Example::

    >>> from facula.utils import _pytree as pytree
    >>> leaves, spec = pytree.tree_flatten({"a": 1, "b": [2, 3]})
    >>> leaves
    [1, 2, 3]
    >>> pytree.tree_unflatten([10, 20, 30], spec)
    {'a': 10, 'b': [20, 30]}
"""

from __future__ import annotations

import json
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import facula
from facula.utils import _treespec_text

__all__ = [
    "SUPPORTED_NODES",
    "Context",
    "FlattenFn",
    "KeyPath",
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "UnflattenFn",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

PyTree = Any
Context = Any
KeyPath = tuple[Any, ...]
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[Any, Any]], Context]]
IsLeaf = Callable[[PyTree], bool]


# ---- the steps of a path


@dataclass(frozen=True)
class SequenceKey:
    """The step to item ``idx`` of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The step to the value under ``key`` of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The step to the attribute ``name``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        return getattr(parent, self.name)


# ---- kinds of nodes


class NodeDef(NamedTuple):
    """How one type of node is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_CONSTANTS: set[type] = set()
_DICTS = (dict, OrderedDict, defaultdict)


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Makes a class a kind of node.

    Args:
        cls: the class; its subclasses are not included.
        flatten_fn: takes an instance, returns its children and a context that compares with ``==``.
        unflatten_fn: takes children and the context, returns an instance.
        flatten_with_keys_fn: like ``flatten_fn``, with ``(key, child)`` pairs; for the functions
            that deal in paths.
        serialized_type_name: what :func:`treespec_dumps` calls the class.
        to_dumpable_context: turns a context into what JSON can hold, where it is not such already.
        from_dumpable_context: the reverse.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> class Pair:
        ...     def __init__(self, first, second):
        ...         self.first, self.second = first, second
        >>> pytree.register_pytree_node(
        ...     Pair, lambda p: ([p.first, p.second], None), lambda values, _: Pair(*values)
        ... )
        >>> pytree.tree_leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _treespec_text.register(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _register_pytree_node(
    cls: type, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, **options: Any
) -> None:
    """The older form of :func:`register_pytree_node`, in which a later call replaces an earlier."""
    warnings.warn(
        "`_pytree._register_pytree_node` is deprecated. Please use "
        "`_pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.",
            stacklevel=2,
        )
        _deregister_pytree_node(cls)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type) -> None:
    """Makes instances of a class leaves again."""
    del SUPPORTED_NODES[cls]
    _treespec_text.forget(cls)
    _CONSTANTS.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a kind of node; fields that are None belong to the structure.

    Args:
        cls: the class. It may be of another kind when its constructor takes fields by name.
        field_names: the fields that are children; all that the constructor takes by default.
        drop_field_names: fields that are left out, and get their default again.
        serialized_type_name: what :func:`treespec_dumps` calls the class.

    Example::

        >>> from dataclasses import dataclass, fields, is_dataclass
        >>> from facula.utils import _pytree as pytree
        >>> @dataclass
        ... class Point:
        ...     x: float
        ...     y: float
        >>> pytree.register_dataclass(Point)
        >>> pytree.tree_map(lambda v: 2 * v, [Point(1, 2)])
        [Point(x=2, y=4)]
    """
    if is_dataclass(cls):
        takes = [field.name for field in fields(cls) if field.init]
        if field_names is None:
            field_names = [name for name in takes if name not in (drop_field_names or ())]
        if missing := set(takes) - {*field_names, *(drop_field_names or ())}:
            raise ValueError(
                "field_names does not include all dataclass fields.\nMissing fields in "
                f"`field_names`: {missing}. If you want to include these fields in the pytree, "
                "please add them to `field_names`, otherwise please add them to "
                "`drop_field_names`."
            )
    elif field_names is None:
        raise ValueError(
            "field_names must be specified with a list of all fields used to initialize "
            f"{cls}, as it is not a dataclass."
        )
    names = field_names

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        values = [(name, getattr(obj, name)) for name in names]
        present = [(name, value) for name, value in values if value is not None]
        absent = [name for name, value in values if value is None]
        return [(GetAttrKey(n), v) for n, v in present], [[n for n, _ in present], absent]

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        pairs, context = flatten_with_keys(obj)
        return [value for _, value in pairs], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    if cls in SUPPORTED_NODES:
        _deregister_pytree_node(cls)
    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def register_constant(cls: type) -> None:
    """Makes instances of a class, which must compare and hash by value, part of the structure.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> class Mode(str):
        ...     pass
        >>> pytree.register_constant(Mode)
        >>> pytree.tree_leaves([1, Mode("train")])
        [1]
    """
    if getattr(cls, "__eq__", None) is object.__eq__:
        raise TypeError(f"register_constant: {cls} must have an __eq__ that compares by value")
    if cls.__hash__ is None:
        raise TypeError(f"register_constant: {cls} must have a __hash__")
    register_pytree_node(
        cls, lambda x: ([], x), lambda _, x: x, flatten_with_keys_fn=lambda x: ([], x)
    )
    _CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether ``register_constant`` was called for the class."""
    return cls in _CONSTANTS


def _sequence_flatten(d: Iterable[Any]) -> tuple[list[Any], Context]:
    return list(d), None


def _sequence_flatten_with_keys(d: Iterable[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(SequenceKey(i), x) for i, x in enumerate(d)], None


def _dict_flatten(d: Mapping[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d: Mapping[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(k), x) for k, x in d.items()], list(d.keys())


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d.keys())]


def _defaultdict_flatten_with_keys(d: defaultdict[Any, Any]) -> Any:
    return [(MappingKey(k), x) for k, x in d.items()], [d.default_factory, list(d.keys())]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    factory, keys = context
    return defaultdict(factory, _dict_unflatten(values, keys))


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return _sequence_flatten_with_keys(d)[0], d.maxlen


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return [(GetAttrKey(n), x) for n, x in zip(d._fields, d, strict=True)], type(d)


def _register_result_type(cls: type) -> None:
    """The named results of operators (values, indices ...) are tuples of a type of their own."""
    register_pytree_node(
        cls,
        _sequence_flatten,
        lambda values, _: cls(values),
        flatten_with_keys_fn=_sequence_flatten_with_keys,
    )


for _cls, _flatten, _unflatten, _with_keys in (
    (tuple, _sequence_flatten, lambda v, _: tuple(v), _sequence_flatten_with_keys),
    (list, _sequence_flatten, lambda v, _: list(v), _sequence_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    (
        defaultdict,
        _defaultdict_flatten,
        _defaultdict_unflatten,
        _defaultdict_flatten_with_keys,
    ),
    (deque, _deque_flatten, lambda v, maxlen: deque(v, maxlen), _deque_flatten_with_keys),
    (namedtuple, _namedtuple_flatten, lambda v, cls: cls(*v), _namedtuple_flatten_with_keys),
    (facula.Size, _sequence_flatten, lambda v, _: tuple(v), _sequence_flatten_with_keys),
):
    SUPPORTED_NODES[_cls] = NodeDef(_cls, _flatten, _unflatten, _with_keys)
_treespec_text.register_builtin_kinds()
BUILTIN_TYPES: frozenset[Any] = frozenset(SUPPORTED_NODES)


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by ``collections.namedtuple`` or ``typing.NamedTuple``."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(field) is str for field in fields)
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples, which are nodes anyway, a name in texts."""
    _treespec_text.register(
        cls, serialized_type_name, lambda _: serialized_type_name, _treespec_text.KINDS.get
    )


def is_namedtuple(obj: object) -> bool:
    """Whether an object is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a tuple with named fields from C, such as ``time.struct_time``."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and cls.__bases__ == (tuple,)
        and all(
            isinstance(getattr(cls, name, None), int)
            for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object is a tuple with named fields from C."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether an object is a tuple with named fields from C, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_LEAF_TYPES: set[type] = {facula.Tensor, int, float, complex, bool, str, bytes, types.NoneType}


def _get_node_type(tree: Any) -> Any:
    """The entry of SUPPORTED_NODES for a value, or its type when it is a leaf."""
    cls = type(tree)
    if cls in SUPPORTED_NODES or cls in _LEAF_TYPES or not issubclass(cls, tuple):
        return cls
    if is_structseq_class(cls) and cls.__module__.startswith(facula.__name__):
        _register_result_type(cls)
        return cls
    return namedtuple if is_namedtuple_class(cls) else cls


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a value is a leaf.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_is_leaf(1), pytree.tree_is_leaf([1])
        (True, False)
    """
    if is_leaf is not None and is_leaf(tree):
        return True
    return _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


# ---- structures


class TreeSpec:
    """The structure of a tree: what is left when the leaves are taken out."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")
    num_nodes: int
    num_leaves: int

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
        self.num_leaves = sum(c.num_leaves for c in self._children)

    @property
    def context(self) -> Context:
        """What the flatten function of the type said beside the children."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this is the structure of a single leaf."""
        return False

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with the given leaves."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        values = [c._build(leaves) for c in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(values, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees of ``tree`` that stand where this structure has leaves."""
        subtrees: list[PyTree] = []
        self._collect(tree, subtrees)
        return subtrees

    def _collect(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        cls = _get_node_type(tree)
        alike = self.type in _DICTS and cls in _DICTS
        if cls is not self.type and not alike:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {cls!r}.")
        children, context = SUPPORTED_NODES[cls].flatten_fn(tree)
        if alike:
            children = self._in_our_order(tree)
        elif len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        elif context != self._context:
            raise ValueError(
                f"Node context mismatch; expected {self._context!r}, but got {context!r}."
            )
        for spec, child in zip(self._children, children, strict=True):
            spec._collect(child, subtrees)

    def _in_our_order(self, tree: Mapping[Any, Any]) -> list[Any]:
        keys = self._context[1] if self.type is defaultdict else self._context
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            message = "Node keys mismatch"
            if missing:
                message += f"; missing key(s): {missing}"
            if extra:
                message += f"; extra key(s): {extra}"
            raise ValueError(message + ".")
        return [tree[k] for k in keys]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.num_leaves == other.num_leaves
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        if self.type is defaultdict:
            context: Hashable = (self._context[0], tuple(self._context[1]))
        elif isinstance(self._context, list):
            context = tuple(self._context)
        else:
            context = self._context
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        indent += 2
        separator = ",\n" + " " * indent
        children = separator.join(c.__repr__(indent) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context!r}, [{children}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, ())
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        return next(leaves)

    def _collect(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        subtrees.append(tree)

    def __repr__(self, indent: int = 0) -> str:
        return "*"


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.treespec_leaf() == pytree.tree_structure(1)
        True
    """
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """The structure of a tuple of trees.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.treespec_tuple([pytree.treespec_leaf()])
        TreeSpec(tuple, None, [*])
    """
    return TreeSpec(tuple, None, iterable)


def treespec_dict(mapping: Any = (), **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of trees.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.treespec_dict(a=pytree.treespec_leaf())
        TreeSpec(dict, ['a'], [*])
    """
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), items.values())


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON, in PyTorch's form.

    Args:
        treespec: the structure.
        protocol: the version of the form: 1, or None for the latest.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.treespec_dumps(pytree.tree_structure(1))
        '[1, {"type": null, "context": null, "children_spec": []}]'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    _check_protocol(_treespec_text.PROTOCOL if protocol is None else protocol)
    return json.dumps([_treespec_text.PROTOCOL, _treespec_text.described(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that :func:`treespec_dumps` wrote.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> text = pytree.treespec_dumps(pytree.tree_structure([1, (2,)]))
        >>> pytree.treespec_loads(text) == pytree.tree_structure([1, (2,)])
        True
    """
    protocol, described = json.loads(serialized)
    _check_protocol(protocol)

    def make(kind: Any, context: Context, children: list[TreeSpec]) -> TreeSpec:
        return TreeSpec(kind if kind in SUPPORTED_NODES else namedtuple, context, children)

    spec: TreeSpec = _treespec_text.read(described, make, _LEAF_SPEC)
    return spec


def _check_protocol(protocol: int) -> None:
    if protocol != _treespec_text.PROTOCOL:
        raise ValueError(
            f"Unknown protocol {protocol}. Available protocols: [{_treespec_text.PROTOCOL}]"
        )


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as a tree of asterisks.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.treespec_pprint(pytree.tree_structure({"a": [1, 2]}))
        "{'a': [*, *]}"
    """
    return repr(tree_unflatten([_Asterisk()] * treespec.num_leaves, treespec))


# ---- trees


def _flatten_into(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeSpec:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF_SPEC
    cls = _get_node_type(tree)
    node = SUPPORTED_NODES.get(cls)
    if node is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(cls, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree and its structure.

    Args:
        tree: any value.
        is_leaf: where it is true of a node, that node counts as a leaf.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_flatten((1, [2]))
        ([1, 2], TreeSpec(tuple, None, [*,
          TreeSpec(list, None, [*])]))
    """
    leaves: list[Any] = []
    spec = _flatten_into(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with the given leaves.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_unflatten([1, 2], pytree.tree_structure([0, (0,)]))
        [1, (2,)]
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves of a tree, one after the other.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> list(pytree.tree_iter([1, (2, 3)]))
        [1, 2, 3]
    """
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_leaves({"a": (1, None)})
        [1, None]
    """
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.arg_tree_leaves([1, 2], key=3)
        [1, 2, 3]
    """
    return tree_leaves((*args, *kwargs.values()))


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """The structure of a tree.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_structure([1, 2]) == pytree.tree_structure(["a", "b"])
        True
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """A tree with ``func`` of every leaf; further trees give ``func`` further arguments.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": (2,)}, {"x": 10, "y": (20,)})
        {'x': 11, 'y': (22,)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(r) for r in rests)]
    return spec.unflatten([func(*values) for values in zip(*columns, strict=True)])


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """Calls ``func`` on every leaf and returns the tree as it came.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_map_(print, [1, 2])
        1
        2
        [1, 2]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _predicate(type_or_types_or_pred: Any) -> Callable[[Any], bool]:
    given = type_or_types_or_pred
    if isinstance(given, (type, tuple, types.UnionType)):
        return lambda x: isinstance(x, given)
    if callable(given):
        return given  # type: ignore[no-any-return]
    raise TypeError(f"Argument must be a type, a tuple of types, or a callable, got {given!r}.")


def map_only(
    type_or_types_or_pred: Any, /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is called for values of a type only, others stay as they are.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> twice = pytree.map_only(int)(lambda x: 2 * x)
        >>> twice(3), twice("3")
        (6, '3')
    """
    wanted = _predicate(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if wanted(x) else x


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """``tree_map`` of the leaves of some types, or of which a predicate holds.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_map_only(int, lambda x: -x, [1, "a"])
        [-1, 'a']
    """
    chosen = _predicate(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """``tree_map_`` of the leaves of some types, or of which a predicate holds.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> _ = pytree.tree_map_only_(str, print, [1, "a"])
        a
    """
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf=is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a predicate holds for all leaves.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_all(lambda x: x > 0, [1, (2,)])
        True
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a predicate holds for any leaf.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_any(lambda x: x > 1, [1, (2,)])
        True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """Whether a predicate holds for all leaves of some types.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
        True
    """
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: Any,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> bool:
    """Whether a predicate holds for any leaf of some types.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
        False
    """
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf | None = None
) -> list[Any] | None:
    """The leaves of ``tree``, a prefix of the structure, one for each leaf of the structure.

    A leaf of the prefix counts for the whole subtree in its place. None when it is no prefix.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    cls = _get_node_type(tree)
    if treespec.is_leaf() or cls is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[cls].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        result += flat
    return result


# ---- paths


def _walk_paths(
    path: KeyPath, tree: PyTree, is_leaf: IsLeaf | None
) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _walk_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each after the path that leads to it.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> [(pytree.keystr(path), x) for path, x in pytree.tree_leaves_with_path({"a": [5, 6]})]
        [("['a'][0]", 5), ("['a'][1]", 6)]
    """
    return list(_walk_paths((), tree, is_leaf))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """``tree_flatten`` with the path to each leaf.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_flatten_with_path([7])
        ([((SequenceKey(idx=0),), 7)], TreeSpec(list, None, [*]))
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """``tree_map`` of a function that takes the path first.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.tree_map_with_path(lambda path, x: pytree.keystr(path), {"a": (1,)})
        {'a': ("['a'][0]",)}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [*zip(*pairs, strict=True), *(spec.flatten_up_to(r) for r in rests)]
    return spec.unflatten([func(*values) for values in zip(*columns, strict=True)])


def keystr(kp: KeyPath) -> str:
    """A path as it stands in a program.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.keystr((pytree.MappingKey("a"), pytree.SequenceKey(0)))
        "['a'][0]"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to.

    Example::

        >>> from facula.utils import _pytree as pytree
        >>> pytree.key_get({"a": [5]}, (pytree.MappingKey("a"), pytree.SequenceKey(0)))
        5
    """
    for key in kp:
        obj = key.get(obj)
    return obj
