"""Recurrent networks of one or more layers, and single steps of them."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import facula
from facula import Tensor
from facula._errors import in_layer
from facula.nn import init
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter
from facula.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# mode: (gates, operator)
_MODES: dict[str, Any] = {
    "LSTM": (4, facula.lstm),
    "GRU": (3, facula.gru),
    "RNN_TANH": (1, facula.rnn_tanh),
    "RNN_RELU": (1, facula.rnn_relu),
}


def _apply_permutation(tensor: Tensor, permutation: Tensor | None, dim: int = 1) -> Tensor:
    return tensor if permutation is None else tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated: ``tensor.index_select(dim, permutation)`` is the same."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
        "instead",
        category=FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class RNNBase(Module):
    """What :class:`RNN`, :class:`LSTM` and :class:`GRU` have in common: weights, states, checks."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _MODES:
            raise ValueError(f"Unrecognized RNN mode: {mode}; accepted are {', '.join(_MODES)}")
        for name, value, kind in (
            ("bias", bias, bool),
            ("batch_first", batch_first, bool),
            ("input_size", input_size, int),
            ("hidden_size", hidden_size, int),
        ):
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
                )
        self._check_options(mode, input_size, hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bidirectional]:
                shapes = self._weight_shapes(layer)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    weight = facula.empty(shape, device=device, dtype=dtype)
                    setattr(self, name, Parameter(weight))
                self._all_weights.append(names)
        self.reset_parameters()

    @staticmethod
    def _check_options(
        mode: str,
        input_size: Any,
        hidden_size: Any,
        num_layers: Any,
        dropout: Any,
        proj_size: int,
    ) -> None:
        if (
            not isinstance(dropout, numbers.Number)
            or not 0 <= dropout <= 1  # type: ignore[operator]
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                f"element being zeroed, got {dropout!r}"
            )
        if dropout and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=4,
            )
        if input_size <= 0:
            raise ValueError(f"input_size must be greater than zero, got {input_size}")
        if hidden_size <= 0:
            raise ValueError(f"hidden_size must be greater than zero, got {hidden_size}")
        if num_layers <= 0:
            raise ValueError(f"num_layers must be greater than zero, got {num_layers}")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError(
                f"proj_size has to be smaller than hidden_size, got {proj_size} and {hidden_size}"
            )

    def _weight_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The parameters of one layer and direction, in the order of their registration."""
        gates = _MODES[self.mode][0] * self.hidden_size
        state = self.proj_size or self.hidden_size
        inputs = self.input_size if layer == 0 else state * (1 + self.bidirectional)
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, inputs),
            "weight_hh": (gates, state),
        }
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    # What a file of PyTorch's has besides: lists that its layers keep, which properties are here.
    def __getstate__(self) -> dict[str, Any]:
        lists = {"_flat_weights_names": self._flat_weights_names}
        return {**self.__dict__, **lists, "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = ("_flat_weights_names", "_flat_weights", "_flat_weight_refs")
        super().__setstate__({k: v for k, v in state.items() if k not in kept})

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: weights need not be side by side. Exists for programs that call it."""

    def reset_parameters(self) -> None:
        """Draws new weights, uniform within 1 / sqrt(hidden_size) of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    # ---- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        if not (facula.is_floating_point(input) or facula.is_complex(input)):
            raise in_layer(
                ValueError, f"RNN input dtype should be floating point. Got {input.dtype}"
            )
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not facula._C._autocast_active():
            raise in_layer(
                ValueError,
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})",
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise in_layer(
                RuntimeError, f"input must have {expected} dimensions, got {input.dim()}"
            )
        if input.size(-1) != self.input_size:
            raise in_layer(
                RuntimeError,
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}",
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def _state_shape(
        self, input: Tensor, batch_sizes: Tensor | None, size: int
    ) -> tuple[int, int, int]:
        batch = input.size(0 if self.batch_first else 1)
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        return self.num_layers * (1 + self.bidirectional), batch, size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise in_layer(RuntimeError, msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States of the batch in another order."""
        return _apply_permutation(hx, permutation)

    # ---- running

    def _check_state_rank(self, hx: Any, batched: bool) -> None:
        rank = 3 if batched else 2
        if hx.dim() != rank:
            raise in_layer(
                RuntimeError,
                f"For {'batched' if batched else 'unbatched'} {rank}-D input, hx should also be "
                f"{rank}-D but got {hx.dim()}-D tensor",
            )

    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return facula.zeros(shape, dtype=input.dtype, device=input.device)

    @staticmethod
    def _with_state(hx: Any, f: Any) -> Any:
        return f(hx)

    def forward(self, input: Any, hx: Any = None) -> Any:
        run = _MODES[self.mode][1]
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = (
                self._zero_state(data, batch_sizes)
                if hx is None
                else self.permute_hidden(hx, order)
            )
            self.check_forward_args(data, hx, batch_sizes)
            output, *last = run(data, batch_sizes, hx, self._flat_weights, *options)
            last = last[0] if len(last) == 1 else tuple(last)
            packed = PackedSequence(output, batch_sizes, order, back)
            return packed, self.permute_hidden(last, back)
        if input.dim() not in (2, 3):
            raise in_layer(
                ValueError,
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead",
            )
        batched = input.dim() == 3
        steps_at = 0 if not self.batch_first else 1
        if hx is not None:
            self._check_state_rank(hx, batched)
        if not batched:
            input = input.unsqueeze(1 - steps_at)
            if hx is not None:
                hx = self._with_state(hx, lambda t: t.unsqueeze(1))
        if hx is None:
            hx = self._zero_state(input, None)
        self.check_forward_args(input, hx, None)
        output, *last = run(input, hx, self._flat_weights, *options, self.batch_first)
        last = last[0] if len(last) == 1 else tuple(last)
        if not batched:
            output = output.squeeze(1 - steps_at)
            last = self._with_state(last, lambda t: t.squeeze(1))
        return output, last


