"""What autocast does with each operator: PyTorch's lists, by the names of the rows.

Inside autocast, products and convolutions run in the lower precision, sums that need range or
accuracy in float32, and what joins tensors in the widest dtype among them. Everything else runs in
the dtype of its arguments.
"""

from __future__ import annotations

_PRODUCTS = """
    addbmm addmm baddbmm bmm matmul mm linear linalg_vecdot prelu scaled_dot_product_attention
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
"""

_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""

_CPU = {
    "Lower": _PRODUCTS + "lstm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "Float32": _LOSSES
    + """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky
    cholesky_inverse cholesky_solve cross_entropy ctc_loss fft_fft fft_fft2 fft_fftn fft_hfft
    fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2
    fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sample grid_sampler
    grid_sampler_2d grid_sampler_3d inverse linalg_cholesky linalg_cholesky_ex linalg_cond
    linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv
    linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals
    linalg_tensorinv linalg_tensorsolve lu_solve max_pool3d nanquantile orgqr ormqr _max_unpool
    _pad_with_own pinverse polar prod qr quantile stft svd trace triangular_solve view_as_complex
    """,
    # The second half PyTorch leaves alone; here they are one operator, or are made of others, whose
    # policy must not hold for them: they run in the widest dtype of what they are given, recurrent
    # ones in that of their state.
    "Promote": "cat index_copy stack" + " addmv bilinear gru gru_cell lstm_cell _pad_in_own_dtype",
}

_CUDA = {
    "Lower": _PRODUCTS
    + """
    addmv addr chain_matmul einsum gru gru_cell linalg_multi_dot lstm lstm_cell mv rnn_relu
    rnn_relu_cell rnn_tanh rnn_tanh_cell
    """,
    "Float32": _LOSSES
    + """
    acos asin cdist cosh cosine_similarity cross_entropy dist erfinv exp expm1 frobenius_norm group_norm
    layer_norm log log10 log1p log2 logsumexp native_layer_norm nuclear_norm pdist pow reciprocal
    renorm rms_norm rsqrt sinh softplus tan _interpolate
    """,
    "Dtype": """
    cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax prod softmax sum
    """,
    "Promote": """
    addcdiv addcmul atan2 bilinear cat cross dot grid_sample grid_sampler index_put scatter_add
    stack tensordot vdot
    """,
    "Banned": "binary_cross_entropy",
}


def _by_name(lists: dict[str, str]) -> dict[str, str]:
    return {name: policy for policy, names in lists.items() for name in names.split()}


_TABLES = (_by_name(_CPU), _by_name(_CUDA))


def policies(name: str) -> str:
    """The policies of an operator on the CPU and on CUDA devices, in C++."""
    return "{" + ", ".join(f"Autocast::{t.get(name, 'None')}" for t in _TABLES) + "}"
