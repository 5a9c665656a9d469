"""Read by ``mypy --strict`` in ``tools/dev lint``: a user's program with the types it must have."""

from __future__ import annotations

import datetime

import facula


def train(x: facula.Tensor, y: facula.Tensor, steps: int) -> list[float]:
    weight = facula.zeros(3, 1, requires_grad=True)
    losses: list[float] = []
    for _ in range(steps):
        loss = ((x @ weight - y) ** 2).mean()
        loss.backward()
        with facula.no_grad():
            assert weight.grad is not None
            weight -= 0.1 * weight.grad
        weight.grad = None
        losses.append(loss.item())
    return losses


def shapes(t: facula.Tensor) -> tuple[int, ...]:
    a: facula.Tensor = facula.cat([t, t.transpose(0, 1)], dim=0).sum(dim=1, keepdim=True)
    b = facula.where(a > 0, a, 0.0).reshape(-1).to(facula.float64)
    values, indices = facula.max(t, 1)
    first: facula.Tensor = values + indices
    by_name: facula.Tensor = facula.topk(t, 1).values + t.sort().indices + t.max(0).values
    factors: facula.Tensor = facula.linalg.qr(by_name).Q @ facula.linalg.eigh(t).eigenvectors
    assert factors.dim() == 2
    pieces: tuple[facula.Tensor, ...] = b.split(2)
    kind: facula.dtype = facula.promote_types(first.dtype, facula.int32)
    assert kind.is_floating_point and len(pieces) > 0
    return a.shape


def transforms(x: facula.Tensor) -> facula.Tensor:
    slopes: facula.Tensor = facula.vmap(facula.func.grad(lambda v: v**2))(x)
    value, derivative = facula.func.jvp(facula.sin, (x,), (x,))
    with facula.autograd.forward_ad.dual_level():
        dual = facula.autograd.forward_ad.make_dual(x, slopes)
        tangent = facula.autograd.forward_ad.unpack_dual(dual).tangent
    matrix: facula.Tensor = facula.autograd.functional.jacobian(facula.sin, x, vectorize=True)
    result: facula.Tensor = value + derivative + tangent + matrix
    return result


def layers(x: facula.Tensor) -> facula.Tensor:
    model = facula.nn.Sequential(facula.nn.Linear(3, 4), facula.nn.Identity())
    weights: list[facula.nn.Parameter] = list(model.parameters())
    inverse: facula.Tensor = facula.linalg.inv(x)
    return facula.nn.functional.linear(inverse, weights[0])


def optimised(model: facula.nn.Module, x: facula.Tensor) -> float:
    optimizer = facula.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = facula.optim.lr_scheduler.StepLR(optimizer, step_size=3)
    scaler = facula.amp.GradScaler("cpu")
    with facula.autocast("cpu", dtype=facula.bfloat16):
        loss: facula.Tensor = model(x).sum()
    scaler.scale(loss).backward()
    norm: facula.Tensor = facula.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    optimizer.zero_grad()
    return float(norm.item() + loss.item())


def quantized(x: facula.Tensor) -> float:
    q: facula.Tensor = facula.quantize_per_channel(
        x, facula.ones(2), facula.zeros(2, dtype=facula.int64), 0, facula.qint8
    )
    integers: facula.Tensor = q.int_repr()
    numbers: facula.Tensor = facula.dequantize(q)
    kind: facula.dtype = facula.uint4
    assert q.is_quantized and q.qscheme() is facula.per_channel_affine and kind.itemsize == 1
    step: float = facula.quantize_per_tensor(numbers, 0.1, 3, facula.quint8).q_scale()
    return step + integers.numel()


def rarely_used(path: str) -> list[str]:
    with facula.serialization.skip_data():
        facula.save(facula.ones(2), path)
    facula.serialization.set_crc32_options(True)
    pure = facula.func.functionalize(lambda x: x.mul_(2), remove="mutations")
    result: facula.Tensor = pure(facula.ones(2))
    facula.monitor.log_event(
        facula.monitor.Event("run", datetime.datetime.now(), {"size": result.numel()})
    )
    records: list[str] = facula.PyTorchFileReader(path).get_all_records()
    return records
