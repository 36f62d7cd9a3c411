"""Small files in the official formats, byte-true but for the number and size of their images."""

import gzip
from pathlib import Path

import h5py
import numpy as np
from PIL import Image
from scipy.io import savemat

from unseam.axes import Array

SIZES = (1, 3, 2, 4, 3, 5)  # dSprites: colour, shape, scale, orientation, x, y
ROOMS = (2, 3, 2, 2, 4, 3)  # Shapes3D: floor, wall, object, scale, shape, orientation


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
    """The members of the official archive: .npz (with the pickled `metadata`, which must never be read) or HDF5."""
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
    if path.suffix == ".npz":
        np.savez_compressed(path, **members)
        return members
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", data=members["imgs"], compression="gzip", chunks=(50, side, side))
        file["latents/classes"], file["latents/values"] = members["latents_classes"], members["latents_values"]
    return members


def write_shapes3d(path: Path, chunk: int | tuple[int, ...] = 1, **changes: Array) -> dict[str, Array]:
    grid = np.indices(ROOMS).reshape(len(ROOMS), -1).T
    values = [np.linspace(0, 1, n, endpoint=False) for n in ROOMS[:3]]
    values += [np.linspace(0.75, 1.25, ROOMS[3]), np.arange(4.0), np.linspace(-30, 30, ROOMS[5])]
    rng = np.random.default_rng(2)
    members = {
        "images": rng.integers(0, 256, (len(grid), 16, 16, 3), dtype=np.uint8),
        "labels": np.stack([v[column] for v, column in zip(values, grid.T, strict=True)], axis=1),
        **changes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        images = members["images"]
        chunks = chunk if isinstance(chunk, tuple) else (chunk, *images.shape[1:])
        file.create_dataset("images", data=images, compression="gzip", chunks=chunks)
        file["labels"] = members["labels"]
    return {**members, "grid": grid}


def write_mpi3d(path: Path, count: int = 460_800, compressed: bool = False, axes: tuple[int, ...] = ()) -> Array:
    """Real row counts, pictures of one pixel: enough to tell any row from its neighbours."""
    number = np.arange(count)
    images = (
        np.stack([number % 256, number // 256 % 256, number // 65536], axis=1).astype(np.uint8).reshape(-1, 1, 1, 3)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = images.reshape(*axes, 1, 1, 3) if axes else images
    (np.savez_compressed if compressed else np.savez)(path, images=stored)
    return images


def write_cars3d(folder: Path, names: tuple[str, ...] = ("car_002_mesh", "car_010_mesh", "car_001_mesh")) -> Array:
    """(models, H, W, 3, azimuths, elevations), in the order of list.txt, which is not the alphabet's."""
    rng = np.random.default_rng(3)
    im = rng.integers(0, 256, (len(names), 8, 8, 3, 24, 4), dtype=np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in zip(names, im, strict=True):
        savemat(folder / f"{name}.mat", {"im": one, "mask": one[:, :, 0]}, do_compression=name.endswith("2_mesh"))
    (folder / "list.txt").write_text("\n".join(names) + "\n")
    return im


def norb_bytes(array: Array) -> bytes:
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    lengths = [*array.shape, 1, 1][: max(3, array.ndim)]
    return (
        np.array([magic, array.ndim, *lengths], "<i4").tobytes() + array.astype(array.dtype.newbyteorder("<")).tobytes()
    )


def write_smallnorb(folder: Path, count: int = 60, side: int = 12, packed: bool = True) -> dict[str, Array]:
    """Training and testing: pairs of images (N, 2, H, W), categories (N,), info (N, 4)."""
    rng, out = np.random.default_rng(4), {}
    folder.mkdir(parents=True, exist_ok=True)
    for part, kind in (("training", "5x46789x9x18x6x2x96x96"), ("testing", "5x01235x9x18x6x2x96x96")):
        info = np.stack([rng.integers(0, n, count) for n in (10, 9, 18, 6)], axis=1).astype(np.int32)
        info[:, 2] *= 2
        arrays = {
            "dat": rng.integers(0, 256, (count, 2, side, side), dtype=np.uint8),
            "cat": (np.arange(count) % 5).astype(np.int32),
            "info": info,
        }
        for name, array in arrays.items():
            path = folder / f"smallnorb-{kind}-{part}-{name}.mat"
            content = norb_bytes(array)
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(content)) if packed else path.write_bytes(
                content
            )
            out[f"{part}-{name}"] = array
    return out


def write_celeba(folder: Path, count: int = 12, zipped: bool = False) -> tuple[Array, Array]:
    """(attributes (N, 40) of 0 and 1, mean colours (N, 3) of the plain pictures)."""
    import io
    import zipfile

    rng = np.random.default_rng(5)
    names = [f"{i + 1:06}.jpg" for i in range(count)]
    values, colours = rng.integers(0, 2, (count, 40)), rng.integers(0, 256, (count, 3))
    folder.mkdir(parents=True, exist_ok=True)
    attributes = " ".join(f"Attribute_{i}" for i in range(40))
    lines = [f"{name} " + " ".join(f"{2 * v - 1:2}" for v in row) for name, row in zip(names, values, strict=True)]
    (folder / "list_attr_celeba.txt").write_text(f"{count}\n{attributes} \n" + "\n".join(lines) + "\n")
    parts = "".join(f"{name} {0 if i < count - 4 else 1 + i % 2}\n" for i, name in enumerate(names))
    (folder / "list_eval_partition.txt").write_text(parts)
    pictures = {}
    for name, colour in zip(names, colours, strict=True):
        content = io.BytesIO()
        Image.new("RGB", (178, 218), tuple(int(c) for c in colour)).save(content, "JPEG", quality=95)
        pictures[name] = content.getvalue()
    if zipped:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            for name, content in pictures.items():
                archive.writestr(f"img_align_celeba/{name}", content)
    else:
        (folder / "img_align_celeba").mkdir(exist_ok=True)
        for name, content in pictures.items():
            (folder / "img_align_celeba" / name).write_bytes(content)
    return values, colours


def write_all(folder: Path) -> None:
    """A data folder with a small file of every set."""
    write_dsprites(folder / "dsprites" / "dsprites_small.hdf5")
    write_shapes3d(folder / "shapes3d" / "3dshapes.h5")
    write_mpi3d(folder / "mpi3d" / "mpi3d_toy.npz")
    write_cars3d(folder / "cars3d" / "data" / "cars")
    write_smallnorb(folder / "smallnorb")
    write_celeba(folder / "celeba")
    for name in ("mnist", "fashion-mnist"):
        write_idx_set(folder / name, count=40)
