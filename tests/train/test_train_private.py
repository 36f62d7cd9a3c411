"""What torch does not promise may be missing: training goes on without it, to the same numbers."""

import re
import subprocess
import sys
from importlib import reload
from pathlib import Path

import pytest
import torch

from unseam.objectives import Optimiser
from unseam.run import Run
from unseam.train import compiled_step, fit, torch_private
from unseam.train.stack import Stepper


def train(out: Path) -> Run:
    return fit("synth-nonlinear", "beta-vae", network="mlp", encoder=(8,), decoder=(8,), latents=2, steps=30,
               seeds=[0, 1], batch=16, log_every=10, workers=1, data_parameters={"size": 100}, out=out)  # fmt: skip


def test_training_without_private_names_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "LONG", 1)
    whole = train(tmp_path / "whole")
    monkeypatch.setitem(sys.modules, "torch.fx.experimental.proxy_tensor", None)  # importing it now fails
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    try:
        reload(torch_private)
        assert torch_private.make_fx is None
        assert isinstance(torch_private.fast_bfloat16(), bool)
        without = train(tmp_path / "without")
    finally:
        monkeypatch.undo()
        reload(torch_private)
    a, b = (torch.cat([p.flatten() for p in run.model(1).parameters()]) for run in (whole, without))
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_bfloat16_is_known_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    for flags, fast in (({"avx512_bf16"}, True), ({"amx_bf16"}, True), ({"avx2"}, False), (set(), False)):
        monkeypatch.setattr(torch_private, "_processor_flags", lambda flags=flags: flags)
        assert torch_private.fast_bfloat16() is fast


def test_no_private_name_of_torch_outside_its_room() -> None:
    """`torch._name`, `torch.a._name` and torch.fx.experimental are read in train/torch_private.py only."""
    house = Path(torch_private.__file__).parents[1]
    pattern = re.compile(r"\btorch(\.\w+)*\._[a-z]\w*|torch\.fx\.experimental")
    lines = [(path, line) for path in house.rglob("*.py") for line in path.read_text().splitlines()]
    code = [(path, line) for path, line in lines if pattern.search(line) and "`" not in line]
    assert {path.relative_to(house).as_posix() for path, line in code} <= {"train/torch_private.py"}, code


def test_stepper_state_can_be_taken_up_by_another() -> None:
    """What a checkpoint holds is enough: a new optimiser with that state takes the same next step."""
    for name in ("adam", "adagrad", "sgd"):
        first = torch.linspace(-1, 1, 9)
        first.grad = torch.sin(torch.arange(9.0))
        one = Stepper(Optimiser(name, lr=0.03), first)
        fresh = {key: value.clone() for key, value in one.state.items()}
        assert all((value == 0).all() for value in fresh.values())
        one.step()
        second = first.clone()
        second.grad = first.grad
        two = Stepper(Optimiser(name, lr=0.03), second)
        two.state = {key: value.clone() for key, value in one.state.items()}
        one.step()
        two.step()
        assert torch.equal(first, second)
        assert {key: value.tolist() for key, value in one.state.items()} == {
            key: value.tolist() for key, value in two.state.items()
        }


def test_the_first_step_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    """torch's compiler (its optimisers load it, and so does writing a step out), pandas and most of SciPy."""
    code = (
        "import sys; from unseam.train import fit, step_by_step; update = step_by_step.update\n"
        "def first(*given):\n"
        "    update(*given); print(*({'torch._dynamo', 'pandas', 'scipy.stats', 'scipy.optimize'} & {*sys.modules}))\n"
        "    sys.exit()\n"
        "step_by_step.update = first\n"
        f"fit('sprites', 'beta-vae', steps=1000, workers=1, out={str(tmp_path / 'run')!r}, show=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.split(), done.returncode) == ([], 0), done.stderr
