"""The core works where torch is not installed, and what needs torch says so in one line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from unseam.finding.stability import separations
from unseam.geometry.degeneracy import pairs_of, plane_differences
from unseam.train import fit

ROOT = Path(__file__).parents[2]


def test_the_core_works_without_torch(tmp_path: Path) -> None:
    run = fit(
        "synth-linear", seeds=[0, 1], steps=5, network="linear", latents=2, data_parameters={"size": 300},
        out=tmp_path / "run", show=False,
    )  # fmt: skip
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "packaging" / "core_walk.py"), str(run.folder)],
        cwd=tmp_path / "empty", capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the core works without torch")


@pytest.mark.parametrize("points", [1, 6, 7])
def test_separations_are_those_of_torch(points: int) -> None:
    """NumPy's formula for findings without a network is the one in geometry, on odd and even numbers of points."""
    J = np.random.default_rng(points).normal(size=(points, 5, 4))
    gram = np.swapaxes(J, 1, 2) @ J
    i, j = pairs_of(4)
    d = plane_differences(torch.as_tensor(gram), i, j).numpy()
    expected = [d[(i.numpy() == a) | (j.numpy() == a)].min() for a in range(4)]
    np.testing.assert_allclose(separations(gram), expected, rtol=1e-12)
