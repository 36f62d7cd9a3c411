"""Rows of official files: read where they lie, or unpacked once, block by block, into the data folder's cache."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.atomic import atomic_file
from unseam.axes import Array
from unseam.data.base import GridDataset, factor_rows
from unseam.data.cache import data_folder
from unseam.errors import BadInput
from unseam.progress import bar
from unseam.readers import DAMAGE, Header, load_array, npy_header, refusing

ROW_BLOCK = 1 << 24  # bytes read at a time
LARGEST_BLOCK = 1 << 29  # where a file's own chunks are larger


def find_archive(name: str, *patterns: str, fetch: str | None = None) -> Path:
    """The file in DATA/NAME or DATA, whichever pattern is there first."""
    for folder in (data_folder() / name, data_folder()):
        for pattern in patterns:
            if found := sorted(folder.glob(pattern)):
                return found[0]
    raise missing(name, " or ".join(patterns), fetch or name)


def missing(name: str, what: str, fetch: str) -> BadInput:
    return BadInput(
        f"data={name!r}: no {what} in {data_folder() / name}; run: unseam data fetch {fetch}, or copy it there"
    )


def archive_path(name: str, path: str | None, *patterns: str, fetch: str | None = None) -> Path:
    """The user's path, or the file in the data folder."""
    if path is not None and not Path(path).exists():
        raise BadInput(f"path={path!r}: no such file")
    return Path(path) if path is not None else find_archive(name, *patterns, fetch=fetch)


def cached(tag: str, sources: Sequence[Path], shape: tuple[int, ...], blocks: Callable[[], Iterator[Array]]) -> Any:
    """Bytes of the given shape, on disk: made of the blocks once, then read by rows. Changed sources make new ones."""
    stats = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    identity = "\n".join(str(part) for stat in stats for part in stat)
    path = data_folder() / "cache" / f"{tag}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npy"
    if not _whole(path, shape):
        try:
            _fill(path, shape, blocks(), tag)
        except OSError as error:
            raise BadInput(
                f"unpacking {tag} into {path.parent} failed: {error.strerror}; free some space there"
            ) from None
    return load_array(path, f"file {str(path)!r}")


def _whole(path: Path, shape: tuple[int, ...]) -> bool:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False).shape == shape
    except DAMAGE:
        return False


def _fill(path: Path, shape: tuple[int, ...], blocks: Iterator[Array], tag: str) -> None:
    need = int(np.prod(shape, dtype=object))
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if need > free:
        raise BadInput(
            f"unpacking {tag} needs {need:,} bytes in {path.parent}, where {free:,} are free; free some space"
        )
    with atomic_file(path) as temporary, bar(f"unpacking {tag}, once", shape[0]) as advance:
        with temporary.open("wb") as out:  # not a memory map: on a full disk that would be a signal, not an error
            np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for block in blocks:
                out.write(np.ascontiguousarray(block, np.uint8).data)
                advance(len(block))
        if not _whole(temporary, shape):
            raise BadInput(f"unpacking {tag} gave another number of rows than {shape[0]}")


def npz_header(path: Path, key: str, where: str) -> Header:
    """Shape and type of a member, without unpacking it."""
    with refusing(where, "damaged"), zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as file:
        return npy_header(file, archive.getinfo(f"{key}.npy").file_size, where)


def npz_blocks(path: Path, key: str, where: str, axes: int) -> Iterator[Array]:
    """The rows of a compressed member of bytes, some at a time; the last `axes` axes are one row."""
    with refusing(where, "damaged"), zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as file:
        header = npy_header(file, archive.getinfo(f"{key}.npy").file_size, where)
        count, one = (int(np.prod(sides)) for sides in (header.shape[:-axes], header.shape[-axes:]))
        step = max(1, ROW_BLOCK // max(1, one))
        for start in range(0, count, step):
            rows = min(step, count - start)
            content = file.read(rows * one)
            if len(content) != rows * one:
                raise EOFError(f"{key} ends too early")
            yield np.frombuffer(content, np.uint8).reshape(rows, *header.shape[-axes:])
        if file.read(1):  # reading to the end is what makes zipfile compare the CRC
            raise EOFError(f"{key} is longer than its header says")


def row_slices(rows: Any) -> Iterator[Array]:
    """An array on disk, some rows at a time; chunks of up to half a gigabyte are unpacked once, not for every step."""
    one = max(1, int(np.prod(rows.shape[1:])))
    step, chunk = max(1, ROW_BLOCK // one), getattr(rows, "chunk", 1)
    if chunk * one <= LARGEST_BLOCK:
        step = max(1, step // chunk) * chunk
    for start in range(0, rows.shape[0], step):
        yield np.asarray(rows[start : start + step])


def grid_sizes(classes: Array, where: str, what: str) -> tuple[int, ...]:  # (N, F) -> F sizes
    """How many values each column has; the rows must be the full grid in order, the last column fastest.

    >>> grid_sizes(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), "file", "labels")
    (2, 2)
    """
    ranks = [np.unique(column, return_inverse=True) for column in classes.T]
    sizes = tuple(len(values) for values, _ in ranks)
    if int(np.prod(sizes, dtype=object)) != len(classes) or not all(
        np.array_equal(inverse, place.ravel())
        for (_, inverse), place in zip(ranks, np.indices(sizes, np.int32), strict=True)
    ):
        raise BadInput(f"{where}: {what} is not the full grid of {sizes} in order")
    return sizes


def shrink(images: Array, size: int) -> Array:  # (b, H, W) or (b, H, W, 3) uint8 -> the same, size x size
    """Lanczos in Pillow, 8 bits a channel: values stay in 0..255."""
    from PIL import Image

    if images.shape[1:3] == (size, size):
        return images
    lanczos = Image.Resampling.LANCZOS
    return np.stack([np.asarray(Image.fromarray(image).resize((size, size), lanczos)) for image in images])


class GridArchive(GridDataset):
    """The full grid of factors, its images in rows. A concrete set adds `space` and `images`."""

    likelihood = "bernoulli"
    stochastic = False

    @property
    @abstractmethod
    def images(self) -> Any:
        """(N, H, W, 3) uint8, in the order of the grid, read by rows."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        _, height, width, channels = self.images.shape
        return (channels, height, width)

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        rows = self.space.index_of(factor_rows(factors, self.space).numpy())
        pixels = torch.from_numpy(np.asarray(self.images[rows], np.float32))
        return pixels.div_(255).movedim(3, 1).contiguous()
