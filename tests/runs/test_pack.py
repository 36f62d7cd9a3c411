"""A packed run opens here and from an address; what is not what the manifest says does not."""

import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from unseam import BadInput, load_run
from unseam.cli import main
from unseam.run import Run
from unseam.runs.pack import pack as pack_runs
from unseam.train import fit


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("mine")
    np.save(place / "x.npy", np.random.default_rng(0).normal(size=(60, 3)))
    np.save(place / "f.npy", np.arange(60) % 3)
    few = {"steps": 4, "network": "linear", "latents": 2, "seeds": [0, 1], "workers": 1, "show": False}
    run = fit(place / "x.npy", out=place / "run", data_parameters={"factors": place / "f.npy"}, **few)
    assert main(["evaluate", str(run.folder), "--metrics", "mcc"]) == 0
    return run


@pytest.fixture
def pack(run: Run, tmp_path: Path) -> Path:
    assert main(["data", "pack", str(run.folder), "--out", str(tmp_path / "pack"), "--licence", "CC0-1.0"]) == 0
    return tmp_path / "pack"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(pack))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def same(a: Run, b: Run) -> bool:
    return all(torch.equal(t, b.weights(1)[n]) for n, t in a.weights(1).items())


def test_a_pack_is_the_run_without_its_data(run: Run, pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = load_run(pack)
    assert same(run, opened)
    assert opened.table()["loss"].tolist() == run.table()["loss"].tolist()
    codes = np.load(pack / "run" / "codes-1.npy")
    x = np.load(run.folder.parent / "x.npy")[np.load(pack / "run" / "rows.npy")]
    np.testing.assert_allclose(opened.encode(x, member=1), codes, atol=1e-5)
    q = run.model(1).encode(torch.tensor(x, dtype=torch.float32))
    np.testing.assert_allclose(np.load(pack / "run" / "variances-1.npy"), q.variance().detach(), rtol=1e-4)
    told = np.loadtxt(pack / "run" / "factors.csv", skiprows=1)
    assert (told == np.load(pack / "run" / "rows.npy") % 3).all()  # of the rows that the codes are of
    card = (pack / "README.md").read_text()
    assert "CC0-1.0" in card
    assert "| 0 | mcc |" in card
    everything = b"".join(p.read_bytes() for p in pack.rglob("*") if p.is_file())
    assert str(run.folder.parent).encode() not in everything  # nobody's folders are told
    assert not any(b"optimiser/" in p.read_bytes() for p in pack.rglob("*.safetensors"))
    assert main(["score", str(pack / "run/codes-0.npy"), str(pack / "run/factors.csv"), "--metrics", "mcc"]) == 0
    assert main(["data", "pack", str(run.folder), "--out", str(pack)]) == 2
    assert "exists already and is not an empty folder" in capsys.readouterr().err
    with pytest.raises(BadInput, match="holds the runs themselves"):
        pack_runs([run], run.folder.parent)
    assert main(["train", "--resume", str(pack / "run"), "--steps", "9"]) == 2
    assert "is a packed run" in capsys.readouterr().err


def test_a_pack_opens_from_an_address(run: Run, address: str) -> None:
    assert same(run, load_run(address))
    assert same(run, load_run(f"{address}/pack.json"))  # again, from the data folder
    assert same(run, load_run(f"{address}/run"))
    with pytest.raises(BadInput, match="cannot be fetched"):
        load_run(f"{address}/no/where")
    with pytest.raises(BadInput, match="run='nowhere' is unknown"):
        load_run(f"{address}/nowhere")


def test_bytes_that_differ_are_refused(pack: Path, address: str) -> None:
    path = pack / "run" / "checkpoints" / "group-000.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"group-000.*not what pack.json says \(wrong sha256"):
        load_run(pack)
    with pytest.raises(BadInput, match=r"could not be fetched.*wrong sha256"):
        load_run(address)
    path.unlink()
    with pytest.raises(BadInput, match="missing"):
        load_run(pack / "run")


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "run/../../evil", ".hidden", "a//b", "a\\b", "run/\n"])
def test_no_name_leads_out_of_the_folder(pack: Path, address: str, tmp_path: Path, name: str) -> None:
    document = json.loads((pack / "pack.json").read_text())
    document["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    (pack / "pack.json").write_text(json.dumps(document))
    for place in (pack, address):
        with pytest.raises(BadInput, match="not a plain name"):
            load_run(place)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"runs": [], "files": {}}', b'{"runs": 1, "files": []}'])
def test_what_is_no_manifest_is_refused(pack: Path, content: bytes) -> None:
    (pack / "pack.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"pack\.json"):
        load_run(pack)


@pytest.mark.parametrize("place", [".", "./", "../run"])
def test_a_pack_is_checked_however_its_run_is_named(pack: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pack / "run")
    load_run(place)
    with (pack / "run" / "codes-0.npy").open("ab") as file:
        file.write(b"x")
    with pytest.raises(BadInput, match=r"codes-0\.npy is not what pack\.json says"):
        load_run(place)


class FakeHub:
    """The two functions of huggingface_hub that are used, on a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []

    def hf_hub_download(self, repo_id: str, filename: str, revision: str | None = None) -> str:
        if repo_id != "me/vae":
            raise LookupError("404 Client Error\nRepository not found")
        return str(self.folder / filename)

    def snapshot_download(self, repo_id: str, allow_patterns: list[str], revision: str | None = None) -> str:
        self.asked.append((repo_id, revision, allow_patterns))
        return str(self.folder)


def test_a_pack_on_the_hub(run: Run, pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub(pack)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert same(run, load_run("hf:me/vae"))
    assert same(run, load_run("hf:me/vae@v1/run"))
    assert hub.asked == [("me/vae", None, FILES), ("me/vae", "v1", FILES)]
    with pytest.raises(BadInput, match=r"'hf:you/vae' cannot be fetched: 404 Client Error Repository not found"):
        load_run("hf:you/vae")
    with pytest.raises(BadInput, match="run='other' is unknown"):
        load_run("hf:me/vae/other")
    (pack / "run" / "codes-0.npy").write_bytes(b"altered")
    with pytest.raises(BadInput, match=r"is not what pack.json says"):
        load_run("hf:me/vae")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadInput, match=r"needs huggingface_hub; run: pip install 'unseam\[hub\]'"):
        load_run("hf:me/vae")


FILES = ["pack.json", "README.md", "run/*"]


def test_a_pack_has_the_layout_of_the_hub(run: Run, pack: Path, tmp_path: Path) -> None:
    head = (pack / "README.md").read_text().split("---")[1]
    assert "license: cc0-1.0" in head.splitlines()
    assert "library_name: unseam" in head.splitlines()
    assert '- "beta-vae"' in head.splitlines()
    assert "*.safetensors filter=lfs" in (pack / ".gitattributes").read_text()
    assert main(["data", "pack", str(run.folder), "--out", str(tmp_path / "two"), "--licence", "mine: ask me"]) == 0
    assert 'license: other\nlicense_name: "mine: ask me"' in (tmp_path / "two" / "README.md").read_text()
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "README.md").write_text("somebody's own")
    assert main(["data", "pack", str(run.folder), "--out", str(tmp_path / "three")]) == 2
