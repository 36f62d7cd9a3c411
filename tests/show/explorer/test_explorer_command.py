"""`unseam explore`: what it refuses, what it prints, how it ends."""

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from unseam.cli import main
from unseam.errors import BadInput
from unseam.runs.diagnose import diagnose, ranking
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.explorer.server import listen


def refused(capsys, *arguments: str) -> str:
    assert main(["explore", *arguments, "--no-open", "--port", "0"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def test_what_cannot_be_opened_is_refused(capsys, images, vectors, tmp_path):
    assert "not a run folder" in refused(capsys, str(tmp_path / "nothing"))
    assert "members 0..1" in refused(capsys, str(images.folder), "--member", "7")
    assert "members 0..1" in refused(capsys, str(images.folder), "--member2", "-1")
    assert "same input" in refused(capsys, str(images.folder), str(vectors.folder))


def test_a_missing_extra_is_named(capsys, images, monkeypatch):
    monkeypatch.setattr("unseam.cli.explore.find_spec", lambda name: None)
    assert "pip install unseam[explore]" in refused(capsys, str(images.folder))


def test_ports_that_cannot_be_used_are_refused():
    with listen(0) as taken:
        taken.listen()
        with pytest.raises(BadInput, match="0 for a free one"):
            listen(taken.getsockname()[1])
    with pytest.raises(BadInput, match=r"0\.\.65535"):
        listen(70_000)


def test_which_models_are_shown(images):
    shown = {(0, None): ("0.0",), (1, 0): ("0.1", "0.0")}
    for members, expected in shown.items():
        assert open_gallery([images.folder], members).shown == expected
    two = open_gallery([images.folder, images.folder.parent / "sprites"], [1, None])
    assert two.shown == ("0.1", "1.0")


def test_without_a_word_the_label_free_choice_is_opened_if_it_was_made_already(images, monkeypatch):
    assert open_gallery([images.folder], [None, None]).shown == ("0.0",)  # nothing kept, nothing computed
    with monkeypatch.context() as patched:
        patched.setattr("unseam.runs.diagnose.finished_or_all", lambda run: [1])
        patched.setattr("unseam.show.explorer.open_runs.finished_or_all", lambda run: [1])
        assert open_gallery([images.folder], [None, None]).shown == ("0.1",)  # the first that finished
    found = diagnose(images, show=False)
    chosen = ranking(images, found)["chosen"]
    monkeypatch.setattr("unseam.runs.diagnose.fresh", lambda *_: 1 / 0)
    gallery = open_gallery([images.folder], [None, None])
    assert gallery.shown == (f"0.{chosen}",)
    assert [m["member"] for m in gallery.describe()["models"] if m["chosen"]] == [chosen]
    assert open_gallery([images.folder], [1 - chosen, None]).shown == (f"0.{1 - chosen}",)


def test_it_prints_its_address_serves_and_ends_with_ctrl_c(images):
    command = [sys.executable, "-m", "unseam", "explore", str(images.folder), "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    text = ""
    while "}" not in text:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        text += line
    url = urlsplit(json.loads(text)["url"])
    assert url.hostname == "127.0.0.1"
    connection = HTTPConnection(url.hostname, url.port, timeout=120)
    connection.request("GET", "/api/about")
    reply = connection.getresponse()
    assert (reply.status, "token" in reply.read().decode()) == (403, True)  # another user of this machine
    connection.request("GET", f"/?{url.query}")
    reply = connection.getresponse()
    reply.read()
    cookie = reply.headers["set-cookie"].partition(";")[0]
    connection.request("GET", "/api/about", headers={"cookie": cookie})  # it stays open, as a browser's does
    assert connection.getresponse().status == 200
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=240)
    assert (process.returncode, out, error) == (0, "", "")
