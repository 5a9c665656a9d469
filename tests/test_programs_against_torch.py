"""Small training programs, as people write them, in PyTorch and in Facula from the same seed.

Each program is a function of the package and returns the losses of its steps.
"""

import copy
import importlib
import math

import numpy as np
import pytest
from package_under_test import IS_FACULA
from package_under_test import F as facula

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not IS_FACULA, reason="compares Facula with PyTorch")

STEPS = 10
PROGRAMS = {}


def program(tolerance=1e-5):
    """Registers a program with the relative difference that its losses may have."""

    def register(function):
        PROGRAMS[function.__name__] = (function, tolerance)
        return function

    return register


def namespaces(T):
    return T.nn, T.nn.functional


def numbers(T, *shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return T.tensor(values.astype(np.float32))


def labels(T, count, *shape, seed=0):
    return T.tensor(np.random.default_rng(seed).integers(0, count, shape))


def train(optimizer, loss_of, steps=STEPS, after=None):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        if after is not None:
            after(step)
        losses.append(loss.item())
    return losses


@program()
def text_classification(T):
    nn, F = namespaces(T)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.EmbeddingBag(50, 8, mode="mean", padding_idx=0)
            self.fc = nn.Linear(8, 4)
            self.embedding.weight.data.uniform_(-0.5, 0.5)
            nn.init.zeros_(self.fc.bias)

        def forward(self, text, offsets):
            return self.fc(self.embedding(text, offsets))

    model = Classifier()
    optimizer = T.optim.SGD(model.parameters(), lr=5.0)
    scheduler = T.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
    text, offsets = labels(T, 50, 60), T.tensor([0, 7, 20, 20, 41])
    target = labels(T, 4, 5, seed=1)

    def loss_of(step):
        return F.cross_entropy(model(text, offsets), target, label_smoothing=0.1)

    def after(step):
        T.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scheduler.step()

    return train(optimizer, loss_of, after=after)


@program()
def generative_adversarial_network(T):
    nn = T.nn

    def initialise(m):
        name = m.__class__.__name__
        if name.find("Conv") != -1:
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        elif name.find("BatchNorm") != -1:
            nn.init.normal_(m.weight.data, 1.0, 0.02)
            nn.init.constant_(m.bias.data, 0)

    generator = nn.Sequential(
        nn.ConvTranspose2d(6, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 16, 4, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(16, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    generator.apply(initialise)
    discriminator.apply(initialise)
    criterion = nn.BCELoss()
    d_optimizer = T.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    g_optimizer = T.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = numbers(T, 4, 1, 16, 16).tanh()
    losses = []
    for _ in range(5):
        discriminator.zero_grad()
        label = T.full((4,), 1.0)
        error_real = criterion(discriminator(real).view(-1), label)
        error_real.backward()
        fake = generator(T.randn(4, 6, 1, 1))
        label.fill_(0.0)
        error_fake = criterion(discriminator(fake.detach()).view(-1), label)
        error_fake.backward()
        d_optimizer.step()
        generator.zero_grad()
        label.fill_(1.0)
        error = criterion(discriminator(fake).view(-1), label)
        error.backward()
        g_optimizer.step()
        losses += [(error_real + error_fake).item(), error.item()]
    return losses


@program()
def u_net(T):
    nn, F = namespaces(T)

    def double(i, o):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.GroupNorm(2, o),
            nn.SiLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.InstanceNorm2d(o, affine=True),
            nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2 = double(1, 4), double(4, 8)
            self.pool = nn.MaxPool2d(2)
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.up1 = double(12, 4)
            self.head = nn.Conv2d(4, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.up(self.down2(self.pool(a)))
            dy, dx = a.size(2) - b.size(2), a.size(3) - b.size(3)
            b = F.pad(b, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return self.head(self.up1(T.cat([a, b], dim=1)))

    model = UNet().to(memory_format=T.channels_last)
    optimizer = T.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
    x, target = numbers(T, 2, 1, 15, 17), labels(T, 2, 2, 15, 17)

    def loss_of(step):
        out = model(x.to(memory_format=T.channels_last))
        dice = F.softmax(out, 1)[:, 1]
        overlap = 2 * (dice * target).sum((1, 2)) / (dice.sum((1, 2)) + target.sum((1, 2)))
        return F.cross_entropy(out, target) + 1 - overlap.mean()

    return train(optimizer, loss_of)


@program(1e-4)
def siamese_triplets(T):
    nn, F = namespaces(T)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.PReLU(),
        nn.AvgPool2d(2, 2),
        nn.Flatten(),
        nn.LazyLinear(16),
        nn.Dropout(0.25),
        nn.Linear(16, 4),
    )
    x = [numbers(T, 6, 1, 10, 10, seed=s) for s in range(3)]
    model(x[0])
    optimizer = T.optim.Adagrad(model.parameters(), lr=0.02)
    triplet, contrast = nn.TripletMarginLoss(margin=1.0, swap=True), nn.CosineEmbeddingLoss(0.2)

    def loss_of(step):
        a, p, n = (F.normalize(model(v)) for v in x)
        return triplet(a, p, n) + contrast(a, n, -T.ones(6))

    return train(optimizer, loss_of)


@program()
def sequence_to_sequence(T):
    nn, F = namespaces(T)
    rnn = nn.utils.rnn

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(12, 6, 0), nn.Embedding(9, 6, 0)
            self.encoder = nn.GRU(6, 8, bidirectional=True, batch_first=True)
            self.decoder = nn.GRUCell(6 + 16, 8)
            self.bridge, self.score = nn.Linear(16, 8), nn.Linear(8, 16, bias=False)
            self.out = nn.Linear(24, 9)

        def forward(self, source, lengths, target):
            packed = rnn.pack_padded_sequence(
                self.source(source), lengths, batch_first=True, enforce_sorted=False
            )
            packed, hidden = self.encoder(packed)
            memory, _ = rnn.pad_packed_sequence(packed, batch_first=True)
            state = T.tanh(self.bridge(T.cat((hidden[0], hidden[1]), -1)))
            padding = T.arange(memory.size(1))[None, :] >= lengths[:, None]
            logits = []
            for t in range(target.size(1) - 1):
                weights = T.bmm(memory, self.score(state).unsqueeze(2)).squeeze(2)
                weights = weights.masked_fill(padding, float("-inf")).softmax(-1)
                context = T.einsum("bl,bld->bd", weights, memory)
                state = self.decoder(T.cat((self.target(target[:, t]), context), -1), state)
                logits.append(self.out(T.cat((state, context), -1)))
            return T.stack(logits, 1)

    model = Translator()
    lengths = T.tensor([3, 7, 5])
    rows = [labels(T, 11, int(n), seed=int(n)) + 1 for n in lengths]
    source = rnn.pad_sequence(rows, batch_first=True)
    target = labels(T, 9, 3, 6, seed=4)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(step):
        logits = model(source, lengths, target)
        return F.cross_entropy(logits.reshape(-1, 9), target[:, 1:].reshape(-1), ignore_index=0)

    return train(optimizer, loss_of)


@program()
def transformer_encoder(T):
    nn, F = namespaces(T)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 16, padding_idx=0)
            position = T.arange(9).unsqueeze(1)
            rate = T.exp(T.arange(0, 16, 2) * (-math.log(10000.0) / 16))
            table = T.zeros(9, 16)
            table[:, 0::2], table[:, 1::2] = T.sin(position * rate), T.cos(position * rate)
            self.register_buffer("table", table)
            layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, "gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(16, 3)

        def forward(self, tokens):
            x = self.embedding(tokens) * math.sqrt(16) + self.table
            x = self.encoder(x, src_key_padding_mask=tokens.eq(0))
            kept = tokens.ne(0).unsqueeze(-1)
            return self.out((x * kept).sum(1) / kept.sum(1))

    model = Model()
    tokens = labels(T, 19, 4, 9) + 1
    tokens[0, 5:], tokens[2, 7:] = 0, 0
    target = labels(T, 3, 4, seed=2)
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = T.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=STEPS)
    losses = train(
        optimizer,
        lambda step: F.cross_entropy(model(tokens), target),
        after=lambda step: scheduler.step(),
    )
    model.eval()
    with T.no_grad():
        return [*losses, F.cross_entropy(model(tokens), target).item()]


@program()
def causal_language_model(T):
    nn, F = namespaces(T)

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.proj = nn.Linear(width, width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            b, t, c = x.shape
            parts = self.qkv(self.norm1(x)).split(c, dim=2)
            q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.mlp(self.norm2(x))

    embedding = nn.Embedding(30, 16)
    blocks = nn.ModuleList([Block(16, 4) for _ in range(2)])
    head = nn.Linear(16, 30, bias=False)
    head.weight = embedding.weight
    model = nn.ModuleDict({"embedding": embedding, "blocks": blocks, "head": head})
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    other = [p for p in model.parameters() if p.dim() < 2]
    optimizer = T.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    tokens = labels(T, 30, 3, 12)

    def loss_of(step):
        x = embedding(tokens[:, :-1])
        for block in blocks:
            x = T.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        return F.cross_entropy(head(x).flatten(0, 1), tokens[:, 1:].flatten())

    return train(optimizer, loss_of)


@program()
def speech_with_ctc(T):
    nn, F = namespaces(T)

    class Recogniser(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(5, 8, 3, padding=1)
            self.norm = nn.BatchNorm1d(8)
            self.rnn = nn.LSTM(8, 8, num_layers=2, bidirectional=True, dropout=0.1)
            self.fc = nn.Linear(16, 6)

        def forward(self, x):
            x = F.hardtanh(self.norm(self.conv(x)), 0, 20).permute(2, 0, 1)
            self.rnn.flatten_parameters()
            return F.log_softmax(self.fc(self.rnn(x)[0]), dim=2)

    model = Recogniser()
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = T.optim.Adam(model.parameters(), lr=5e-3, amsgrad=True)
    scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    x, target = numbers(T, 3, 5, 14), labels(T, 5, 3, 4) + 1
    lengths, target_lengths = T.tensor([14, 12, 10]), T.tensor([4, 3, 2])
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = criterion(model(x), target, lengths, target_lengths)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step(loss.item())
        losses.append(loss.item())
    return losses


@program()
def mobile_network(T):
    nn, F = namespaces(T)

    class InvertedResidual(nn.Module):
        def __init__(self, i, o, stride, expand):
            super().__init__()
            h = i * expand
            self.shortcut = stride == 1 and i == o
            self.conv = nn.Sequential(
                nn.Conv2d(i, h, 1, bias=False), nn.BatchNorm2d(h), nn.ReLU6(inplace=True),
                nn.Conv2d(h, h, 3, stride, 1, groups=h, bias=False), nn.BatchNorm2d(h),
                nn.Hardswish(inplace=True), nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o),
            )  # fmt: skip

        def forward(self, x):
            return x + self.conv(x) if self.shortcut else self.conv(x)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True),
        InvertedResidual(8, 8, 1, 2), InvertedResidual(8, 12, 2, 3),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(12, 5),
    )  # fmt: skip
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out")
    optimizer = T.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=4e-5
    )
    scheduler = T.optim.lr_scheduler.SequentialLR(
        optimizer,
        [T.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
         T.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)],
        [3],
    )  # fmt: skip
    x, target = numbers(T, 4, 3, 16, 16), labels(T, 5, 4)
    return train(
        optimizer,
        lambda step: F.cross_entropy(model(x), target),
        after=lambda step: scheduler.step(),
    )


