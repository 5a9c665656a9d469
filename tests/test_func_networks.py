"""Gradients of networks for each sample, vmap(grad(f)), against a loop over the samples."""

import pytest
from package_under_test import F

nn, func = F.nn, F.func
SAMPLES = 4


def per_sample(model, loss_of, batches, randomness="error"):
    """(gradients by vmap, gradients by a loop), as lists of dicts."""
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def loss(params, buffers, *sample):
        return loss_of(lambda *x: func.functional_call(model, (params, buffers), x), *sample)

    def copies(buffers):
        return {k: v.clone() for k, v in buffers.items()}

    in_dims = (None, None, *(0 for _ in batches))
    mapped = func.vmap(lambda p, b, *s: func.grad(loss)(p, copies(b), *s), in_dims=in_dims)(
        params, buffers, *batches
    )
    looped = [
        func.grad(loss)(params, copies(buffers), *(b[i] for b in batches)) for i in range(SAMPLES)
    ]
    return mapped, {k: F.stack([g[k] for g in looped]) for k in params}


def compare(model, loss_of, *batches):
    mapped, looped = per_sample(model.double(), loss_of, batches)
    for name, wanted in looped.items():
        assert wanted.abs().max() > 0, name
        F.testing.assert_close(mapped[name], wanted, rtol=1e-9, atol=1e-10, msg=name)


def images(n=3):
    F.manual_seed(0)
    return F.randn(SAMPLES, n, 2, 6, 6, dtype=F.float64), F.randint(0, 5, (SAMPLES, n))


def convnet(norm):
    F.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), norm, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 5)
    )


def classified(call, x, y):
    return nn.functional.cross_entropy(call(x), y, label_smoothing=0.1)


@pytest.mark.parametrize("training", [True, False])
def test_convnet_with_batch_norm(training):
    model = convnet(nn.BatchNorm2d(4, track_running_stats=not training)).train(training)
    compare(model, classified, *images())


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)])
def test_convnet_with_group_and_instance_norm(norm):
    compare(convnet(norm), classified, *images())


def test_layer_norm_and_rms_norm():
    F.manual_seed(2)
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.RMSNorm(8))
    x = F.randn(SAMPLES, 3, 6, dtype=F.float64)
    compare(model, lambda call, x: (call(x) ** 3).sum(), x)


def test_attention_and_embedding():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 8, padding_idx=0)
            self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.out = nn.Linear(8, 5)

        def forward(self, tokens):
            causal = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1]).double()
            return self.out(self.block(self.table(tokens), src_mask=causal, is_causal=True))

    F.manual_seed(3)
    tokens, target = F.randint(0, 7, (SAMPLES, 2, 4)), F.randint(0, 5, (SAMPLES, 2, 4))

    def loss(call, tokens, target):
        return nn.functional.cross_entropy(call(tokens).transpose(1, 2), target)

    compare(Model(), loss, tokens, target)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_networks(layer):
    F.manual_seed(4)
    model = layer(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    x = F.randn(SAMPLES, 2, 5, 3, dtype=F.float64)
    compare(model, lambda call, x: (call(x)[0] ** 2).sum(), x)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    F.manual_seed(5)
    model = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=1)
    tokens = F.randint(0, 6, (SAMPLES, 2, 4))
    compare(model, lambda call, x: (call(x) ** 2).sum(), tokens)


