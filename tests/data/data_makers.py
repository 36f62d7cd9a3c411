"""Small files in the official formats."""

from pathlib import Path

import numpy as np

from unseam.types import Array

SIZES = (1, 3, 2, 4, 3, 5)  # colour, shape, scale, orientation, x, y


def idx_bytes(array: Array) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.astype(np.uint8).tobytes()


def write_idx_set(folder: Path, count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    labels = np.arange(count, dtype=np.uint8) % 10
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return images, labels


def write_dsprites(path: Path, side: int = 20, **changes: Array) -> dict[str, Array]:
    """The members of the official archive (the pickled `metadata` too, which must never be read)."""
    classes = np.indices(SIZES).reshape(len(SIZES), -1).T
    rng = np.random.default_rng(1)
    members = {
        "metadata": np.array({"title": "small"}, dtype=object),
        "imgs": (rng.random((len(classes), side, side)) < 0.3).astype(np.uint8),
        "latents_values": classes.astype(float),
        "latents_classes": classes,
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **members)
    return members