@program()
def normalised_autoencoder(T):
    nn, F = namespaces(T)
    p = nn.utils.parametrizations
    encoder = nn.Sequential(p.weight_norm(nn.Linear(12, 8)), nn.ELU(), nn.Linear(8, 3))
    decoder = nn.Sequential(p.spectral_norm(nn.Linear(3, 8)), nn.Softplus(), nn.Linear(8, 12))
    p.orthogonal(decoder[2])
    model = nn.Sequential(encoder, decoder)
    optimizer = T.optim.NAdam(model.parameters(), lr=1e-2)
    x = numbers(T, 7, 12)
    return train(optimizer, lambda step: F.smooth_l1_loss(model(x), x, beta=0.5))


@program()
def variational_autoencoder(T):
    nn, F = namespaces(T)
    D = importlib.import_module(T.__name__ + ".distributions")
    encoder, decoder = nn.Linear(10, 6), nn.Sequential(nn.Linear(3, 8), nn.Mish(), nn.Linear(8, 10))
    model = nn.ModuleList([encoder, decoder])
    optimizer = T.optim.Adamax(model.parameters(), lr=1e-2)
    x = (numbers(T, 5, 10) > 0).float()

    def loss_of(step):
        mean, spread = encoder(x).chunk(2, dim=-1)
        posterior = D.Normal(mean, F.softplus(spread) + 1e-3)
        likelihood = D.Bernoulli(logits=decoder(posterior.rsample())).log_prob(x).sum(-1)
        prior = D.Normal(T.zeros(3), T.ones(3))
        return (D.kl_divergence(posterior, prior).sum(-1) - likelihood).mean()

    return train(optimizer, loss_of)


