"""Attention: softmax(scale Q K^T + mask) V, computed in blocks."""

from gen.rows import composite, kernel, op

op("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
   composite(), python="nn.functional.scaled_dot_product_attention", method=False, out=False, samples="attention",
   doc="``softmax(query @ key.mT * scale + attn_mask, dim=-1) @ value``, without the matrix of all weights.\n"
       "``query`` is (..., heads, L, E), ``key`` (..., heads, S, E), ``value`` (..., heads, S, Ev). ``attn_mask`` is added\n"
       "to the scores, or says where it is boolean which keys take part; ``is_causal`` lets query i see keys 0 to i only.\n"
       "``scale`` is ``1 / sqrt(E)`` by default. With ``enable_gqa`` several heads of queries share one of keys.\n"
       "Weights are dropped with probability ``dropout_p``, always. A query that sees no key gives zeros.",
   example=">>> q = k = facula.zeros(1, 2, 4)\n"
           ">>> v = facula.tensor([[[1.], [3.]]])\n"
           ">>> facula.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)\n"
           "tensor([[[1.],\n         [2.]]])")
# On (batch, heads, L, E), (batch, key heads, S, E), (batch, key heads, S, Ev); the mask is boolean or of their dtype
# and has the shape of the scores.
op("_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale) -> (Tensor output, Tensor logsumexp)",
   kernel(), batch="attention", samples="none", nondifferentiable=("logsumexp",),
   node="ScaledDotProductAttentionBackward0",
   grad={"query, key, value": "_attention_gradients(grad_output, query, key, value, mask, output, logsumexp, is_causal, scale)"})
# By plain operators where the gradients are to be differentiated again, else by the kernel below.
op("_attention_gradients(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor logsumexp, bool is_causal, float scale) -> Tensor[]",
   composite(), samples="none")
op("_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor logsumexp, bool is_causal, float scale) -> Tensor[]",
   kernel(), batch="attention", samples="none")
