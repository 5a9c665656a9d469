"""Datasets, samplers and loaders.

Example::

    >>> from facula.utils.data import DataLoader, TensorDataset
    >>> dataset = TensorDataset(facula.arange(4.), facula.tensor([0, 1, 0, 1]))
    >>> for x, y in DataLoader(dataset, batch_size=2):
    ...     print(x, y)
    tensor([0., 1.]) tensor([0, 1])
    tensor([2., 3.]) tensor([0, 1])
"""

from facula.utils.data._utils.collate import default_collate, default_convert
from facula.utils.data._utils.worker import get_worker_info
from facula.utils.data._validation import (
    argument_validation,
    runtime_validation,
    runtime_validation_disabled,
)
from facula.utils.data.dataloader import DataLoader, _DatasetKind
from facula.utils.data.datapipe import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
)
from facula.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from facula.utils.data.distributed import DistributedSampler
from facula.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]
