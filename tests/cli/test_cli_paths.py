"""A path is printed as it is: brackets in it are not markup."""

from pathlib import Path

import numpy as np
import pytest

from unseam.cli import main

NAME = "[red]a[/x]"


def test_brackets_in_paths_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("[red]a[").mkdir()
    np.save(f"{NAME}.npy", np.random.default_rng(0).normal(size=(60, 3)))
    np.save("factors.npy", np.arange(60) % 3)
    small = ["--network", "linear", "--latents", "2", "--steps", "3", "--workers", "1", "--data.factors", "factors.npy"]
    assert main(["train", f"{NAME}.npy", "--out", NAME, *small]) == 0
    assert f"run folder: {NAME}" in capsys.readouterr().out
    for verb, told in {"evaluate": "x].npy, 60 rows", "diagnose": f"figure: {NAME}", "align": f"written to {NAME}",
                       "report": f"report: {NAME}"}.items():  # fmt: skip
        assert main([verb, NAME]) == 0
        assert told in capsys.readouterr().out.replace("\n", ""), verb
