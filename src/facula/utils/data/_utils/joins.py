"""What is known of a value that is one of several, and of what leads to lists and dicts that may be
written to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from facula.utils.data._utils.kinds import is_data, kind
from facula.utils.data._utils.known import (
    DATA,
    NESTED,
    NOTHING,
    OPAQUE,
    Dict,
    Iterator,
    Kept,
    Known,
    List,
    Made,
    Maybe,
    Method,
    New,
    NotSimpleError,
    Object,
    OneOf,
    Several,
    Tuple,
)


def keys_of(known: Dict) -> set[Any]:
    """What the keys of a dict are."""
    found = {kind(Known(key)) for key, _ in known.items}
    return found | {known.others[0]} if known.others else found


def with_other(known: Dict, key: Any, value: Any) -> Dict:
    """A dict after something is written under a key that is not known."""
    if known.others:
        key, value = either({known.others[0], key}), either({known.others[1], value})
    return replace(known, others=(key, value), is_exact=False)


def either(found: set[Any]) -> Any:
    """What is known of a value that is one of these."""
    if len(found) > 1:
        found = {v for v in found if v is not NOTHING}
    if len(found) == 1:
        return next(iter(found))
    if _NONE in found:
        rest = either(found - {_NONE})
        if isinstance(rest, Maybe):
            return rest
        return OPAQUE if rest == OPAQUE or sites_in(rest) else Maybe(rest)
    if any(isinstance(v, Maybe) for v in found):
        return either({_NONE, *(v.of if isinstance(v, Maybe) else v for v in found)})
    if any(map(sites_in, found)):
        return _one_of(found)
    kinds = {kind(v) for v in found}
    if len(kinds) == 1 and NESTED not in kinds:
        return kinds.pop()
    if not all(map(is_data, found)):
        return OPAQUE
    if DATA not in kinds and not any(map(leads_to_kept, found)):
        return NESTED
    return DATA if kinds & {DATA, NESTED} else OPAQUE


def _one_of(found: set[Any]) -> Any:
    """Of lists and dicts that were made at the same place, what is known of both."""
    places: dict[Any, Any] = {}
    for v in found:
        for one in v.found if isinstance(v, OneOf) else (v,):
            made = isinstance(one, (List, Dict, Object))
            place = (type(one), one.site, getattr(one, "type", dict)) if made else one
            places[place] = _joined(places[place], one) if place in places else one
    rest = {v for v in places.values() if not sites_in(v)}
    if any(isinstance(v, (Made, Method, Iterator)) for v in places.values()):
        return OPAQUE
    if rest:
        rest = {either(rest)}
    own = rest.union(v for v in places.values() if sites_in(v))
    if len(own) == 1:
        return own.pop()
    return OneOf(frozenset(own)) if all(map(is_data, own)) else OPAQUE


_NONE = Known(None)


def leads_to_kept(known: Any) -> bool:
    """Whether a value is a container that stays, or leads to one."""
    if isinstance(known, (Tuple, Dict)):
        inside = known.values() if isinstance(known, Dict) else known.items
        return any(map(leads_to_kept, inside))
    if isinstance(known, Object):
        return any(leads_to_kept(v) for _, v in known.fields)
    if isinstance(known, OneOf):
        return any(map(leads_to_kept, known.found))
    if isinstance(known, (List, Several)):
        return leads_to_kept(known.item)
    return isinstance(known, Kept) or (isinstance(known, Maybe) and leads_to_kept(known.of))


def sites_in(known: Any) -> frozenset[Any]:
    """Where the lists, dicts and objects were made that a value is or leads to, as far as that is
    known."""
    if isinstance(known, (List, Dict, Object)):
        inner = [known.item] if isinstance(known, List) else values_in(known)
        return frozenset((known.site,)).union(*map(sites_in, inner))
    if isinstance(known, (Tuple, OneOf)):
        inside = known.items if isinstance(known, Tuple) else known.found
        return frozenset().union(*map(sites_in, inside))
    if isinstance(known, (Several, Iterator)):
        own = known.sites if isinstance(known, Iterator) else frozenset()
        return own | sites_in(known.item)
    if isinstance(known, Made):
        return frozenset().union(*map(sites_in, known.cells))
    return sites_in(known.owner) if isinstance(known, Method) else frozenset()


def values_in(known: Dict | Object) -> list[Any]:
    """What lies in a dict, or in the attributes of an object."""
    return known.values() if isinstance(known, Dict) else [v for _, v in known.fields]


def _joined(a: Any, b: Any) -> Any:
    """What is known of two lists, dicts or objects, of which a value is one."""
    if isinstance(a, List):
        return replace(a, item=either({a.item, b.item}))
    if isinstance(a, Object):
        first, second = dict(a.fields), dict(b.fields)
        if first.keys() != second.keys() or a.made_by is not b.made_by:
            raise NotSimpleError
        return replace(a, fields=tuple((k, either({v, second[k]})) for k, v in first.items()))
    if a.made != b.made:
        raise NotSimpleError
    first, second = dict(a.items), dict(b.items)
    keys = {**first, **second}
    items = {k: either({first.get(k, second.get(k)), keys[k]}) for k in keys}
    is_exact = a.is_exact and b.is_exact and first.keys() == second.keys()
    found: Dict = a.with_items(items, is_exact)
    return with_other(found, *b.others) if b.others else found


def with_new(known: Any, old: List | Dict | Object, new: List | Dict | Object) -> Any:
    """The same value after ``old``, which may be part of it, has become ``new``. Others that were
    made at its site may be the same one."""
    if new.site not in sites_in(known):
        return known
    if isinstance(known, (List, Dict, Object)) and known.site == new.site:
        return new if known == old else _joined(known, new)
    if isinstance(known, List):
        return replace(known, item=with_new(known.item, old, new))
    if isinstance(known, Dict):
        items = tuple((k, with_new(v, old, new)) for k, v in known.items)
        others = known.others and (known.others[0], with_new(known.others[1], old, new))
        return replace(known, items=items, others=others)
    if isinstance(known, Object):
        return replace(known, fields=tuple((k, with_new(v, old, new)) for k, v in known.fields))
    if isinstance(known, Tuple):
        return replace(known, items=tuple(with_new(v, old, new) for v in known.items))
    if isinstance(known, OneOf):
        return either({with_new(v, old, new) for v in known.found})
    if isinstance(known, Several):
        return Several(with_new(known.item, old, new))
    raise NotSimpleError  # what goes over it, or a function that has it


def as_new(known: Any, of: str, *others: Any) -> Any:
    """A tensor or an array that may lie in the memory of ``known``, or of others."""
    return New(of) if all(isinstance(v, New) for v in (known, *others)) else of
