"""A study, packed: its table and every piece as a run, here and from an address that is asked for one piece only."""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from unseam import BadInput, load_run, study
from unseam.cli import main


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_a_study_is_packed_with_its_table(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pack"
    assert main(["data", "pack", str(done), "--out", str(out), "--licence", "CC0-1.0", "--json"]) == 0
    files, found = json.loads(capsys.readouterr().out)["files"], study.load(done)
    names = list(found.runs())
    assert len(names) == 3
    assert {f"{name}/codes-3.npy" for name in names} <= set(files)
    pd.testing.assert_frame_equal(study.load(out / "tiny.csv").table(), found.table(), check_dtype=False)
    assert "tiny.csv" in (out / "README.md").read_text()
    run = load_run(out / names[1])
    assert len(np.load(out / names[1] / "codes-0.npy")) == len(pd.read_csv(out / names[1] / "factors.csv")) == 32
    assert all(torch.equal(w, run.weights(2)[n]) for n, w in found.runs()[names[1]].weights(2).items())
    with pytest.raises(BadInput, match=rf"holds 3 runs; open one: {out}/{names[0]}"):
        load_run(out)

    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/pack"
        one = load_run(f"{address}/{names[2]}")
        with pytest.raises(BadInput, match=f"holds 3 runs; open one: {address}/{names[0]}"):
            load_run(address)
        with pytest.raises(BadInput, match="run='nowhere' is unknown"):
            load_run(f"{address}/nowhere")
        server.shutdown()
    assert [p.name for p in one.folder.parent.iterdir() if p.is_dir()] == [names[2]]  # the others were not fetched


def test_a_study_in_which_nothing_is_done_is_refused(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "study.json").write_bytes((done / "study.json").read_bytes())
    assert main(["data", "pack", str(tmp_path / "new"), "--out", str(tmp_path / "pack")]) == 2
    assert "no piece is done yet" in capsys.readouterr().err
    assert not (tmp_path / "pack").exists()
