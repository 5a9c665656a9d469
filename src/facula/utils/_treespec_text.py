"""Structures of trees as JSON, in PyTorch's form: what ``treespec_dumps`` writes."""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import facula

PROTOCOL = 1


class Written(NamedTuple):
    """How a kind of node stands in the text: its name, and its context to JSON and back."""

    name: str | None
    to_dumpable: Callable[[Any], Any] | None
    from_dumpable: Callable[[Any], Any] | None


WRITTEN: dict[Any, Written] = {}
KINDS: dict[str, Any] = {}  # by name


def register(
    cls: Any,
    name: str | None,
    to_dumpable: Callable[[Any], Any] | None,
    from_dumpable: Callable[[Any], Any] | None,
) -> None:
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    WRITTEN[cls] = Written(name, to_dumpable, from_dumpable)
    if name is not None:
        KINDS[name] = cls


def forget(cls: Any) -> None:
    written = WRITTEN.pop(cls, None)
    if written is not None and written.name is not None:
        del KINDS[written.name]


def _defaultdict_to_dumpable(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_from_dumpable(dumped: dict[str, Any]) -> list[Any]:
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


def register_builtin_kinds() -> None:
    for cls, name in (
        (tuple, "builtins.tuple"),
        (list, "builtins.list"),
        (dict, "builtins.dict"),
        (OrderedDict, "collections.OrderedDict"),
        (deque, "collections.deque"),
        (facula.Size, "torch.Size"),
    ):
        register(cls, name, None, None)
    register(
        defaultdict,
        "collections.defaultdict",
        _defaultdict_to_dumpable,
        _defaultdict_from_dumpable,
    )


def _encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return {"__enum__": True, "fqn": f"{type(value).__module__}:{value}"}
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def _decode(value: dict[str, Any]) -> Any:
    if "__enum__" not in value:
        return value
    module, _, path = value["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not isinstance(found, Enum):
        raise ValueError(f"treespec_loads: {value['fqn']} is no member of an enumeration")
    return found


def described(spec: Any) -> dict[str, Any]:
    """A structure as what JSON can hold."""
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    # A named tuple's kind is the class that its context names.
    cls = spec.type if spec.type in WRITTEN else spec.context
    written = WRITTEN.get(cls)
    if written is None:
        raise NotImplementedError(f"Serializing {cls} in pytree is not registered.")
    if written.name is None:
        raise NotImplementedError(
            f"No registered serialization name for {cls} found. Please update your "
            "register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if written.to_dumpable is not None:
        context = written.to_dumpable(spec.context)
    else:
        try:
            context = json.dumps(spec.context, default=_encode)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using register_pytree_node."
            ) from error
    children = [described(child) for child in spec.children()]
    return {"type": written.name, "context": context, "children_spec": children}


def read(described: dict[str, Any], make: Callable[[Any, Any, list[Any]], Any], leaf: Any) -> Any:
    """The structure of a description; ``make(kind, context, children)`` makes a node of it."""
    if (name := described["type"]) is None:
        return leaf
    if name not in KINDS:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    cls, context = KINDS[name], described["context"]
    from_dumpable = WRITTEN[cls].from_dumpable
    if from_dumpable is not None:
        context = from_dumpable(context)
    else:
        context = json.loads(context, object_hook=_decode)
    return make(cls, context, [read(child, make, leaf) for child in described["children_spec"]])
