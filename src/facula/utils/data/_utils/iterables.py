"""What Python's functions over values return: ranges, sums, orders and the like."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

from facula.utils.data._utils.arguments import check
from facula.utils.data._utils.harmless import TIME
from facula.utils.data._utils.joins import either, sites_in
from facula.utils.data._utils.kinds import are, is_bound, is_data, is_key, kind
from facula.utils.data._utils.known import (
    ARRAY,
    BYTES,
    LISTS,
    NESTED,
    NOTHING,
    NUMBER,
    NUMBERS,
    OPAQUE,
    RANGE,
    SLICE,
    TENSOR,
    TEXT,
    AlwaysRaisesError,
    Dict,
    Iterator,
    Known,
    List,
    Maybe,
    NotSimpleError,
    Of,
    Several,
    Tuple,
)

_MOST_ROUNDS = 4  # until a sum of any kind is what it stays


_CHOOSING: tuple[Any, ...] = (itertools.combinations, itertools.permutations)
_CHOOSING += (itertools.combinations_with_replacement,)
_IN_ORDER = (RANGE, NUMBERS, TEXT, BYTES, NESTED, *LISTS)


def is_in_order(known: Any) -> bool:
    """Whether to go over it from its end runs no code."""
    return isinstance(known, (Tuple, Several, Dict, List)) or kind(known) in _IN_ORDER


def is_tested(known: Any) -> bool:
    """Whether to ask if it is true runs no code."""
    if isinstance(known, Maybe):
        return is_tested(known.of)
    return is_data(known) or isinstance(known, (Of, Dict, List, Several, Tuple))


class Iterables:
    """What a :class:`Simple` finds out of them."""

    call: Callable[..., Any]
    iterator: Callable[[Any], Iterator]
    needs: set[str]
    site: Any

    def call_of_iterators(self, called: Any, arguments: list[Any]) -> Any:
        sites = frozenset().union(*map(sites_in, arguments))
        if called is range and are(NUMBER, arguments):
            return RANGE
        if called is map and len(arguments) > 1:
            items = [self.iterator(a).item for a in arguments[1:]]
            return Iterator(self.call(arguments[0], items), sites)
        if called is zip:
            return Iterator(Tuple(tuple(self.iterator(a).item for a in arguments)), sites)
        if called is itertools.chain:
            return Iterator(either({self.iterator(a).item for a in arguments} or {OPAQUE}), sites)
        if called is itertools.count and are(NUMBER, arguments):
            return Iterator(NUMBER)
        if called in (list, tuple) and not arguments:
            return List(NOTHING, self.site) if called is list else Tuple(())
        if not arguments:
            raise NotSimpleError
        first, *rest = arguments
        if called is iter and not rest:
            return self.iterator(first)
        if called is next and isinstance(first, Iterator) and len(rest) <= 1:
            return either({first.item, *rest})
        bounds = [a for a in rest if a != Known(None)]
        if called is itertools.islice and are(NUMBER, bounds):
            return self.iterator(first)
        if called is enumerate and are(NUMBER, rest):
            return Iterator(Tuple((NUMBER, self.iterator(first).item)), sites)
        if called is reversed and not rest and is_in_order(first):
            return Iterator(self.iterator(first).item, sites)
        if called is slice and all(map(is_bound, arguments)):
            return SLICE
        if called is filter and len(rest) == 1:
            item = self.iterator(rest[0]).item
            if not is_tested(item if first == Known(None) else self.call(first, [item])):
                raise NotSimpleError
            return Iterator(item, sites)
        if any(called is f for f in (itertools.takewhile, itertools.dropwhile)):
            item = self.iterator(rest[0]).item
            if not is_tested(self.call(first, [item])):
                raise NotSimpleError
            return Iterator(item, sites)
        if called is itertools.pairwise and not rest:
            item = self.iterator(first).item
            return Iterator(Tuple((item, item)), sites)
        if called is itertools.repeat and are(NUMBER, rest):
            return Iterator(first, sites)
        if called is itertools.cycle and not rest:
            return Iterator(self.iterator(first).item, sites)
        if called is itertools.accumulate and not rest:
            item = self.iterator(first).item
            if kind(item) not in (NUMBER, TENSOR, ARRAY, NESTED):
                raise NotSimpleError
            return Iterator(kind(item))
        if called is itertools.product:
            return Iterator(Tuple(tuple(self.iterator(a).item for a in arguments)), sites)
        if any(called is f for f in _CHOOSING) and are(NUMBER, rest):
            return Iterator(Several(self.iterator(first).item), sites)
        if called is itertools.zip_longest:
            items = [either({self.iterator(a).item, Known(None)}) for a in arguments]
            return Iterator(Tuple(tuple(items)), sites)
        if called is operator.itemgetter and all(isinstance(a, Known) for a in arguments):
            return Known(operator.itemgetter(*(a.value for a in arguments)))
        if called is functools.reduce and 1 <= len(rest) <= 2:
            return self.reduced(first, *rest)
        if rest or not any(called is f for f in (list, tuple, sum, any, all)):
            raise NotSimpleError
        self.needs.add(TIME)
        over = self.iterator(first)
        item = over.item
        if called is list:
            return List(item, self.site) if not sites else Several(item)
        if called is tuple:
            return Several(item)
        if over.exact == () or kind(item) == NUMBER:
            return NUMBER
        if called is sum and kind(item) in (TENSOR, ARRAY, NESTED):
            return kind(item)
        if kind(item) == NESTED:
            return NUMBER
        raise NotSimpleError

    def in_order(self, called: Any, arguments: list[Any], names: tuple[str, ...]) -> Any:
        """What ``min``, ``max`` or ``sorted`` returns."""
        given = dict(zip(names, arguments[len(arguments) - len(names) :], strict=True))
        values = arguments[: len(arguments) - len(names)]
        alone = len(values) == 1
        key, default = given.pop("key", Known(None)), given.pop("default", None)
        if called is sorted:
            check([given.pop("reverse", NUMBER)], bool)
        if given or not values or (called is sorted and not alone):
            raise NotSimpleError
        if alone:
            self.needs.add(TIME)
        over = self.iterator(values[0]) if alone else Iterator(either({*values}))
        item = over.item
        if over.exact == ():
            if called is not sorted and default is None:
                raise AlwaysRaisesError
            return List(NOTHING, self.site) if called is sorted else default
        compared = item if key == Known(None) else self.call(key, [item])
        if not is_key(compared):
            raise NotSimpleError
        if called is sorted:
            return List(item, self.site) if not sites_in(item) else Several(item)
        return item if default is None else either({item, default})

    def reduced(self, function: Any, values: Any, *first: Any) -> Any:
        """What ``functools.reduce`` returns."""
        self.needs.add(TIME)
        item = self.iterator(values).item
        found = first[0] if first else item
        for _ in range(_MOST_ROUNDS):
            more = either({found, self.call(function, [found, item])})
            if more == found:
                return found
            found = more
        raise NotSimpleError
