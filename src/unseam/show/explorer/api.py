"""Requests -> answers. Numbers the page draws travel as float32 bytes (in JSON: base64), everything else as JSON."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from torch import Tensor

from unseam.axes import Array
from unseam.geometry import Alignment
from unseam.matching import match_codes
from unseam.show.explorer import checks
from unseam.show.explorer.at_point import follow_direction, geometry
from unseam.show.explorer.films import film_from
from unseam.show.explorer.member import Broken, Subject, observe
from unseam.show.explorer.open_runs import Gallery
from unseam.show.explorer.upload import observation

T = TypeVar("T")
LARGEST_DOCUMENT = 2**17  # bytes of JSON
LARGEST_FILE = 2**23  # bytes of a dropped picture
SLOWEST_BODY = 10  # seconds until a request must be here whole
_PLANE = 3  # data of so few dimensions is drawn as a cloud of points


async def body(request: Request, limit: int) -> bytes:
    """The request's body, refused as soon as it is known to be too large."""
    parts, size = [], 0
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limit:
        raise HTTPException(413, f"the request has {length} bytes; at most {limit} are read")
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise HTTPException(413, f"the request has more than the {limit} bytes that are read")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the request did not arrive within {SLOWEST_BODY} seconds") from None
    return b"".join(parts)


def raw(x: Tensor | Array) -> bytes:
    """float32, little endian."""
    return np.ascontiguousarray(x.numpy() if isinstance(x, Tensor) else x, "<f4").tobytes()


def _text(x: Tensor | Array) -> str:
    return b64encode(raw(x)).decode()


def _rounded(x: Tensor | Array) -> list[Any]:
    out: list[Any] = np.round(np.asarray(x, dtype=np.float64), 6).tolist()
    return out


