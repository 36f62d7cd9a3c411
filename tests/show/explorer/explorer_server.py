"""An explorer on a free port, and HTTP by hand to ask it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread

from unseam.show.explorer.open_runs import Gallery
from unseam.show.explorer.server import listen, server


class Asker:
    """HTTP by hand, so that a test can send what no browser would."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"

    def __call__(self, path: str, body: bytes | dict | None = None, method: str | None = None, **headers: str):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, content, names)
        reply = connection.getresponse()
        reply.content = reply.read()
        connection.close()
        return reply


@contextmanager
def served(gallery: Gallery, token: str = "") -> Iterator[Asker]:
    with listen(0) as sock:
        port = sock.getsockname()[1]
        running = server(gallery, port, token)
        thread = Thread(target=running.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield Asker(port)
        running.should_exit = True
        thread.join(10)
