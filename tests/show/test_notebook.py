"""A notebook with find, fit, diagnose and report runs without errors, and shows its progress and its results."""

import os
from pathlib import Path

import pytest

CELLS = (
    "import numpy as np, unseam\n"
    "from unseam import progress\n"
    "progress._QUICK = 0.0\n"
    "g = np.random.default_rng(0)\n"
    "x = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))\n"
    "unseam.find(x, network=False)",
    "run = unseam.fit('synth-linear', steps=60, network='linear', latents=2, workers=1, out='run',\n"
    "                 data_parameters={'size': 300})\n"
    "run",
    "unseam.diagnose(run)",
    "unseam.report('run')",
    "unseam.plot(run)",
)


def test_a_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    source = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    found, trained, diagnosed, reported, drawn = (list(cell.outputs) for cell in book.cells)
    assert "<table" in found[-1]["data"]["text/html"]
    bars = [out for out in trained if "<progress" in str(out.get("data", {}).get("text/html"))]
    assert any("60 of 60 (100%)" in bar["data"]["text/html"] for bar in bars), trained
    assert "<table" in trained[-1]["data"]["text/html"]
    assert "<table" in diagnosed[-1]["data"]["text/html"]
    assert (tmp_path / "run" / "report.html").is_file(), reported
    assert any("image/png" in out.get("data", {}) for out in drawn)
