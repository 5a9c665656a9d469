"""Lookups in a table of vectors, alone and reduced over bags of them."""

from gen.rows import composite, kernel, op

op("embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
   kernel(), method=False, out=False, batch="embedding", samples="embedding", jvp="linear",
   grad=dict(weight="_embedding_table_gradient(grad, indices, weight.sizes(), padding_idx, scale_grad_by_freq, sparse)"),
   doc="The rows of ``weight`` that ``indices`` name: (*indices.shape, columns). The row ``padding_idx`` gets no\n"
       "gradient; with ``scale_grad_by_freq`` gradients are divided by how often a row was looked up.",
   example=">>> table = facula.tensor([[1., 2.], [3., 4.]])\n"
           ">>> facula.embedding(table, facula.tensor([1, 0]))\ntensor([[3., 4.],\n        [1., 2.]])")
op("_embedding_table_gradient(Tensor grad_output, Tensor indices, int[] weight_size, int padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
   composite(), out=False, samples="none")
# The gradient of the table: sums of the gradients of its rows, in the order of the indices.
op("_embedding_gradient(Tensor grad_output, Tensor indices, int[] weight_size, int padding_idx, bool scale_grad_by_freq) -> Tensor",
   kernel(), batch="embedding_gradient", jvp="linear", samples="none",
   grad=dict(grad_output="_embedding_gradient_back(grad, indices, padding_idx, scale_grad_by_freq)"))
op("_embedding_gradient_back(Tensor grad, Tensor indices, int padding_idx, bool scale_grad_by_freq) -> Tensor",
   composite(), samples="none")
op("embedding.input(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
   composite(), python="nn.functional.embedding", method=False, out=False, samples="embedding_input",
   doc="The rows of ``weight`` that ``input`` names: (*input.shape, columns). The row ``padding_idx`` gets no\n"
       "gradient. With ``max_norm``, rows that are looked up are first scaled in place to that ``norm_type``-norm.\n"
       "With ``sparse=True`` the gradient of ``weight`` is a sparse tensor with the rows that were looked up.",
   example=">>> table = facula.tensor([[1., 2.], [3., 4.]])\n"
           ">>> facula.nn.functional.embedding(facula.tensor([1]), table)\ntensor([[3., 4.]])")
op("embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)", kernel(),
   method=False, function=True, batch="embedding_renorm", samples="none",
   grad=dict(self='_no_derivative("embedding_renorm_", "self")'),
   doc="Scales the rows that ``indices`` name, where their ``norm_type``-norm is above ``max_norm``, down to it.",
   example=">>> table = facula.tensor([[3., 4.], [3., 4.]])\n"
           ">>> facula.embedding_renorm_(table, facula.tensor([1]), 1., 2.)\n"
           "tensor([[3.0000, 4.0000],\n        [0.6000, 0.8000]])")

op("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
   composite(), method=False, out=False, samples="none",
   doc="Sums (``mode`` 0), means (1) or maxima (2) of rows of ``weight`` over bags of ``indices``; bag i starts at\n"
       "``offsets[i]``. Returns them with the bag of each index, the size of each bag and, for maxima, their rows.",
   example=">>> table = facula.tensor([[1., 2.], [3., 4.]])\n"
           ">>> facula.embedding_bag(table, facula.tensor([0, 1, 1]), facula.tensor([0, 2]))[0]\n"
           "tensor([[4., 6.],\n        [3., 4.]])")
op("embedding_bag.input(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
   composite(), python="nn.functional.embedding_bag", method=False, out=False, samples="embedding_bag_input",
   doc="Reduces rows of ``weight`` over bags of indices without making the rows. ``input`` is (bags, size), or a\n"
       "vector whose bag i starts at ``offsets[i]`` (and ends with the last offset when ``include_last_offset``).\n"
       "``mode`` is 'sum', 'mean' or 'max'; ``per_sample_weights`` scales the rows of a sum.",
   example=">>> table = facula.tensor([[1., 2.], [3., 4.]])\n"
           ">>> facula.nn.functional.embedding_bag(facula.tensor([[0, 1]]), table)\ntensor([[2., 3.]])")
op("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, int mode, Tensor? per_sample_weights, bool include_last_offset, int padding_idx, bool scale_grad_by_freq, bool sparse) -> (Tensor output, Tensor offset2bag, Tensor bag_size, Tensor max_indices)",
   kernel(), batch="embedding_bag", samples="none", nondifferentiable=("offset2bag", "bag_size", "max_indices"),
   node="EmbeddingBagBackward0",
   grad=dict(weight="_embedding_bag_gradient(grad_output, indices, offset2bag, bag_size, max_indices, per_sample_weights, "
                    "weight.sizes(), mode, padding_idx, scale_grad_by_freq, sparse)",
             per_sample_weights="_embedding_bag_sample_gradient(grad_output, weight, indices, offset2bag, padding_idx)"))
op("_embedding_bag_gradient(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor max_indices, Tensor? per_sample_weights, int[] weight_size, int mode, int padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
   composite(), samples="none")
op("_embedding_bag_sample_gradient(Tensor grad, Tensor weight, Tensor indices, Tensor offset2bag, int padding_idx) -> Tensor",
   composite(), samples="none")