@program(1e-3)
def mixed_precision(T):
    nn, F = namespaces(T)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = T.optim.SGD(model.parameters(), lr=0.1)
    scaler = T.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    x, target = numbers(T, 6, 8), labels(T, 4, 6)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        with T.autocast(device_type="cpu", dtype=T.bfloat16):
            out = model(x)
            assert out.dtype == T.bfloat16
            loss = F.cross_entropy(out, target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return [*losses, scaler.get_scale()]


@program()
def fit_with_lbfgs(T):
    nn, F = namespaces(T)
    model = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)).double()
    optimizer = T.optim.LBFGS(model.parameters(), lr=0.5, line_search_fn="strong_wolfe", max_iter=4)
    x = T.linspace(-2, 2, 21, dtype=T.float64).unsqueeze(1)
    y, losses = T.sin(2 * x), []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        losses.append(optimizer.step(closure).item())
    return losses


@program()
def loaded_data_and_averaged_model(T):
    nn, F = namespaces(T)
    data = importlib.import_module(T.__name__ + ".utils.data")
    swa = importlib.import_module(T.__name__ + ".optim.swa_utils")
    whole = data.TensorDataset(numbers(T, 30, 4), numbers(T, 30, 1, seed=1))
    first, second = data.random_split(whole, [0.8, 0.2])
    loader = data.DataLoader(first, batch_size=7, shuffle=True, num_workers=2, drop_last=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.SELU(), nn.Linear(8, 1))
    average = swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))
    optimizer = T.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    scheduler = swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    losses = []
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.huber_loss(model(x), y)
            loss.backward()
            optimizer.step()
            average.update_parameters(model)
            losses.append(loss.item())
        scheduler.step()
    swa.update_bn(loader, average)
    average.eval()
    for x, y in data.DataLoader(second, batch_size=6):
        losses.append(F.mse_loss(average(x), y).item())
    return losses