def test_ensemble_of_networks():
    """The parameters differ over the batch, the data does not."""
    F.manual_seed(6)
    models = [convnet(nn.BatchNorm2d(4)).double().eval() for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    x, y = (t[0] for t in images())

    def loss(params, buffers):
        return classified(lambda x: func.functional_call(models[0], (params, buffers), (x,)), x, y)

    mapped = func.vmap(func.grad(loss))(params, buffers)
    for i, model in enumerate(models):
        own = dict(model.named_parameters())
        wanted = F.autograd.grad(classified(model, x, y), list(own.values()))
        for name, g in zip(own, wanted, strict=True):
            F.testing.assert_close(mapped[name][i], g, rtol=1e-9, atol=1e-10, msg=name)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y, w: nn.functional.cross_entropy(x, y, w),
        lambda x, y, w: nn.functional.cross_entropy(x, y, w, label_smoothing=0.2, ignore_index=2),
        lambda x, y, w: nn.functional.nll_loss(x.log_softmax(-1), y, w, reduction="sum"),
        lambda x, y, w: nn.functional.cross_entropy(x[0], y[0], w, reduction="none"),
    ],
)
@pytest.mark.parametrize("dims", [(0, 0, None), (0, 0, 0), (None, 0, 0), (0, None, None)])
def test_losses_over_classes(loss, dims):
    F.manual_seed(7)
    x, y = F.randn(SAMPLES, 6, 4, dtype=F.float64), F.randint(0, 4, (SAMPLES, 6))
    w = F.rand(SAMPLES, 4, dtype=F.float64) + 0.1
    given = [t if d == 0 else t[0] for t, d in zip((x, y, w), dims, strict=True)]
    gradient = func.grad(lambda x, y, w: (loss(x, y, w) ** 2).sum())
    mapped = func.vmap(gradient, in_dims=dims)(*given)
    for i in range(SAMPLES):
        one = [t[i] if d == 0 else t for t, d in zip(given, dims, strict=True)]
        F.testing.assert_close(mapped[i], gradient(*one), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("concatenated", [False, True])
def test_ctc_loss_with_lengths_of_their_own(concatenated):
    F.manual_seed(8)
    log_probs = F.randn(SAMPLES, 7, 2, 5, dtype=F.float64).log_softmax(-1)
    lengths = F.tensor([[1, 3], [2, 2], [3, 1], [2, 2]])
    targets = F.randint(1, 5, (SAMPLES, 4) if concatenated else (SAMPLES, 2, 3))
    steps = F.tensor([[7, 6], [5, 7], [7, 7], [6, 6]])

    def gradient(p, t, s, n):
        return func.grad(lambda p: nn.functional.ctc_loss(p, t, s, n))(p)

    mapped = func.vmap(gradient)(log_probs, targets, steps, lengths)
    for i in range(SAMPLES):
        wanted = gradient(log_probs[i], targets[i], steps[i], lengths[i])
        F.testing.assert_close(mapped[i], wanted, rtol=1e-10, atol=1e-12)


def test_second_derivatives_of_norms_under_vmap():
    """grad(vmap(grad(f))): the moments depend on the input, also where vmap takes them apart."""
    F.manual_seed(9)
    x, w = F.randn(3, 5, 4, dtype=F.float64), F.rand(4, dtype=F.float64) + 0.5

    def loss(w, x):
        return (nn.functional.layer_norm(x, (4,), w) ** 3).sum()

    def grouped(w, x):
        return (nn.functional.group_norm(x.unsqueeze(0).transpose(1, 2), 2, w) ** 3).sum()

    for f in (loss, grouped):
        inner = func.vmap(func.grad(f), in_dims=(None, 0))
        mapped = func.grad(lambda x, inner=inner: (inner(w, x) ** 2).sum())(x)
        looped = func.grad(
            lambda x, f=f: sum((func.grad(f)(w, x[i]) ** 2).sum() for i in range(3))
        )(x)
        F.testing.assert_close(mapped, looped, rtol=1e-9, atol=1e-9)


def test_tables_that_differ_over_the_batch():
    F.manual_seed(10)
    tables, at = F.randn(SAMPLES, 6, 3, dtype=F.float64), F.randint(0, 6, (SAMPLES, 5))

    def f(table, at):
        return (nn.functional.embedding(at, table, padding_idx=2) ** 2).sum()

    mapped = func.grad(lambda t: func.vmap(f)(t, at).sum())(tables)
    for i in range(SAMPLES):
        F.testing.assert_close(mapped[i], func.grad(f)(tables[i], at[i]))
    with pytest.raises(RuntimeError, match="out of bounds"):
        func.vmap(f)(tables, at + 3)


def test_rows_of_tables_are_scaled_one_by_one():
    F.manual_seed(11)
    tables, at = F.randn(SAMPLES, 6, 3) * 3, F.randint(0, 6, (SAMPLES, 2))
    wanted = tables.clone()
    for i in range(SAMPLES):
        F.embedding_renorm_(wanted[i], at[i], 1.0, 2.0)
    func.vmap(lambda t, i: F.embedding_renorm_(t, i, 1.0, 2.0))(tables, at)
    F.testing.assert_close(tables, wanted)


def test_positions_and_diagonals():
    F.manual_seed(12)
    x = (F.rand(SAMPLES, 3, 4) > 0.6).double()
    for size in (0, 3, 20):
        mapped = func.vmap(lambda x, size=size: F.nonzero_static(x, size=size, fill_value=-7))(x)
        wanted = F.stack([F.nonzero_static(t, size=size, fill_value=-7) for t in x])
        assert mapped.equal(wanted)
    tall = F.zeros(2, 7, 3)
    func.vmap(lambda t: t.fill_diagonal_(2.0, wrap=True))(tall)
    assert tall.equal(F.zeros(7, 3).fill_diagonal_(2.0, wrap=True).expand(2, 7, 3))
    with pytest.raises(RuntimeError):
        func.vmap(F.masked_scatter)(
            x, F.ones(SAMPLES, 3, 4, dtype=F.bool), F.ones(SAMPLES, 5).double()
        )


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_weights_of_classes_may_be_arguments_that_are_not_differentiated_by(name):
    loss = getattr(F.nn.functional, name)
    x, weight, labels = F.zeros(2, 3), F.tensor([1.0, 2.0, 3.0]), F.tensor([0, 2])

    def function(x, weight):
        return loss(x, labels, weight)

    within = F.func.hessian(lambda x: loss(x, labels, weight))(x)
    assert F.equal(F.func.hessian(function)(x, weight), within)
    assert within.shape == (2, 3, 2, 3)
    with pytest.raises(RuntimeError, match="not differentiable"):
        F.func.grad(function, argnums=1)(x, weight)
    with pytest.raises(RuntimeError, match="not differentiable"):
        function(x.requires_grad_(), weight.requires_grad_())
