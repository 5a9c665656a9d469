"""The transformer of "Attention Is All You Need" (Vaswani et al., 2017), whole and in parts."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor
from facula._errors import in_layer
from facula.nn import functional, init
from facula.nn._functions.attention import canonical_mask
from facula.nn.modules.attention import MultiheadAttention
from facula.nn.modules.container import ModuleList
from facula.nn.modules.linear import Linear
from facula.nn.modules.module import Module

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


# These have PyTorch's names and arguments: layers that are copied from its source use them.


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    hidden = facula.full((sz, sz), float("-inf"), dtype=dtype, device=device)
    return facula.triu(hidden, diagonal=1)


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """The hint, or where there is none, whether the mask is the causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = mask.shape[-1] if size is None else size
    if tuple(mask.shape[-2:]) != (size, size):
        return False
    causal = _generate_square_subsequent_mask(size, mask.device)
    if mask.dtype == facula.bool:
        return bool((mask == (causal != 0)).all())
    return bool((mask == causal.to(mask.dtype)).all())


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    return src.shape[1 if batch_first and src.dim() == 3 else 0] if src.dim() in (2, 3) else None


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)


def _fast_activation(activation: Any) -> int:
    """1 for ReLU and 2 for GELU, as PyTorch numbers those of its fast path; 0 for others."""
    if activation is functional.relu or isinstance(activation, facula.nn.ReLU):
        return 1
    return int(activation is functional.gelu or isinstance(activation, facula.nn.GELU)) * 2


