"""Markers, profiles and fixtures that every test file may use.

``FACULA_TEST_SHARD=2/8`` runs the second of eight parts of what was asked for, so that several
processes can share the work.
"""

import os

import hypothesis
import pytest
from fake_cuda import fake_cuda_folder, run_on_fake_cuda  # noqa: F401
from package_under_test import F

# Derandomised, so that a failure in CI is the failure at home. HYPOTHESIS_PROFILE=long searches.
hypothesis.settings.register_profile(
    "short", max_examples=150, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("long", max_examples=2_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "facula_only: goes beyond PyTorch; skipped when the tests run against PyTorch"
    )


def pytest_collection_modifyitems(config, items):
    if shard := os.environ.get("FACULA_TEST_SHARD"):
        part, parts = (int(number) for number in shard.split("/"))
        others = [item for i, item in enumerate(items) if i % parts != part - 1]
        config.hook.pytest_deselected(items=others)
        items[:] = items[part - 1 :: parts]
    if F.__name__ == "facula":
        return
    skip = pytest.mark.skip(reason=f"{F.__name__} does not have what Facula adds here")
    for item in items:
        if item.get_closest_marker("facula_only"):
            item.add_marker(skip)


@pytest.fixture
def keep_default_dtype():
    """Puts the default dtype back after a test that changes it."""
    before = F.get_default_dtype()
    yield
    F.set_default_dtype(before)


@pytest.fixture
def keep_random_state():
    """Puts the default generator's state back after a test that seeds it."""
    before = F.get_rng_state()
    yield
    F.set_rng_state(before)


@pytest.fixture
def workers_make_every_batch(monkeypatch):
    """Loaders leave everything to their workers, even what they would make themselves."""
    from facula.utils.data._utils.pace import Pace

    always = property(lambda self: True, lambda self, value: None)
    monkeypatch.setattr(Pace, "failed", always, raising=False)