@program(1e-4)
def policy_gradient(T):
    nn = T.nn
    D = importlib.import_module(T.__name__ + ".distributions")
    policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = T.optim.Adam(policy.parameters(), lr=0.01)
    states = numbers(T, 20, 4)

    def loss_of(step):
        choice = D.Categorical(logits=policy(states))
        action = choice.sample()
        reward = (action == (states.sum(-1) > 0).long()).float()
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
        return -(choice.log_prob(action) * advantage).mean() - 0.01 * choice.entropy().mean()

    return train(optimizer, loss_of)


@program(1e-4)
def distillation_with_hooks(T):
    nn, F = namespaces(T)
    teacher = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 5)).eval()
    student = copy.deepcopy(teacher).train()
    for p in teacher.parameters():
        p.requires_grad_(False)
    kept = {}
    student[1].register_forward_hook(lambda module, args, out: kept.update(hidden=out))
    student[0].weight.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
    nn.init.xavier_uniform_(student[2].weight, gain=nn.init.calculate_gain("relu"))
    optimizer = T.optim.RAdam(student.parameters(), lr=0.02)
    x = numbers(T, 8, 6)

    def loss_of(step):
        with T.no_grad():
            soft = F.log_softmax(teacher(x) / 2, -1)
        own = F.log_softmax(student(x) / 2, -1)
        loss = F.kl_div(own, soft, reduction="batchmean", log_target=True) * 4
        return loss + 1e-2 * kept["hidden"].abs().mean()

    losses = train(optimizer, loss_of)
    fresh = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 5))
    fresh.load_state_dict(student.state_dict())
    return [*losses, fresh(x).square().mean().item()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_agree(name):
    function, tolerance = PROGRAMS[name]
    found = []
    for package in (torch, facula):
        package.manual_seed(7)
        found.append(function(package))
    assert np.isfinite(found[0]).all()
    assert len(set(found[0])) > 1
    np.testing.assert_allclose(found[1], found[0], rtol=tolerance, atol=1e-6)
