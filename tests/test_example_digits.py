"""The demo of the README: it must learn, save what it learnt, and draw its picture."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import facula

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "digits"

# The example imports facula by name, whatever package the other tests exercise.
pytestmark = pytest.mark.facula_only


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """The folder that a short training wrote, and what it printed."""
    out = tmp_path_factory.mktemp("digits")
    command = [sys.executable, FOLDER / "train.py", "--quick", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


def printed_accuracy(text):
    return float(re.search(r"^test accuracy: +([\d.]+)%", text, re.MULTILINE)[1])


def parameters(folder):
    state = facula.load(folder / "digits_model.pt")
    return {name: tensor.numpy() for name, tensor in state.items()}


def numpy_accuracy(model, pictures, labels):
    """The network again, in NumPy: the model file must mean the same without Facula."""
    hidden = np.maximum(pictures @ model["0.weight"].T + model["0.bias"], 0)
    scores = hidden @ model["3.weight"].T + model["3.bias"]
    return (scores.argmax(axis=1) == labels).mean()


def test_short_training_reads_nine_of_ten_unseen_digits(quick_run):
    _, printed = quick_run
    assert printed_accuracy(printed) >= 90


def test_output_to_a_file_gets_plain_progress_lines(quick_run):
    _, printed = quick_run
    assert "\r" not in printed
    steps = re.findall(r"^ *(\d+)/(\d+) steps .* loss \d", printed, re.MULTILINE)
    assert len(steps) == 10
    assert steps[-1][0] == steps[-1][1]


def test_model_file_holds_the_trained_network(quick_run):
    out, _ = quick_run
    model = parameters(out)
    with np.load(FOLDER / "digits.npz") as data:
        pictures, labels = data["images"].astype(np.float32) / 16, data["labels"]
    assert model["0.weight"].dtype == np.float32
    assert numpy_accuracy(model, pictures, labels) >= 0.9


def test_same_seed_trains_the_same_network(quick_run, tmp_path):
    out, _ = quick_run
    command = [sys.executable, FOLDER / "train.py", "--quick", "--out", tmp_path]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    first, again = parameters(out), parameters(tmp_path)
    assert first.keys() == again.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_picture_is_a_png_where_matplotlib_is_installed(quick_run):
    out, printed = quick_run
    if find_spec("matplotlib") is None:
        assert "no picture" in printed
        assert not (out / "digits.png").exists()
    else:
        assert (out / "digits.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_zero_epochs_are_refused(tmp_path):
    command = [sys.executable, FOLDER / "train.py", "--epochs", "0", "--out", tmp_path]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert refused.returncode == 2
    assert "--epochs must be at least 1" in refused.stderr
