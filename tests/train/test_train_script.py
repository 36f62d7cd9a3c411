"""Scripts run as they are printed: no `if __name__` guard, no second run of the script in a worker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = "open('runs-of-this-script', 'a').write('x')\n"


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(COUNT + script)
    return subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=240)


def readme() -> str:
    """README's block that trains, with fewer steps and smaller pictures."""
    (code,) = (block for block in blocks() if "unseam.fit(" in block)
    return code.replace("steps=5000", "steps=4").replace('"size": 32', '"size": 8, "orientations": 1, "xs": 4, "ys": 4')


def blocks() -> list[str]:
    """README's Python blocks."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


@pytest.mark.parametrize("block", [block for block in blocks() if "unseam.fit(" not in block])
def test_a_block_of_the_readme_runs_as_it_is_printed(block: str, tmp_path: Path) -> None:
    done = run(block, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3


def test_the_snippet_of_the_readme_runs_as_it_is_printed(tmp_path: Path) -> None:
    script = readme().replace("steps=4", 'steps=4, network="mlp", encoder=(8,), decoder=(8,), workers=2')
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs-of-this-script").read_text() == "x"


def test_an_objective_of_the_script_itself_is_trained_in_its_process(tmp_path: Path) -> None:
    script = """
from dataclasses import dataclass
import unseam
from unseam.objectives.elbo import BetaVAE

@dataclass(frozen=True)
class Mine(BetaVAE):
    \"\"\"The same by another name.\"\"\"

run = unseam.fit("synth-linear", Mine, seeds=[0, 1], steps=2, network="linear", latents=2, workers=2,
                 data_parameters={"size": 100}, out="run")
assert run.finished
"""
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "move it to a module of its own" in done.stderr
    assert (tmp_path / "runs-of-this-script").read_text() == "x"


def test_a_process_that_dies_reports_its_own_error(tmp_path: Path) -> None:
    """The module of the objective is gone when the workers start."""
    (tmp_path / "mine.py").write_text("from unseam.objectives.elbo import VAE\nclass Mine(VAE):\n    'Mine.'\n")
    script = """
import os, mine, unseam
os.rename("mine.py", "other.py")
unseam.fit("synth-linear", mine.Mine, seeds=[0, 1], steps=2, network="linear", latents=2, workers=2,
           data_parameters={"size": 100}, out="run")
"""
    done = run(script, tmp_path)
    assert done.returncode == 1
    assert "mine" in done.stderr.splitlines()[-1]
    assert "memory" not in done.stderr


@pytest.mark.parametrize("on", ["here", "dask"])
def test_a_study_runs_in_a_script_without_a_guard(on: str, tmp_path: Path) -> None:
    grid = (ROOT / "tests" / "study" / "tiny.toml").read_text()
    (tmp_path / "tiny.toml").write_text(grid)
    done = run(
        f"from unseam.study import study\nstudy('tiny.toml', 'out', workers=1, models=[0], on={on!r})\n", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs-of-this-script").read_text() == "x"