class RNN(RNNBase):
    """Layers of ``h' = tanh(x @ W_ih.T + b_ih + h @ W_hh.T + b_hh)``, or with ``relu``.

    Args:
        input_size: features of an element of a sequence.
        hidden_size: features of the hidden state.
        num_layers: layers; each takes the outputs of the one before.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: ``False`` for layers without biases.
        batch_first: sequences are (batch, steps, features) instead of (steps, batch, features).
        dropout: the probability that elements between layers are dropped in training.
        bidirectional: a second network reads the sequence from its end; outputs are side by side.

    ``forward(input, h_0)`` takes sequences, (steps, features) for one, or a :class:`PackedSequence
    <facula.nn.utils.rnn.PackedSequence>`, and states (layers * directions, batch, hidden_size),
    zeros by default. It returns the outputs of the last layer and the last states.

    Example::

        >>> output, state = facula.nn.RNN(10, 20, 2)(facula.ones(5, 3, 10))
        >>> output.shape, state.shape
        (facula.Size([5, 3, 20]), facula.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if kwargs:
            raise TypeError(f"RNN got an unexpected keyword argument {next(iter(kwargs))!r}")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class GRU(RNNBase):
    """Layers of gated recurrent units.

    ``r = sigmoid(W_ir x + W_hr h)``, ``z = sigmoid(W_iz x + W_hz h)``,
    ``n = tanh(W_in x + r * (W_hn h))``, ``h' = (1 - z) * n + z * h``, each with its biases. The
    rows of the weights are r, z, n. Arguments, inputs and results are those of :class:`RNN`,
    without ``nonlinearity``.

    Example::

        >>> output, state = facula.nn.GRU(10, 20, batch_first=True)(facula.ones(3, 5, 10))
        >>> output.shape, state.shape
        (facula.Size([3, 5, 20]), facula.Size([1, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if kwargs:
            raise TypeError(f"GRU got an unexpected keyword argument {next(iter(kwargs))!r}")
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class LSTM(RNNBase):
    """Layers of long short-term memory.

    ``i, f, o = sigmoid(W_i x + W_h h)``, ``g = tanh(W_ig x + W_hg h)``, ``c' = f * c + i * g``,
    ``h' = o * tanh(c')``, each with its biases; the rows of the weights are i, f, g, o. With
    ``proj_size`` the state is ``W_hr h'`` of that size.

    Arguments and inputs are those of :class:`RNN`, without ``nonlinearity``; states are pairs
    (h, c), and so is the second result.

    Example::

        >>> output, (h, c) = facula.nn.LSTM(10, 20, 2, proj_size=5)(facula.ones(7, 3, 10))
        >>> output.shape, h.shape, c.shape
        (facula.Size([7, 3, 5]), facula.Size([2, 3, 5]), facula.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def _check_state_rank(self, hx: Any, batched: bool) -> None:
        rank = 3 if batched else 2
        if hx[0].dim() != rank or hx[1].dim() != rank:
            raise in_layer(
                RuntimeError,
                f"For {'batched' if batched else 'unbatched'} {rank}-D input, hx and cx should "
                f"also be {rank}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors",
            )

    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shapes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        return tuple(facula.zeros(s, dtype=input.dtype, device=input.device) for s in shapes)

    @staticmethod
    def _with_state(hx: Any, f: Any) -> Any:
        return f(hx[0]), f(hx[1])


# ---- single steps


class RNNCellBase(Module):
    """What the cells have in common: two weights and two biases."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size

        def fresh(*shape: int) -> Parameter:
            return Parameter(facula.empty(shape, device=device, dtype=dtype))

        self.weight_ih = fresh(rows, input_size)
        self.weight_hh = fresh(rows, hidden_size)
        self.register_parameter("bias_ih", fresh(rows) if bias else None)
        self.register_parameter("bias_hh", fresh(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights, uniform within 1 / sqrt(hidden_size) of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        return text

    def _check(self, input: Tensor, state: Tensor | None, name: str) -> None:
        for tensor, what in ((input, "input"), (state, name)):
            if tensor is not None and tensor.dim() not in (1, 2):
                raise in_layer(
                    ValueError,
                    f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D "
                    "instead",
                )
        if input.size(-1) != self.input_size:
            raise in_layer(
                RuntimeError,
                f"input has inconsistent input_size: got {input.size(-1)} expected "
                f"{self.input_size}",
            )
        if state is None:
            return
        name = "hidden1" if name == "hx[1]" else "hidden0"
        if state.size(-1) != self.hidden_size:
            raise in_layer(
                RuntimeError,
                f"{name} has inconsistent hidden_size: got {state.size(-1)}, expected "
                f"{self.hidden_size}",
            )
        rows, states = (t.size(0) if t.dim() == 2 else 1 for t in (input, state))
        if rows != states:
            raise in_layer(
                RuntimeError, f"Input batch size {rows} doesn't match {name} batch size {states}"
            )

    def _batch_of(self, input: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Both as batches; a state that is not given is zero."""
        rows = input if input.dim() == 2 else input.unsqueeze(0)
        if state is None:
            state = rows.new_zeros((rows.size(0), self.hidden_size))
        return rows, state if state.dim() == 2 else state.unsqueeze(0)

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """One step of :class:`RNN`: ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or with ``relu``.

    Shape: (batch, input_size) or (input_size,) with states (batch, hidden_size) or (hidden_size,),
    which are zero by default, to the next states.

    Example::

        >>> facula.nn.RNNCell(10, 20)(facula.ones(3, 10)).shape
        facula.Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        shown = self.nonlinearity
        return super().extra_repr() + ("" if shown == "tanh" else f", nonlinearity={shown}")

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, hx, "hidden")
        cells = {"tanh": facula.rnn_tanh_cell, "relu": facula.rnn_relu_cell}
        if self.nonlinearity not in cells:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        rows, state = self._batch_of(input, hx)
        result = cells[self.nonlinearity](rows, state, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`: the next (h, c).

    Shape: (batch, input_size) or (input_size,) with a pair of states (batch, hidden_size) or
    (hidden_size,), which are zero by default, to the next pair.

    Example::

        >>> h, c = facula.nn.LSTMCell(10, 20)(facula.ones(3, 10))
        >>> h.shape, c.shape
        (facula.Size([3, 20]), facula.Size([3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        if hx is not None and not isinstance(hx, (tuple, list)):
            raise TypeError(f"LSTMCell: hx must be a tuple of Tensors, not {type(hx).__name__}")
        h, c = (None, None) if hx is None else hx
        for index, state in enumerate((h, c)):
            self._check(input, state, f"hx[{index}]")
        rows, h = self._batch_of(input, h)
        _, c = self._batch_of(input, c)
        h, c = facula.lstm_cell(rows, (h, c), *self._weights())
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`.

    Shape: (batch, input_size) or (input_size,) with states (batch, hidden_size) or (hidden_size,),
    which are zero by default, to the next states.

    Example::

        >>> facula.nn.GRUCell(10, 20)(facula.ones(10)).shape
        facula.Size([20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, hx, "hidden")
        rows, state = self._batch_of(input, hx)
        result = facula.gru_cell(rows, state, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)
