"""Weights and state on disk: safetensors + JSON in one file, written whole or not at all, checked when read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from unseam.atomic import write_atomic
from unseam.errors import BadInput


def weights_path(folder: Path, number: int, step: int | None = None) -> Path:
    """Where group `number` keeps its checkpoint, or its snapshot at a step."""
    name = f"group-{number:03d}" + ("" if step is None else f"-step-{step:08d}")
    return folder / "checkpoints" / f"{name}.safetensors"


def _digest(tensors: Mapping[str, Tensor], meta: str) -> str:
    """SHA-256 over the meta document and every tensor's name, shape, type and bytes."""
    sha = hashlib.sha256(meta.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        sha.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        sha.update(tensor.flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return sha.hexdigest()


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    document = json.dumps(meta, sort_keys=True)
    own = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    write_atomic(path, save(own, {"meta": document, "digest": _digest(own, document)}))


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and meta, or an error that names the file if it is missing, truncated or altered."""
    if not path.exists():
        raise BadInput(f"checkpoint {path} does not exist")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BadInput(f"checkpoint {path} is damaged ({error}); delete it to train that part again") from None
    if _digest(tensors, header.get("meta", "")) != header.get("digest"):
        raise BadInput(f"checkpoint {path} was altered: its digest does not match; delete it to train that part again")
    try:
        meta = json.loads(header["meta"])
    except (KeyError, ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict):
        raise BadInput(f"checkpoint {path} holds no description of itself; delete it to train that part again")
    return tensors, meta
