"""The socket and the server: 127.0.0.1 only, the page's own files and the API, nothing else."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from threading import Thread
from typing import Any

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from unseam.errors import BadInput
from unseam.show.explorer.api import Api
from unseam.show.explorer.at_point import geometry
from unseam.show.explorer.guard import Guard
from unseam.show.explorer.open_runs import Gallery

LOOPBACK = "127.0.0.1"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def assets() -> list[Route]:
    """The page's files, read once: a request names one of these or nothing at all, so no path is ever followed."""
    folder = resources.files("unseam.show.explorer") / "assets"
    files = [file for file in folder.iterdir() if file.is_file() and f".{file.name.rpartition('.')[2]}" in _TYPES]
    return [route("/" if f.name == "index.html" else f"/{f.name}", f.name, f.read_bytes()) for f in files]


def route(path: str, name: str, content: bytes) -> Route:
    async def serve(request: Request) -> Response:
        return Response(content, media_type=_TYPES[f".{name.rpartition('.')[2]}"])

    return Route(path, serve, methods=["GET"])


async def bad_input(request: Request, error: Exception) -> Response:
    return PlainTextResponse(" ".join(str(error).split()), 400)


def application(gallery: Gallery, port: int, token: str = "") -> Starlette:
    """The page, its API and the guard before them."""
    return Starlette(
        routes=[*assets(), *Api(gallery).routes()],
        exception_handlers={BadInput: bad_input},
        middleware=[Middleware(Guard, port=port, token=token)],
    )


def listen(port: int) -> socket.socket:
    """A socket on loopback; port 0 takes a free one.

    >>> with listen(0) as free:
    ...     free.getsockname()[0]
    '127.0.0.1'
    """
    if not 0 <= port <= 65535:
        raise BadInput(f"port={port} must be within 0..65535; 0 takes a free one")
    sock = socket.socket(proto=socket.IPPROTO_TCP)  # named, else asyncio leaves Nagle on: 40 ms an answer
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((LOOPBACK, port))
    except OSError as error:
        sock.close()
        raise BadInput(f"port={port} cannot be used ({error.strerror}); take another, or 0 for a free one") from None
    return sock


def server(gallery: Gallery, port: int, token: str = "") -> uvicorn.Server:
    """An HTTP server without access log, web sockets or a name of its own."""
    config = uvicorn.Config(
        application(gallery, port, token),
        http=Patience,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="off",
        server_header=False,
        limit_concurrency=64,
        timeout_graceful_shutdown=20,  # an answer under way is finished
    )
    return uvicorn.Server(config)


def warm(gallery: Gallery) -> None:
    """The first derivative takes torch seconds to get ready for: have it before the page asks."""
    with suppress(BadInput), gallery.lock:  # a broken member: the page says so
        subject = gallery.subject(gallery.shown[0])
        geometry(subject, torch.zeros(subject.size))


def serve_explorer(gallery: Gallery, port: int, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `ready` is called with the address and its token once the socket listens.

    It waits for the lock: a process that ends while a thread is inside torch aborts.
    """
    with listen(port) as sock:
        sock.listen()
        port_number = sock.getsockname()[1]
        warming = Thread(target=warm, args=(gallery,))
        warming.start()
        token = secrets.token_urlsafe(16)
        ready(f"http://{LOOPBACK}:{port_number}/?token={token}")
        try:
            server(gallery, port_number, token).run(sockets=[sock])
        except KeyboardInterrupt:  # the server has ended; Ctrl-C is how one ends it
            return
        finally:
            warming.join()
            gallery.lock.acquire()


# Connections that send nothing must not keep the page waiting: the oldest gives way to the next that comes.


CONNECTIONS = 48  # below the server's limit, at which it answers 503


class Patience(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol; when many connections are open, the one that has been idle longest is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.began = self.loop.time()
        others = [c for c in self.connections if c is not self and not c.transport.is_closing()]
        if len(others) >= CONNECTIONS:
            min((c for c in others if not c.answering), key=lambda c: c.began, default=self).give_way()

    @property
    def answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def give_way(self) -> None:
        self.connections.discard(self)  # now, not when the socket has gone: the server counts them
        self.transport.close()