@dataclass(frozen=True)
class Api:
    """The answers of one gallery."""

    gallery: Gallery

    def routes(self) -> list[Route]:
        get: tuple[Callable[[Request], Awaitable[Response]], ...] = (
            self.about, self.row, self.model, self.align, self.twins,
        )  # fmt: skip
        post = (self.upload, self.encode, self.decode, self.geometry, self.curve, self.film, self.name)
        return [Route(f"/api/{f.__name__}", f, methods=[m]) for m, fs in (("GET", get), ("POST", post)) for f in fs]

    async def about(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.gallery.describe))

    async def row(self, request: Request) -> Response:
        row = checks.checked_integer(request.query_params.get("row"), "row", 0, len(self.gallery.data) - 1)
        x, factors = await run_in_threadpool(self.gallery.row, row)
        return JSONResponse({"row": row, "factors": factors, "x": _text(x)})

    async def upload(self, request: Request) -> Response:
        content = await body(request, LARGEST_FILE)
        return octets(raw(await run_in_threadpool(observation, content, self.gallery.data.shape)))

    async def model(self, request: Request) -> Response:
        """A model's latents, and its codes at the gallery's rows with their factors; of a broken one, what is wrong."""
        return JSONResponse(await run_in_threadpool(self.described, *self.requested(request)))

    def described(self, model: str, aligned: bool) -> dict[str, Any]:
        g = self.gallery
        try:
            subject = g.subject(model, aligned)
        except Broken as error:
            return {"broken": str(error), "latents": [], "rows": [], "codes": "", "factors": "", "cloud": ""}
        own = subject is g.subject(model)  # its own axes, which names are of
        named, unread = g.names(model) if own else ({}, "")
        small = len(g.data.shape) == 1 and g.data.shape[0] <= _PLANE
        return {
            "latents": [{**row, "name": named.get(row["latent"], "")} for row in subject.latents],
            "own": own,
            "unread": unread,
            "near": subject.near,
            "beta": subject.beta,
            "rows": g.rows.tolist(),
            "codes": _text(subject.codes),
            "factors": _text(g.data.factors(g.rows)) if g.data.space is not None else "",
            "cloud": _text(observe(g.data, g.rows)) if small else "",
        }

    async def align(self, request: Request) -> Response:
        model, _ = self.requested(request)
        found = await run_in_threadpool(self.gallery.alignment, model)
        return JSONResponse({**axes_change(found), "helped": found.helped, "verdict": found.verdict})

    async def twins(self, request: Request) -> Response:
        """Which latent of another model each active one is."""
        model, aligned = self.requested(request)
        other = str(checks.need(request.query_params, "other"))
        return JSONResponse(await run_in_threadpool(self.paired, model, other, aligned))

    def paired(self, model: str, other: str, aligned: bool) -> dict[str, Any]:
        """One to one, by rank correlation at the gallery's rows; chance: random axes of the other's latents."""
        a, b = (self.gallery.subject(name, aligned) for name in (model, other))
        if not (a.active and b.active):
            return {"twins": [], "chance": None}
        matched = match_codes(a.codes[:, a.active], b.codes[:, b.active], 0)
        pairs = zip(a.active, matched.partners, matched.values, strict=True)
        found = [{"latent": k, "twin": b.active[c], "agreement": float(v)} for k, c, v in pairs if c >= 0]
        return {"twins": found, "chance": float(matched.random.mean())}

    async def encode(self, request: Request) -> Response:
        """x, as bytes -> mean and variance of q(z|x)."""
        model, aligned = self.requested(request)
        x = checks.raw_observation(await body(request, LARGEST_FILE), self.gallery.data.shape)
        z, variance = await run_in_threadpool(lambda: self.gallery.subject(model, aligned).place(x))
        return JSONResponse({"z": _rounded(z), "variance": _rounded(variance)})

    async def decode(self, request: Request) -> Response:
        return octets(await self.at(request, lambda subject, z, _: raw(subject.picture(z))))

    async def geometry(self, request: Request) -> Response:
        return JSONResponse(await self.at(request, self.measured))

    def measured(self, subject: Subject, z: Tensor, fields: dict[str, Any]) -> dict[str, Any]:
        with self.gallery.lock:
            p = geometry(subject, z, checks.one_of(checks.AXES, fields.get("axes", "latents"), "axes"))
        matrices = {name: _rounded(getattr(p, name)) for name in ("norms", "cosines", "pairs", "singular", "vectors")}
        return {"columns": _text(p.columns), "cost": p.cost, **matrices}

    async def curve(self, request: Request) -> Response:
        return JSONResponse(await self.at(request, self.followed))

    def followed(self, subject: Subject, z: Tensor, fields: dict[str, Any]) -> dict[str, Any]:
        component = checks.checked_integer(checks.need(fields, "component"), "component", 0, subject.size - 1)
        sign = 1 if checks.flag(fields.get("forward", True), "forward") else -1
        with self.gallery.lock:
            return follow_direction(subject, z, component, sign)

    async def film(self, request: Request) -> Response:
        """Traversals of the active latents from z, or the way from z to another point, as a picture or moving."""
        kind, content = await self.at(request, self.filmed)
        return Response(content, media_type=f"image/{kind}")

    def filmed(self, subject: Subject, z: Tensor, fields: dict[str, Any]) -> tuple[str, bytes]:
        kind = checks.one_of(checks.FILMS, checks.need(fields, "kind"), "kind")
        to = fields.get("to")
        end = None if to is None else checks.latent_vector(to, subject.size)
        with self.gallery.lock:
            return ("gif" if kind == "gif" else "png"), film_from(subject, z, end, kind, self.gallery.features or None)

    async def name(self, request: Request) -> Response:
        """Save the name of a latent with the run; nothing else can be written by a request."""
        fields = checks.document(await body(request, LARGEST_DOCUMENT))
        model, latent, name = (checks.need(fields, field) for field in ("model", "latent", "name"))
        names = await run_in_threadpool(self.gallery.name, str(model), latent, name)
        return JSONResponse({str(k): text for k, text in names.items()})

    async def at(self, request: Request, answer: Callable[[Subject, Tensor, dict[str, Any]], T]) -> T:
        """Answer for the point a request names: {"model", "aligned", "z"}."""
        fields = checks.document(await body(request, LARGEST_DOCUMENT))
        model, aligned = str(checks.need(fields, "model")), checks.flag(fields.get("aligned", False), "aligned")

        def work() -> T:
            subject = self.gallery.subject(model, aligned)
            return answer(subject, checks.latent_vector(checks.need(fields, "z"), subject.size), fields)

        return await run_in_threadpool(work)

    def requested(self, request: Request) -> tuple[str, bool]:
        query = request.query_params
        return str(checks.need(query, "model")), checks.flag(query.get("aligned", "0"), "aligned")


def axes_change(found: Alignment) -> dict[str, Any]:
    """The way to the new axes, z' = (z - shift) there, and back, z = shift + z' back; none if they did not help."""
    K = len(found.rotation)
    if not found.helped:
        return {"there": np.eye(K).tolist(), "back": np.eye(K).tolist(), "shift": [0.0] * K}
    frame = found.frame
    back = (frame.scale @ frame.rotation).T
    return {"there": frame.linear().tolist(), "back": back.tolist(), "shift": frame.shift.tolist()}


def octets(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
