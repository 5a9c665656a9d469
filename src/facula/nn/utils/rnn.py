"""Sequences of different lengths: padded, packed, and the ways between them.

A packed batch holds the first elements of all sequences, then the second ones, and so on; sequences
are sorted by length, so that step t is about the first ``batch_sizes[t]`` of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import facula
from facula import Tensor
from facula._overridable import overridable

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """The elements of a batch of sequences, step by step. Recurrent modules take it as input.

    ``data`` has the elements, ``batch_sizes`` (on the CPU) how many each step has,
    ``sorted_indices`` the order that the sequences were brought into and ``unsorted_indices`` the
    way back. Make it with :func:`pack_padded_sequence` or :func:`pack_sequence`.

    Example::

        >>> packed = facula.nn.utils.rnn.pack_sequence([facula.tensor([1, 2]), facula.tensor([3])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "Expected data to be a list or tuple of length 2, (data, batch_sizes), when "
                    f"batch_sizes is not given; got {type(data).__name__}"
                )
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like "
                f"pack_sequence and pack_padded_sequence. Got {batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        indices = [t if t is None else t.pin_memory() for t in self[2:]]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data converted as by :meth:`Tensor.to`; indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [t if t is None else t.to(data.device) for t in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*args, **({"device": "cuda"} | kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(*args, **({"device": "cpu"} | kwargs))

    def double(self) -> PackedSequence:
        return self.to(dtype=facula.double)

    def float(self) -> PackedSequence:
        return self.to(dtype=facula.float)

    def half(self) -> PackedSequence:
        return self.to(dtype=facula.half)

    def long(self) -> PackedSequence:
        return self.to(dtype=facula.long)

    def int(self) -> PackedSequence:
        return self.to(dtype=facula.int)

    def short(self) -> PackedSequence:
        return self.to(dtype=facula.short)

    def char(self) -> PackedSequence:
        return self.to(dtype=facula.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtype=facula.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one; none for none.

    Example::

        >>> facula.nn.utils.rnn.invert_permutation(facula.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = facula.arange(permutation.numel(), device=permutation.device)
    return facula.empty_like(permutation).scatter(0, permutation, places.to(permutation.dtype))


def _rows(lengths: Tensor, steps: int) -> Tensor:
    """Where the elements of packed sequences are in (steps, batch), counted through."""
    present = facula.arange(steps, device=lengths.device)[:, None] < lengths[None, :]
    return present.flatten().nonzero().flatten()


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | list[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs (steps, batch, *), or (batch, steps, *) with ``batch_first``, without its padding.

    Sequences must be sorted by decreasing length, unless ``enforce_sorted`` is ``False``.

    Example::

        >>> x = facula.tensor([[1, 3], [2, 0]])  # the sequences (1, 2) and (3)
        >>> facula.nn.utils.rnn.pack_padded_sequence(x, [2, 1]).data
        tensor([1, 3, 2])
    """
    lengths = facula.as_tensor(lengths, dtype=facula.int64, device="cpu")
    if lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D tensor, got shape {tuple(lengths.shape)}"
        )
    if input.dim() < 2:
        raise IndexError(
            f"input should have dimensions of steps and of samples, got shape {tuple(input.shape)}"
        )
    order = None
    if not enforce_sorted:
        lengths, order = facula.sort(lengths, descending=True, stable=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    if lengths.numel() != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={batch})"
        )
    if batch == 0 or int(lengths.min()) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            f"sidestep this requirement. Got {lengths.tolist()}"
        )
    longest = int(lengths[0])
    if longest > steps:
        raise RuntimeError(f"a length of {longest} was given, but the input has {steps} steps only")
    rows = _rows(lengths, longest).to(input.device)
    data = input.reshape(steps * batch, *input.shape[2:]).index_select(0, rows)
    sizes = (facula.arange(longest, device=lengths.device)[:, None] < lengths[None, :]).sum(1)
    return PackedSequence(data, sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The reverse of :func:`pack_padded_sequence`: (padded sequences, their lengths).

    Example::

        >>> packed = facula.nn.utils.rnn.pack_sequence([facula.tensor([1, 2]), facula.tensor([3])])
        >>> facula.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    data, sizes, _, unsorted = sequence
    longest, batch = sizes.numel(), int(sizes[0])
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {longest}"
        )
    steps = longest if total_length is None else total_length
    lengths = (sizes[None, :] > facula.arange(batch, device=sizes.device)[:, None]).sum(1)
    blank = facula.full(
        (steps * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device
    )
    padded = blank.index_copy(0, _rows(lengths, longest).to(data.device), data)
    padded = padded.reshape(steps, batch, *data.shape[1:])
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted)
        lengths = lengths[unsorted.cpu()]
    return padded, lengths


@overridable
def pad_sequence(
    sequences: Tensor | list[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences (length, *), filled up on one side to the length of the longest.

    The result has the dtype of the first sequence.

    Example::

        >>> a, b = facula.ones(2), facula.ones(1)
        >>> facula.nn.utils.rnn.pad_sequence([a, b], batch_first=True)
        tensor([[1., 1.],
                [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest, trailing = max(len(p) for p in parts), parts[0].shape[1:]
    filled = []
    for part in parts:
        if part.shape[1:] != trailing:
            raise RuntimeError(
                "pad_sequence: sequences must have the same shape but for their length, got "
                f"{tuple(parts[0].shape)} and {tuple(part.shape)}"
            )
        part = part.to(parts[0].dtype)
        missing = longest - len(part)
        if missing:
            rest = part.new_full((missing, *trailing), padding_value)
            part = facula.cat((part, rest) if padding_side == "right" else (rest, part))
        filled.append(part)
    return facula.stack(filled, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences that :func:`pad_sequence` has padded.

    Example::

        >>> padded = facula.tensor([[1, 2], [3, 0]])
        >>> facula.nn.utils.rnn.unpad_sequence(padded, facula.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        sequence[:length].clone(memory_format=facula.contiguous_format)
        for sequence, length in zip(padded_sequences, lengths.tolist(), strict=True)
    ]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences (length, *).

    Example::

        >>> facula.nn.utils.rnn.pack_sequence([facula.tensor([1, 2]), facula.tensor([3])]).data
        tensor([1, 3, 2])
    """
    lengths = [len(s) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that :func:`pack_sequence` has packed.

    Example::

        >>> packed = facula.nn.utils.rnn.pack_sequence([facula.tensor([1, 2]), facula.tensor([3])])
        >>> facula.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
