"""Connections that send nothing must not keep the page waiting: the oldest gives way to the next that comes."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

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
