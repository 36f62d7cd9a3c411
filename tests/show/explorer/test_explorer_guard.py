"""Who is let in, and what is never given out."""

import io
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from explorer_server import served
from PIL import Image

from unseam.runs.labels import latent_names
from unseam.show.explorer import api, upload
from unseam.show.explorer.api import LARGEST_DOCUMENT, LARGEST_FILE
from unseam.show.explorer.server import listen

POINT = {"model": "0.0", "z": [0.0, 0.0, 0.0, 0.0]}
NAME = {"model": "0.0", "latent": 0, "name": "width"}
TRAVERSALS = (
    "/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "//etc/passwd",
    "/main.js/../../server.py",
    "/server.py",
    "/config.json",
    "/results.sqlite",
    "/checkpoints/group-0.safetensors",
    "/api/../../config.json",
    "/assets/index.html",
    "/main.js%00.html",
)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "0.0.0.0", "", "127.0.0.1.evil.example"])
def test_other_hosts_are_refused(ask, host):
    for path, body in (("/", None), ("/api/about", None), ("/api/decode", POINT), ("/api/name", NAME)):
        assert ask(path, body, host=host).status == 421


def test_the_two_names_of_loopback_are_let_in(ask):
    for name in ("127.0.0.1", "localhost"):
        assert ask("/api/about", host=f"{name}:{ask.port}").status == 200


def test_two_host_headers_are_refused(ask):
    with socket.create_connection(("127.0.0.1", ask.port)) as line:
        line.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{ask.port}\r\nHost: evil.example\r\n\r\n".encode())
        assert b" 400 " in line.recv(100)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"},
    ],
)
def test_cross_origin_requests_are_refused(ask, headers):
    sent = {name: value.format(port=ask.port) for name, value in headers.items()}
    for path, body in (
        ("/", None),
        ("/main.js", None),
        ("/api/about", None),
        ("/api/film", POINT),
        ("/api/name", NAME),
    ):
        reply = ask(path, body, **sent)
        assert reply.status == 403
        assert reply.getheader("access-control-allow-origin") is None


def test_a_shared_link_opens_the_page_and_nothing_else(ask):
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert ask("/", **link).status == 200
    assert ask("/api/about", **link).status == 403
    assert ask("/", **{**link, "sec_fetch_dest": "iframe"}).status == 403


def test_the_page_itself_is_let_in(ask):
    own = {"origin": f"http://127.0.0.1:{ask.port}", "sec_fetch_site": "same-origin"}
    assert ask("/api/decode", POINT, **own).status == 200


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_out_of_the_assets(ask, path):
    reply = ask(path)
    assert reply.status == 404
    assert reply.content == b"Not Found"


def test_every_answer_carries_the_policy(ask):
    for reply in (ask("/"), ask("/main.js"), ask("/api/about"), ask("/nothing"), ask("/", host="evil.example")):
        policy = reply.getheader("content-security-policy")
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert reply.getheader("x-content-type-options") == "nosniff"
        assert reply.getheader("server") is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(ask, method):
    assert ask("/api/about", method=method).status == 405
    assert ask("/api/decode", method="GET").status == 405


def test_oversized_requests_are_refused_unread(ask):
    assert ask("/api/upload", b"x" * (LARGEST_FILE + 1)).status == 413
    assert ask("/api/decode", b" " * (LARGEST_DOCUMENT + 1)).status == 413
    with socket.create_connection(("127.0.0.1", ask.port)) as line:  # no body at all follows
        head = f"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{ask.port}\r\nContent-Length: 99999999999\r\n\r\n"
        line.sendall(head.encode())
        assert b" 413 " in line.recv(100)


