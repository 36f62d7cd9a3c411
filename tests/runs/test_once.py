"""`unseam diagnose` on two members: the database is opened once, and each member encodes each set of rows once."""

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
import torch

import unseam.runs.diagnose
import unseam.runs.rank_members
from unseam.cli import main
from unseam.run.config import split
from unseam.runs.represent import represent
from unseam.train import fit


def test_diagnose_opens_the_database_once_and_encodes_each_set_of_rows_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = 6001  # not the size of any sample of its rows
    run = fit("synth-linear", network="linear", latents=2, steps=3, seeds=[0, 1], data_parameters={"size": size},
              workers=1, show=False, out=tmp_path / "run")  # fmt: skip
    split.cache_clear()
    opened, encoded, permuted = Counter[str](), Counter[object](), Counter[int]()
    connect, randperm = sqlite3.connect, torch.randperm

    def counting_connect(place, *args, **kwargs):
        opened["read" if "mode=ro" in str(place) else "write"] += 1
        return connect(place, *args, **kwargs)

    def counting_represent(model, data, rows, *args, **kwargs):
        weights = torch.cat([p.flatten() for p in model.parameters()])
        encoded[weights.double().sum().item(), tuple(rows.tolist())] += 1
        return represent(model, data, rows, *args, **kwargs)

    def counting_randperm(n, *args, **kwargs):
        permuted[n] += 1
        return randperm(n, *args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", counting_connect)
    monkeypatch.setattr(torch, "randperm", counting_randperm)
    for module in (unseam.runs.diagnose, unseam.runs.rank_members):
        monkeypatch.setattr(module, "represent", counting_represent)
    assert main(["diagnose", str(run.folder), "--no-figures", "--json"]) == 0
    assert opened == {"read": 1, "write": 1}
    assert len(encoded) == 8  # two members; rows of the diagnosis, of the comparison, held-out and trained costs
    assert set(encoded.values()) == {1}
    assert permuted[size] == 1  # the split into trained and held-out rows
    opened.clear(), encoded.clear()
    assert main(["diagnose", str(run.folder), "--no-figures", "--json"]) == 0
    assert opened == {"read": 1}
    assert not encoded  # all of it was kept
