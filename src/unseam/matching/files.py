"""Dictionaries in files: arrays, and what libraries for sparse autoencoders write.

| library | file | tensor | directions |
| --- | --- | --- | --- |
| SAELens | sae_weights.safetensors | W_dec (d_sae, d_in) | rows |
| sparsify | sae.safetensors | W_dec (latents, d_in) | rows |
| dictionary_learning | ae.pt | decoder.weight (d_in, dict_size), or W_dec (dict_size, d_in) | columns, or rows |
| Gemma Scope | params.npz | W_dec (d_sae, d_model) | rows |

`decoder.weight` is the weight of a `torch.nn.Linear`, (outputs, inputs), so its columns are the directions.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from unseam.errors import BadInput, MissingPackage
from unseam.metrics.inputs.read import read_array
from unseam.readers import DAMAGE, load_array

_FILES = ("sae_weights.safetensors", "sae.safetensors", "ae.pt", "params.npz")  # in the folder of a dictionary
_KNOWN = ("W_dec", "decoder.weight")  # tensors of directions, in the order in which they are looked for
_LINEAR = "decoder.weight"  # of torch.nn.Linear: directions are its columns


def open_set(place: str | Path, columns: bool | None = None) -> Any:
    """The matrix in a file, or the run in a folder.

    Parameters
    ----------
    place
        A file (.npy, .npz, .safetensors, .pt, .h5, .csv, ...), `FILE:NAME` for one of its arrays, the folder of a
        sparse autoencoder (SAELens, sparsify, dictionary_learning, Gemma Scope) or of a run.
    columns
        Whether directions are columns of what is stored; None: as the library that wrote the file has it.

    Returns
    -------
    array or Run
        One direction for each row (an array, or rows of a large file), or the run.

    Examples
    --------
    >>> open_set("nowhere.npy")
    Traceback (most recent call last):
    unseam.errors.BadInput: directions: nowhere.npy does not exist; give a file that ends in .npy, .npz, .h5, ...
    """
    place = str(place)
    if Path(place).is_dir():
        inside = next((Path(place) / name for name in _FILES if (Path(place) / name).is_file()), None)
        return _open_run(place, columns) if inside is None else open_set(inside, columns)
    path, _, key = place.partition(":") if not Path(place).exists() else (place, "", "")
    suffix = Path(path).suffix.lower()
    if suffix in (".safetensors", ".pt", ".pth"):
        if not Path(path).is_file():
            raise BadInput(f"{path} does not exist; give a .npy, .npz, .safetensors or .pt file, or a folder")
        name, matrix = (_safetensors if suffix == ".safetensors" else _state_dict)(Path(path), key)
    else:
        if suffix == ".npz" and not key and Path(path).is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                held = {member.removesuffix(".npy") for member in archive.namelist()}
            key = next((known for known in _KNOWN if known in held), "")
        name, matrix = key, _array(path, key)
    turned = columns or (columns is None and name.endswith(_LINEAR))
    return np.asarray(matrix).T if turned else matrix


def _array(path: str, key: str) -> Any:
    """A matrix of numbers; a large .npy or HDF5 file stays on disk and is read by rows."""
    if Path(path).is_file() and Path(path).suffix.lower() in (".npy", ".h5", ".hdf5"):
        return load_array(path, f"directions: {path}", key or None)
    return read_array(f"{path}:{key}" if key else path, "directions").content


def _open_run(place: str, columns: bool | None) -> Any:
    from unseam.run import load_run
    from unseam.runs.diagnose import chosen_members

    run = load_run(place)
    if columns:
        raise BadInput("--transpose is about matrices; runs are compared by their codes, leave it out")
    chosen_members(run, None)  # says which members are left out, and why
    return run


def _safetensors(path: Path, key: str) -> tuple[str, Any]:
    """Name and content of a matrix of a .safetensors file."""
    from safetensors import SafetensorError, safe_open

    _need_torch(path)
    try:
        with safe_open(path, framework="pt") as archive:
            shapes = {name: tuple(archive.get_slice(name).get_shape()) for name in archive.keys()}  # noqa: SIM118
            name = _pick(path, shapes, key)
            return name, archive.get_tensor(name).float().numpy()
    except SafetensorError as error:
        raise BadInput(f"{path} cannot be read as .safetensors ({error})") from None


def _state_dict(path: Path, key: str) -> tuple[str, Any]:
    """Name and content of a matrix of a state_dict saved by torch; nothing in the file is run."""
    torch = _need_torch(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (*DAMAGE, UnpicklingError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadInput(f"{path} cannot be read as tensors ({reason})") from None
    if isinstance(state, dict) and isinstance(state.get("ae"), dict):
        state = state["ae"]  # a checkpoint of dictionary_learning: step, ae, optimizer, ...
    tensors = {n: t for n, t in state.items() if hasattr(t, "detach")} if isinstance(state, dict) else {}
    name = _pick(path, {n: tuple(t.shape) for n, t in tensors.items()}, key)
    return name, tensors[name].detach().float().numpy()


def _need_torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingPackage(f"reading {path.name}", "torch", "train") from None
    return torch


def _pick(path: Path, shapes: dict[str, tuple[int, ...]], key: str) -> str:
    """The tensor named, the one that a known library stores directions in, or the only matrix."""
    if key:
        if key not in shapes:
            raise BadInput(f"{path} has no tensor {key!r}; it holds {', '.join(shapes) or 'none'}")
        return key
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    for known in _KNOWN:
        found = [name for name in matrices if name == known or name.endswith(f".{known}")]
        if len(found) == 1:
            return found[0]
    found = [name for name in matrices if "dec" in name.lower()]
    found = found if len(found) == 1 else matrices
    if len(found) != 1:
        raise BadInput(f"{path} holds the matrices {', '.join(matrices) or '(none)'}; pick one with {path}:NAME")
    return found[0]
