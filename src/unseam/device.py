"""Where tensors live: one word (`auto`, `cpu`, `cuda`, `cuda:1`, `mps`) -> a torch device that is really here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unseam.errors import BadInput

if TYPE_CHECKING:
    import torch


def here() -> list[str]:
    """The devices of this machine, the fastest first."""
    import torch

    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*cuda, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is the fastest there is, `cuda` the first GPU.

    >>> device("cpu")
    device(type='cpu')
    >>> device("gpu")
    Traceback (most recent call last):
    unseam.errors.BadInput: device='gpu' is not auto, cpu, cuda, cuda:N or mps
    """
    import torch

    kind, _, number = name.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (":" in name and not (kind == "cuda" and number.isdecimal())):
        raise BadInput(f"device={name!r} is not auto, cpu, cuda, cuda:N or mps")
    found = here()
    match = found[0] if name == "auto" else next((d for d in found if d == name or d.partition(":")[0] == name), None)
    if match is None:
        raise BadInput(
            f"device={name!r} is not on this machine, which has {', '.join(found)}; use one of these or auto"
        )
    return torch.device(match)


def known(name: str) -> torch.device:
    """The device a run was trained on, or the fastest one here where that is not on this machine."""
    try:
        return device(name)
    except BadInput:
        return device("auto")
