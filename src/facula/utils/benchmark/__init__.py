"""Timing that can be trusted: warm-up, repetition, medians, tables.

Example::

    >>> from facula.utils.benchmark import Timer
    >>> timer = Timer("x.sum()", globals={"x": facula.ones(100)})
    >>> timer.timeit(10).number_per_run
    10
"""

from facula.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from facula.utils.benchmark.utils.compare import Compare
from facula.utils.benchmark.utils.fuzzer import (
    FuzzedParameter,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
)
from facula.utils.benchmark.utils.timer import Language, Timer, timer

__all__ = [
    "Compare",
    "FuzzedParameter",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
