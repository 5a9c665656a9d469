"""The models of bench/models.py: they learn, and beside PyTorch they learn the same."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

import facula as F

BENCH = Path(__file__).resolve().parent.parent / "bench"
pytestmark = pytest.mark.facula_only


@pytest.fixture(scope="module")
def curves():
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module("curves")
    finally:
        sys.path.remove(str(BENCH))


@pytest.mark.parametrize("name", ["mlp", "convnet", "gpt", "lstm", "vae"])
def test_loss_falls(curves, name, keep_random_state):
    training = curves.MODELS[name](F)
    losses = [training.step() for _ in range(4 if name == "convnet" else 12)]
    assert all(loss == loss for loss in losses)
    if name != "convnet":  # its first steps jump
        assert min(losses[-3:]) < losses[0]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="compares with PyTorch")
@pytest.mark.parametrize("name", ["mlp", "convnet", "resnet18", "gpt", "lstm", "vae"])
def test_losses_and_checkpoints_equal_those_of_pytorch(curves, name):
    found = curves.compare(name, 4 if name in ("convnet", "resnet18") else 10)
    assert found["difference"] < max(1e-3, 3 * found["own"])
    assert found["loads theirs"]
    assert found["loaded by them"]