def test_a_chunked_body_is_counted(ask):
    with socket.create_connection(("127.0.0.1", ask.port)) as line:
        head = f"POST /api/decode HTTP/1.1\r\nHost: 127.0.0.1:{ask.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        size = LARGEST_DOCUMENT + 1
        line.sendall(head.encode() + f"{size:x}\r\n".encode() + b" " * size + b"\r\n0\r\n\r\n")
        assert b" 413 " in line.recv(100)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"model": "0.0", "z": [NaN, 0, 0, 0]}', "NaN"),
        (b'{"model": "0.0", "z": [0, -Infinity, 0, 0]}', "Infinity"),
        (b'{"model": "0.0", "z": [1e999, 0, 0, 0]}', "z_0"),
        (b'{"model": "0.0", "z": [0, 0, 0, 1001]}', "z_3"),
        (b'{"model": "0.0", "z": [0, null, 0, 0]}', "z_1"),
        (b'{"model": "0.0", "z": [0, true, 0, 0]}', "z_1"),
        (b'{"model": "0.0", "z": [0, "1", 0, 0]}', "z_1"),
        (b'{"model": "0.0", "z": [0, [1], 0, 0]}', "z_1"),
        (b'{"model": "0.0", "z": [' + b"9" * 400 + b", 0, 0, 0]}", "z_0"),
        (b'{"model": "0.0", "z": [' + b"9" * 5000 + b", 0, 0, 0]}", "JSON"),
        (b'{"model": "0.0", "z": [0, 0, 0]}', "4 numbers"),
        (b'{"model": "0.0", "z": 0}', "4 numbers"),
        (b'{"model": "0.0"}', "'z'"),
        (b'{"z": [0, 0, 0, 0]}', "'model'"),
        (b'{"model": "0.9", "z": [0, 0, 0, 0]}', "unknown"),
        (b'{"model": "../config", "z": [0, 0, 0, 0]}', "unknown"),
        (b'{"model": "0.0", "z": [0, 0, 0, 0], "aligned": "maybe"}', "aligned"),
        (b'{"model": "0.0", "z": [0, 0, 0, 0], "aligned": 1.0}', "aligned"),
        (b"[1]", "object"),
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_a_bad_point_is_refused_in_one_line(ask, body, reason):
    for path in ("/api/decode", "/api/geometry", "/api/curve", "/api/film"):
        reply = ask(path, body)
        text = reply.content.decode()
        assert reply.status == 400, text
        assert reason in text
        assert "\n" not in text
        assert len(text) < 300


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/geometry", {"axes": "sideways"}),
        ("/api/curve", {}),
        ("/api/curve", {"component": 4}),
        ("/api/curve", {"component": -1}),
        ("/api/curve", {"component": 1.5}),
        ("/api/curve", {"component": "x"}),
        ("/api/curve", {"component": 0, "forward": 3}),
        ("/api/film", {}),
        ("/api/film", {"kind": "exe"}),
        ("/api/film", {"kind": ["gif"]}),
        ("/api/film", {"kind": "gif", "to": [0, 0, 0]}),
        ("/api/film", {"kind": "gif", "to": [0, 0, 0, 1e9]}),
        ("/api/film", {"kind": "gif", "to": "../0"}),
    ],
)
def test_bad_fields_are_refused(ask, path, fields):
    assert ask(path, {**POINT, **fields}).status == 400


@pytest.mark.parametrize("query", ["", "?row=-1", "?row=6144", "?row=1e3", "?row=x", "?row=" + "9" * 30, "?row=1.5"])
def test_bad_rows_are_refused(ask, query):
    assert ask(f"/api/row{query}").status == 400


def test_bad_observations_are_refused(ask):
    nan = np.full(256, np.nan, "<f4").tobytes()
    for body in (b"", b"123", b"\0" * 4 * 255, nan):
        assert ask("/api/encode?model=0.0", body).status == 400
    assert ask("/api/encode", b"\0" * 1024).status == 400
    assert ask("/api/encode?model=0.0&aligned=2", b"\0" * 1024).status == 400


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "x" * 41}, "at most 40"),
        ({"name": "a\u202eb"}, "printable"),
        ({"name": "a\x00b"}, "printable"),
        ({"name": "\ud800"}, "printable"),
        ({"name": None}, "printable"),
        ({"name": ["x"]}, "printable"),
        ({"latent": 4}, "latent"),
        ({"latent": -1}, "latent"),
        ({"latent": True}, "latent"),
        ({"latent": 1.5}, "latent"),
        ({"latent": "../../x"}, "latent"),
        ({"latent": {}}, "latent"),
        ({"model": "0.9"}, "unknown"),
        ({"model": "../0"}, "unknown"),
        ({"model": {"a": 1}}, "unknown"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_is_written(ask, images, fields, reason):
    reply = ask("/api/name", {**NAME, **fields})
    text = reply.content.decode()
    assert (reply.status, reason in text, "\n" in text) == (400, True, False), text
    assert not (images.folder / "names.json").exists()


def test_a_name_is_kept_with_the_run_as_it_is(ask, images):
    hostile = "<img src=x onerror=alert(1)>"
    try:
        assert json.loads(ask("/api/name", {**NAME, "name": f"  {hostile} "}).content) == {"0": hostile}
        assert latent_names(images) == {0: {0: hostile}}
        row = next(r for r in json.loads(ask("/api/model?model=0.0").content)["latents"] if r["latent"] == 0)
        assert row["name"] == hostile
        turned = json.loads(ask("/api/model?model=0.0&aligned=1").content)  # other axes: the name is not theirs
        assert ({r["name"] for r in turned["latents"]}, turned["own"]) == ({""}, False)
        assert json.loads(ask("/api/name", {**NAME, "name": ""}).content) == {}
        assert sorted(p.name for p in images.folder.glob("*names*")) == ["names.json"]
        for damaged in (
            b"{",
            b"[]",
            b'{"9": {}}',
            b'{"0": {"7": "a"}}',
            b'{"0": {"0": 1}}',
            b'{"0": 3}',
            b"[" * 99_999,
        ):
            (images.folder / "names.json").write_bytes(damaged)
            reply = ask("/api/name", NAME)  # what a user wrote by hand is not overwritten
            assert (reply.status, b"names.json" in reply.content) == (400, True)
            found = json.loads(ask("/api/model?model=0.0").content)
            assert "correct it or delete it" in found["unread"]
            assert {r["name"] for r in found["latents"]} == {""}
            assert (images.folder / "names.json").read_bytes() == damaged
    finally:
        (images.folder / "names.json").unlink(missing_ok=True)


def test_a_folder_that_cannot_be_written_is_said_in_one_line(ask, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unseam.runs.labels.write_atomic", full)
    reply = ask("/api/name", NAME)
    assert (reply.status, b"No space left" in reply.content) == (400, True)


def test_a_variance_without_bounds_is_refused(ask, gallery, monkeypatch):
    infinite = SimpleNamespace(mean=torch.zeros(1, 4), variance=lambda: torch.full((1, 4), torch.inf))
    blind = replace(gallery.subject("0.0"), encode=lambda x: infinite)
    monkeypatch.setattr(type(gallery), "subject", lambda *_: blind)
    assert ask("/api/encode?model=0.0", b"\0" * 1024).status == 400


def test_a_bug_is_answered_with_the_policy_and_without_its_traceback(ask, gallery, monkeypatch):
    monkeypatch.setattr(type(gallery), "describe", lambda _: 1 / 0)
    reply = ask("/api/about")
    assert reply.status == 500
    assert "default-src 'none'" in reply.getheader("content-security-policy")
    assert b"division" not in reply.content


def test_few_pictures_are_unpacked_at_once(monkeypatch):
    busy, most = [], []

    def slow(content: bytes, shape: tuple[int, ...]) -> None:
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.02)
        busy.pop()

    monkeypatch.setattr(upload, "picture", slow)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: upload.observation(b"", (1, 2, 2)), range(8)))
    assert max(most) <= 2


