"""Six models with their optimisers and data, written once for PyTorch and Facula.

``MODELS[name](T)`` seeds the package ``T`` and returns a :class:`Training`; its ``step()`` takes
one step and returns the loss. All data is drawn from the package's generator, so that both packages
see the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEED = 20


@dataclass
class Training:
    model: Any
    optimizer: Any
    loss: Callable[[], Any]  # of the next batch
    before_step: Callable[[], Any] = lambda: None

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.before_step()
        self.optimizer.step()
        return float(loss.item())


MODELS: dict[str, Callable[[Any], Training]] = {}


def model(f: Callable[[Any], Training]) -> Callable[[Any], Training]:
    def seeded(T: Any) -> Training:
        T.manual_seed(SEED)
        return f(T)

    MODELS[f.__name__] = seeded
    return seeded


def _batches(T: Any, inputs: Any, targets: Any, size: int) -> Callable[[], tuple[Any, Any]]:
    """Random batches of ``size`` examples."""

    def draw() -> tuple[Any, Any]:
        chosen = T.randint(0, len(inputs), (size,))
        return inputs[chosen], targets[chosen]

    return draw


def _digits(T: Any, n: int, *shape: int) -> tuple[Any, Any]:
    """Noisy copies of ten patterns, and which pattern each is."""
    patterns = T.randn(10, *shape)
    labels = T.randint(0, 10, (n,))
    return patterns[labels] * 0.5 + T.randn(n, *shape), labels


@model
def mlp(T: Any) -> Training:
    nn = T.nn
    net = nn.Sequential(
        nn.Linear(784, 256),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )
    draw = _batches(T, *_digits(T, 2048, 784), 64)

    def loss() -> Any:
        x, y = draw()
        return nn.functional.cross_entropy(net(x), y)

    return Training(net, T.optim.Adam(net.parameters(), lr=1e-3), loss)


@model
def convnet(T: Any) -> Training:
    nn, F = T.nn, T.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, 3, 1)
            self.conv2 = nn.Conv2d(32, 64, 3, 1)
            self.dropout1 = nn.Dropout(0.25)
            self.dropout2 = nn.Dropout(0.5)
            self.fc1 = nn.Linear(9216, 128)
            self.fc2 = nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.conv2(F.relu(self.conv1(x))))
            x = self.dropout1(F.max_pool2d(x, 2))
            x = F.relu(self.fc1(T.flatten(x, 1)))
            return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)

    net = Net()
    draw = _batches(T, *_digits(T, 512, 1, 28, 28), 32)

    def loss() -> Any:
        x, y = draw()
        return F.nll_loss(net(x), y)

    return Training(net, T.optim.Adadelta(net.parameters(), lr=1.0), loss)


def _residual_block(nn: Any, inside: int, outside: int, stride: int) -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or inside != outside:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
                )

        def forward(self, x: Any) -> Any:
            kept = x if self.downsample is None else self.downsample(x)
            x = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(x)) + kept)

    return Block()


@model
def resnet18(T: Any) -> Training:
    nn = T.nn
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = 64
    for stage, outside in enumerate((64, 128, 256, 512)):
        for i in range(2):
            layers.append(_residual_block(nn, inside, outside, 2 if stage and not i else 1))
            inside = outside
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    draw = _batches(T, *_digits(T, 128, 3, 64, 64), 16)

    def loss() -> Any:
        x, y = draw()
        return nn.functional.cross_entropy(net(x), y)

    # A larger rate makes the curve chaotic: PyTorch's own then depends on the number of threads.
    optimizer = T.optim.SGD(net.parameters(), lr=3e-5, momentum=0.9, weight_decay=1e-4)
    return Training(net, optimizer, loss)


@model
def gpt(T: Any) -> Training:
    nn, F = T.nn, T.nn.functional
    vocabulary, context, width, heads, depth = 96, 64, 128, 4, 4

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend = nn.Linear(width, 3 * width)
            self.project = nn.Linear(width, width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            n, length, _ = x.shape
            q, k, v = (
                t.view(n, length, heads, width // heads).transpose(1, 2)
                for t in self.attend(self.ln_1(x)).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(n, length, width))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(depth))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions(T.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    net = GPT()
    text = _text(T, vocabulary)

    def loss() -> Any:
        x, y = _excerpts(T, text, 8, context)
        return F.cross_entropy(net(x).view(-1, vocabulary), y.reshape(-1))

    return Training(net, T.optim.AdamW(net.parameters(), lr=1e-3), loss)


def _text(T: Any, vocabulary: int) -> Any:
    """Words of a few letters, repeated at random."""
    words = T.randint(0, vocabulary, (50, 5))
    return words[T.randint(0, 50, (2000,))].flatten()


def _excerpts(T: Any, text: Any, count: int, length: int) -> tuple[Any, Any]:
    """Stretches of text, and the same moved by one."""
    starts = T.randint(0, len(text) - length - 1, (count, 1))
    at = starts + T.arange(length + 1)
    return text[at[:, :-1]], text[at[:, 1:]]


@model
def lstm(T: Any) -> Training:
    nn, F = T.nn, T.nn.functional
    vocabulary, width = 96, 128

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.lstm(self.embed(tokens))[0])

    net = Net()
    text = _text(T, vocabulary)

    def loss() -> Any:
        x, y = _excerpts(T, text, 16, 32)
        return F.cross_entropy(net(x).flatten(0, 1), y.flatten())

    return Training(
        net,
        T.optim.Adam(net.parameters(), lr=2e-3),
        loss,
        lambda: nn.utils.clip_grad_norm_(net.parameters(), 0.25),
    )


@model
def vae(T: Any) -> Training:
    nn, F = T.nn, T.nn.functional

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = nn.Linear(784, 400)
            self.fc21, self.fc22 = nn.Linear(400, 20), nn.Linear(400, 20)
            self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x: Any) -> Any:
            h = F.relu(self.fc1(x))
            mean, logvar = self.fc21(h), self.fc22(h)
            std = T.exp(0.5 * logvar)
            z = mean + T.randn_like(std) * std
            return T.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, logvar

    net = VAE()
    images, labels = _digits(T, 1024, 784)
    draw = _batches(T, T.sigmoid(images * 2), labels, 64)

    def loss() -> Any:
        x, _ = draw()
        again, mean, logvar = net(x)
        reconstruction = F.binary_cross_entropy(again, x, reduction="sum")
        divergence = -0.5 * T.sum(1 + logvar - mean.pow(2) - logvar.exp())
        return (reconstruction + divergence) / len(x)

    return Training(net, T.optim.Adam(net.parameters(), lr=1e-3), loss)