def _get_clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _Layer(Module):
    """What both kinds of layers have: attention to themselves and two linear layers."""

    __constants__ = ["norm_first"]
    activation: Callable[[Tensor], Tensor]

    def _make_feed_forward(self, sizes: tuple[int, int], dropout: float, **options: Any) -> None:
        d_model, dim_feedforward = sizes
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = facula.nn.Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)

    def _make_norms(self, count: int, d_model: int, eps: float, **options: Any) -> None:
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", facula.nn.LayerNorm(d_model, eps=eps, **options))

    def _make_dropouts(self, count: int, dropout: float) -> None:
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", facula.nn.Dropout(dropout))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = functional.relu

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear layers; both added to what they read.

    Args:
        d_model: features.
        nhead: heads of the attention.
        dim_feedforward: features between the two linear layers.
        dropout: the probability that an element is dropped in training.
        activation: ``"relu"``, ``"gelu"`` or a function, between the linear layers.
        layer_norm_eps: ``eps`` of the normalisations.
        batch_first: inputs are (batch, steps, features) instead of (steps, batch, features).
        norm_first: normalises what each part reads instead of what comes out.
        bias: biases of the linear layers and normalisations.

    Example::

        >>> layer = facula.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> layer(facula.ones(3, 5, 8)).shape
        facula.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **made
        )
        self._make_feed_forward((d_model, dim_feedforward), dropout, **made)
        self.norm_first = norm_first
        self._make_norms(2, d_model, layer_norm_eps, **made)
        self._make_dropouts(2, dropout)
        self.activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = _fast_activation(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Runs ``src``; masks and ``is_causal`` are those of :class:`MultiheadAttention`."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, src.dtype)
        mask = canonical_mask(src_mask, "src_mask", None, src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        attended, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to a memory, then two linear layers.

    The arguments are those of :class:`TransformerEncoderLayer`.

    Example::

        >>> layer = facula.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        >>> layer(facula.ones(3, 5, 8), facula.ones(3, 7, 8)).shape
        facula.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        heads = {"dropout": dropout, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self._make_feed_forward((d_model, dim_feedforward), dropout, **made)
        self.norm_first = norm_first
        self._make_norms(3, d_model, layer_norm_eps, **made)
        self._make_dropouts(3, dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs ``tgt`` with attention to ``memory``; masks are as in ``MultiheadAttention``."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        attended, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )
        return self.dropout1(attended)

    def _mha_block(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attended, _ = self.multihead_attn(
            x,
            memory,
            memory,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


def _obstacle_to_fast_path(layer: Any) -> str | None:
    """Why an encoder of such layers does not leave padded positions out."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return (
            "encoder_layer.self_attn.batch_first was not True"
            "(use batch_first for better inference performance)"
        )
    if not attention._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    return "encoder_layer.self_attn.num_heads is odd" if attention.num_heads % 2 else None


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer, one after the other.

    Args:
        encoder_layer: a :class:`TransformerEncoderLayer`; the copies start with its weights.
        num_layers: copies.
        norm: a normalisation at the end.
        enable_nested_tensor, mask_check: as in PyTorch, results at padded positions at the end of
            sequences are 0 before ``norm``, in evaluation without gradients; False keeps them.

    Example::

        >>> layer = facula.nn.TransformerEncoderLayer(8, 2, 16)
        >>> facula.nn.TransformerEncoder(layer, 2)(facula.ones(5, 3, 8)).shape
        facula.Size([5, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        obstacle = _obstacle_to_fast_path(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and obstacle is None
        if enable_nested_tensor and obstacle is not None:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{obstacle}",
                stacklevel=2,
            )
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Runs ``src`` through all layers. Without ``is_causal``, a causal mask is recognised."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask, src.dtype)
        mask = canonical_mask(mask, "mask", None, src.dtype)
        first: Any = self.layers[0] if len(self.layers) else None
        batch_first = getattr(getattr(first, "self_attn", None), "batch_first", False)
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._leaves_padding_out(src, padding):
            output = output.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _leaves_padding_out(self, src: Tensor, padding: Tensor) -> bool:
        """Whether PyTorch would compute without the padding, which it then fills with 0."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3:
            return False
        if facula.is_autocast_enabled(src.device.type) or (
            facula.is_grad_enabled()
            and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        ):
            return False
        padded = padding != 0
        return not self.mask_check or not bool((padded[:, :-1] & ~padded[:, 1:]).any())


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer, one after the other.

    Example::

        >>> layer = facula.nn.TransformerDecoderLayer(8, 2, 16)
        >>> decoder = facula.nn.TransformerDecoder(layer, 2)
        >>> decoder(facula.ones(5, 3, 8), facula.ones(7, 3, 8)).shape
        facula.Size([5, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs ``tgt`` through all layers. A causal ``tgt_mask`` is recognised."""
        first: Any = self.layers[0] if len(self.layers) else None
        batch_first = getattr(getattr(first, "self_attn", None), "batch_first", False)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder that attends to what it encodes.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias: those of the layers, see :class:`TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many of each.
        custom_encoder, custom_decoder: modules that take their places.

    Example::

        >>> model = facula.nn.Transformer(8, 2, 1, 1, 16)
        >>> model(facula.ones(10, 3, 8), facula.ones(6, 3, 8)).shape
        facula.Size([6, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        options: dict[str, Any] = {
            "d_model": d_model,
            "nhead": nhead,
            "dim_feedforward": dim_feedforward,
            "dropout": dropout,
            "activation": activation,
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            **made,
        }

        def norm() -> Module:
            return facula.nn.LayerNorm(d_model, eps=layer_norm_eps, **made)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(**options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(**options), num_decoder_layers, norm()
        )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes ``src`` and decodes ``tgt`` with it; masks are those of the layers."""
        if src.dim() == 3 and tgt.dim() == 3:
            batch = 0 if self.batch_first else 1
            if src.size(batch) != tgt.size(batch):
                raise in_layer(
                    RuntimeError,
                    "the batch number of src and tgt must be equal, got shapes "
                    f"{tuple(src.shape)} and {tuple(tgt.shape)}",
                )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise in_layer(
                RuntimeError,
                "the feature number of src and tgt must be equal to d_model, "
                f"{self.d_model}, got shapes {tuple(src.shape)} and {tuple(tgt.shape)}",
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: -inf above the diagonal, 0 elsewhere.

        Example::

            >>> facula.nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)