def bomb() -> bytes:
    """A small file that holds a large picture."""
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    return file.getvalue()


def test_files_that_are_no_pictures_are_refused(ask):
    good = io.BytesIO()
    Image.new("L", (64, 64), 200).save(good, "PNG")
    for body in (b"", b"GIF89a", b"<svg/>", b"%!PS-Adobe", good.getvalue()[:60], bomb()):
        reply = ask("/api/upload", body)
        assert reply.status == 400
        assert b"\n" not in reply.content
    assert ask("/api/upload", good.getvalue()).status == 200


def test_it_listens_on_loopback_only():
    with listen(0) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"
        assert sock.proto == socket.IPPROTO_TCP  # else asyncio leaves Nagle's algorithm on and every answer waits 40 ms
        sock.listen()
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            socket.create_connection(("127.0.0.2", sock.getsockname()[1]), timeout=2)


def test_answers_are_json_the_page_can_read(ask):
    about = json.loads(ask("/api/about").content)
    assert about["data"] == {**about["data"], "name": "sprites", "shape": [1, 16, 16], "rows": 6144}
    assert [m["model"] for m in about["models"]] == ["0.0", "0.1"]
    assert str(ask.port) not in json.dumps(about)


def test_silent_connections_do_not_keep_the_page_waiting(ask, monkeypatch):
    """Half-open ones give way to newer ones; a request whose body does not come is ended."""
    monkeypatch.setattr(api, "SLOWEST_BODY", 0.2)
    lines = [socket.create_connection(("127.0.0.1", ask.port)) for _ in range(70)]
    try:
        for line in lines[::2]:
            line.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert ask("/api/about").status == 200
        head = f"POST /api/decode HTTP/1.1\r\nHost: 127.0.0.1:{ask.port}\r\nContent-Length: 9\r\n\r\n"
        with socket.create_connection(("127.0.0.1", ask.port)) as slow:
            slow.sendall(head.encode())
            assert b" 408 " in slow.recv(100)
    finally:
        for line in lines:
            line.close()


def test_without_the_token_nothing_is_given_and_nothing_is_written(gallery):
    """Other users of the machine reach 127.0.0.1 too: the address that is printed holds a token, as Jupyter's does."""
    with served(gallery, token="secret-1") as ask:
        name = f"unseam-{ask.port}"
        for path in ("/", "/app.js", "/api/about", "/?token=secret-2", "/api/about?token=", "/?token=%ff"):
            for cookie in ("", f"{name}=secret-2", "other=secret-1", f"{name}", "\x7f=;;", f"{name}=s\u00e9cret"):
                reply = ask(path, cookie=cookie)
                assert reply.status == 403
                assert b"token" in reply.content
                assert "set-cookie" not in reply.headers
        assert ask("/api/name", {"latent": 0, "name": "x"}).status == 403
        opened = ask("/?token=secret-1")
        assert opened.status == 200
        told = opened.headers["set-cookie"]
        assert "HttpOnly" in told
        assert "SameSite=Strict" in told
        cookie = told.partition(";")[0]
        assert cookie == f"{name}=secret-1"
        for path in ("/", "/app.js", "/api/about"):
            assert ask(path, cookie=cookie).status == 200
        assert ask("/api/about", cookie=cookie, origin="http://evil.example").status == 403
        assert ask("/?token=secret-1", host="evil.example").status == 421
        assert "set-cookie" not in ask("/?token=secret-1", host="evil.example").headers
