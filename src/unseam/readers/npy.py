"""Arrays in .npy and .npz files: headers held against the bytes there are, large ones read by rows."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.readers import limits

READ_WHOLE = 1 << 26  # bytes up to which an array is read at once


class Header(NamedTuple):
    """What an .npy stream says of itself."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # bytes of the header

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def npy_header(file: IO[bytes], size: int, where: str) -> Header:
    """The header, refused if it is not a header or declares more than the `size` bytes there are."""
    start = file.tell()
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(file)
    if dtype.hasobject:
        raise BadInput(f"{where} is an object array or a pickle; save plain numbers with numpy.save")
    if any(isinstance(side, bool) or not isinstance(side, int) or side < 0 for side in shape):
        raise BadInput(f"{where} declares the shape {shape}; sides must be whole numbers from 0")
    header = Header(shape, fortran, dtype, file.tell() - start)
    if header.start + header.bytes > size:
        raise BadInput(
            f"{where} declares {dtype} {shape}, {header.bytes:,} bytes, but holds {max(0, size - header.start):,}: "
            "it is truncated (shorter than its header says); copy it again"
        )
    return header


class FileRows:
    """A large array in a file, read by rows as NumPy would index it; a file cut short meanwhile is an error.

    (A memory map would end the process there, by SIGBUS.)
    """

    def __init__(self, path: Path, header: Header, offset: int, where: str) -> None:
        self.path, self.header, self.offset, self.where = path, header, offset, where
        self.shape, self.dtype, self.ndim = header.shape, header.dtype, len(header.shape)
        self.row = int(np.prod(self.shape[1:], dtype=object)) * self.dtype.itemsize  # bytes of one
        self.file, self.lock = path.open("rb", buffering=0), Lock()  # open: replacing the file changes nothing

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(self.shape[0])
            out = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
            self._fill(out.reshape(-1).view(np.uint8).data, start)
            return out
        rows = np.asarray(index)
        if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < self.shape[0]):
            rows = np.arange(self.shape[0])[index]  # as NumPy has it: steps, masks, negative ones
        out = np.empty((rows.size, *self.shape[1:]), self.dtype)
        view = out.reshape(-1).view(np.uint8).data
        for place, row in enumerate(rows.ravel().tolist()):
            self._fill(view[place * self.row : (place + 1) * self.row], row)
        return out.reshape(*rows.shape, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype)

    def __reduce__(self) -> Any:
        return FileRows, (self.path, self.header, self.offset, self.where)

    def reshape(self, *shape: int) -> FileRows:
        return FileRows(self.path, self.header._replace(shape=shape), self.offset, self.where)

    def _fill(self, view: memoryview, row: int) -> None:
        done = 0
        with self.lock:
            self.file.seek(self.offset + row * self.row)
            while done < view.nbytes:
                if not (got := self.file.readinto(view[done:])):
                    raise BadInput(f"{self.where}: {self.path} was cut short while it was in use; copy it again")
                done += got

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def in_file(path: Path, header: Header, offset: int, where: str) -> Array | FileRows:
    """The array that begins at the offset: in memory if it is small, else left where it is and read by rows."""
    rows = FileRows(path, header, offset + header.start, where)
    if header.bytes > READ_WHOLE and not header.fortran:
        return rows
    if header.bytes > limits.memory():
        raise BadInput(f"{where} has {header.bytes:,} bytes column by column; save numpy.ascontiguousarray of it")
    flat = np.asarray(rows.reshape(int(np.prod(header.shape, dtype=object))))
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def read_npy(path: Path, where: str, key: str | None) -> Array | FileRows:
    if key is not None:
        raise BadInput(f"key={key!r}: {where} holds a single array; leave key out")
    with path.open("rb") as file:
        return in_file(path, npy_header(file, path.stat().st_size, where), 0, where)


def read_npz(path: Path, where: str, key: str | None) -> Array | FileRows:
    """A stored member is read in place; a compressed one is unpacked if memory allows."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        info = members[choose([name for name in members if f"{name}.npy" == members[name].filename], key, where)]
        with archive.open(info) as file:
            header = npy_header(file, info.file_size, where)
            if info.compress_type == zipfile.ZIP_STORED:
                return in_file(path, header, member_offset(path, info), where)
            if header.bytes > limits.memory():
                raise BadInput(
                    f"{where} unpacks to {header.bytes:,} bytes, more than half of this machine's memory; save it as "
                    ".npy, which is read by rows"
                )
            content = np.empty(header.bytes, np.uint8)
            if file.readinto(content) != header.bytes or file.read(1):  # type: ignore[attr-defined]
                raise EOFError("the array ends too early or too late")
    return np.ndarray(header.shape, header.dtype, content, order="F" if header.fortran else "C")


def member_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin: behind its local header, whose name and extra field vary."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = struct.unpack("<4s22xHH", file.read(30))
    if local[0] != b"PK\x03\x04":
        raise zipfile.BadZipFile("no local header")
    return info.header_offset + 30 + int(local[1]) + int(local[2])


def choose(keys: list[str], key: str | None, where: str) -> str:
    if key is not None:
        if key not in keys:
            raise unknown(f"{where}: key", key, keys)
        return key
    if len(keys) != 1:
        raise BadInput(f"{where} holds {len(keys)} arrays ({', '.join(keys)}); say which with key=NAME")
    return keys[0]
