"""Answers that no honest server gives: each is one line, the next mirror is asked, and no wait is without end."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unseam import BadInput
from unseam.data.download import fetch
from unseam.data.download.sources import SOURCES, File
from unseam.run import load as packed
from unseam.run import load_run

CONTENT = b"content" * 100
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(CONTENT) + CONTENT


def moved(address: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")


BAD = {
    "length is a word": b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n" + CONTENT,
    "length is a float": b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n" + CONTENT,
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n" + CONTENT,
    "negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + CONTENT,
    "length of 5,000 digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n" + CONTENT,
    "chunk of length -5": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n",
    "chunk of length x": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n",
    "to half an IPv6 address": moved("http://[::1"),
    "to an empty label": moved("http://a..b/"),
    "to a label that is too long": moved(f"http://{'a' * 70}.example/"),
    "to a port that is none": moved("http://127.0.0.1:99999999/"),
    "no status": b"\r\n\r\n",
    "status is a word": b"HTTP/1.1 fine\r\n\r\n",
    "nothing": b"",
}


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """serve(answer, pause=...): the address of a server that sends these bytes to whoever asks, all or one by one."""
    sockets, ended = [], threading.Event()

    def start(answer: bytes, pause: float = 0.0) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)

        def answer_all() -> None:
            while not ended.is_set():
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                with line:
                    line.recv(65536)
                    parts = [answer] if not pause else [answer[i : i + 1] for i in range(len(answer))]
                    try:
                        for part in parts:
                            line.sendall(part)
                            ended.wait(pause)
                    except OSError:
                        continue

        threading.Thread(target=answer_all, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield start
    ended.set()
    for listening in sockets:
        listening.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))


def offer(monkeypatch: pytest.MonkeyPatch, *mirrors: str) -> None:
    monkeypatch.setitem(SOURCES, "dsprites", (File("file.bin", mirrors, len(CONTENT), {}),))


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_line_and_the_next_mirror_is_asked(
    answer: bytes, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, serve(answer))
    with pytest.raises(BadInput, match=r"file\.bin could not be fetched") as error:
        fetch.fetch("dsprites")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1500
    offer(monkeypatch, serve(answer), serve(GOOD))
    (path,) = fetch.fetch("dsprites")
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_pack_behind_such_a_server_is_one_line(answer: bytes, serve: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        load_run(serve(answer) + "/run")
    assert "\n" not in str(error.value)
    file = File("run/config.json", (), 9, {"sha256": "0"})
    with pytest.raises(BadInput, match="could not be fetched"):
        fetch.bring(tmp_path, file, [serve(answer)])


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_byte_now_and_then_is_not_waited_for(
    part: str, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "HEAD", 0.3 if part == "head" else 60)
    monkeypatch.setattr(fetch, "STRETCH", 0.3)
    slow = serve(
        GOOD if part == "head" else b"HTTP/1.1 200 OK\r\n\r\n" + CONTENT, pause=0.02 if part == "head" else 0.005
    )
    offer(monkeypatch, slow, serve(GOOD))
    (path,) = fetch.fetch("dsprites")
    assert path.read_bytes() == CONTENT
    words = "no answer within" if part == "head" else "too slow to wait for"
    with pytest.raises(TimeoutError, match=words):
        fetch.receive(slow, path.with_name("other"), 10**6, "fetching")


def test_a_download_of_unknown_length_has_progress_too(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("unseam.progress.REPORT_EVERY", 0.0)
    offer(monkeypatch, serve(b"HTTP/1.1 200 OK\r\n\r\n" + CONTENT))
    fetch.fetch("dsprites")
    assert "fetching file.bin (MB): 0, 0:00 so far" in capsys.readouterr().err


def test_names_longer_than_a_file_system_takes_are_refused(tmp_path: Path) -> None:
    name = "a" * 300
    manifest = f'{{"runs": ["{name}"], "files": {{}}}}'.encode()
    with pytest.raises(BadInput, match="not a plain name inside the folder"):
        packed.read_manifest(manifest, "pack.json")
    for place in (name, tmp_path / name, f"{name}/run"):
        with pytest.raises(BadInput, match="run="):
            load_run(place)


def test_waiting_for_a_head_ends_with_its_thread(serve: Callable[..., str]) -> None:
    before = threading.active_count()
    with fetch.answer_of(serve(GOOD)) as answer:
        assert answer.read() == CONTENT
    deadline = time.monotonic() + 60
    while threading.active_count() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before + 1  # the server's own
