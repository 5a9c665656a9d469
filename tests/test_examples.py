"""The examples run, learn something, and leave what they say that they leave."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
pytestmark = pytest.mark.facula_only


def run(name, out, *arguments):
    command = [sys.executable, FOLDER / f"{name}.py", "--quick", "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    progress = re.findall(r"^ *(\d+)/(\d+) steps ", done.stdout, re.MULTILINE)
    assert progress and progress[-1][0] == progress[-1][1]
    return done.stdout


def number_after(text, printed):
    return float(re.search(re.escape(text) + r"\s*([-\d.]+)", printed)[1])


def assert_is_chart(path):
    root = ElementTree.parse(path).getroot()
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert lines and all(len(e.get("points").split()) > 5 for e in lines)


def assert_is_png(path):
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_custom_function(tmp_path):
    printed = run("custom_function", tmp_path)
    straight = number_after("4 bits, straight through:  loss", printed)
    assert straight < number_after("4 bits, true derivative:   loss", printed)
    assert_is_chart(tmp_path / "losses.svg")


def test_reinforcement(tmp_path):
    printed = run("reinforcement", tmp_path)
    # A policy that pushes at random lasts about 22 steps.
    assert number_after("mean length of the last 100 episodes:", printed) > 60
    assert_is_chart(tmp_path / "lengths.svg")


def test_recommendation(tmp_path):
    printed = run("recommendation", tmp_path)
    guess = number_after("error of always guessing the mean:", printed)
    assert number_after("error on ratings never seen:", printed) < 0.8 * guess
    assert len((tmp_path / "recommendations.txt").read_text().splitlines()) == 6
    assert_is_chart(tmp_path / "errors.svg")


def test_image_classifier(tmp_path):
    printed = run("image_classifier", tmp_path)
    assert number_after("test accuracy:", printed) > 95
    assert (tmp_path / "convnet.pt").stat().st_size > 10_000
    assert_is_png(tmp_path / "mistakes.png")


def test_character_gpt(tmp_path):
    printed = run("character_gpt", tmp_path, "--prompt", "class ")
    assert number_after("loss on text never seen:", printed) < 3.5
    assert (tmp_path / "sample.txt").read_text().startswith("class ")


def test_lstm_language_model(tmp_path):
    printed = run("lstm_language_model", tmp_path)
    assert number_after("perplexity at the end:", printed) < 4
    assert len((tmp_path / "sums.txt").read_text().splitlines()) == 100


def test_variational_autoencoder(tmp_path):
    printed = run("variational_autoencoder", tmp_path)
    assert number_after("evidence lower bound on pictures never seen:", printed) > 50
    assert_is_png(tmp_path / "digits.png")
