"""One module on several devices at a time."""

from facula.nn.parallel.data_parallel import DataParallel, data_parallel
from facula.nn.parallel.distributed import DistributedDataParallel
from facula.nn.parallel.parallel_apply import parallel_apply
from facula.nn.parallel.replicate import replicate
from facula.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]
