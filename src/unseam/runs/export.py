"""A member's networks as files that need no unseam: ONNX, torch.export or safetensors, each run again and compared."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from unseam.atomic import write_atomic
from unseam.axes import Array
from unseam.errors import BadInput, Failed, lookup
from unseam.models import Autoencoder
from unseam.progress import log
from unseam.run import Run
from unseam.runs.choices import ExportFormat
from unseam.runs.diagnose import needs_decoder

_LIMIT = 1e-4  # largest difference to the model's own outputs, over their largest value; else nothing is written
_ROWS = 16  # on which a file is run again; it was made with another number of rows


class Encoder(nn.Module):
    """x (B, *shape) -> the means and variances of q(z|x), (B, K) each; the variances of a point are 0."""

    def __init__(self, model: Autoencoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        posterior = self.model.encode(x)
        return posterior.mean, posterior.variance()


class _Decoder(nn.Module):
    """z (B, K) -> E[x|z] (B, *shape)."""

    def __init__(self, model: Autoencoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, z: Tensor) -> Tensor:
        return self.model.mean(z)


def export(run: Run, member: int = 0, to: ExportFormat = "onnx", out: str | Path | None = None) -> dict[str, Any]:
    """Write the encoder and the decoder of a member for use without unseam.

    Parameters
    ----------
    run : Run
        The run.
    member : int, default=0
        Which member.
    to : {"onnx", "pt2", "torchscript", "safetensors"}, default="onnx"
        The format; pt2 is torch.export.
    out : str or Path, optional
        The folder to write; one in the run folder by default.

    Returns
    -------
    dict
        `files`, paths by name, and `largest_difference` between the files and the model.

    Examples
    --------
    >>> import tempfile, unseam
    >>> folder = tempfile.mkdtemp()
    >>> run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, out=folder + "/run",
    ...                  data_parameters={"size": 200})
    >>> found = export(run, 0, "safetensors")
    >>> sorted(found["files"]), found["largest_difference"]
    (['card', 'weights'], 0.0)
    """
    write = lookup(EXPORT_FORMATS, to, "to")
    needs_decoder(run)
    model = run.on("cpu").model(member)
    folder = Path(out) if out is not None else run.folder / "exported" / f"member-{member}"
    example = torch.rand(_ROWS, *run.shape, generator=torch.Generator().manual_seed(0))  # a pack has no data
    with TemporaryDirectory() as scratch, torch.no_grad():
        contents, difference = write(model, example, Path(scratch))
    if not difference <= _LIMIT:
        raise Failed(f"the {to} files differ from the model by {difference:.2g} of its largest output, which is more "
                     f"than {_LIMIT:g}; nothing was written. Please report it")  # fmt: skip
    contents |= {"card.json": json.dumps(card(run, member, to, difference), indent=2).encode()}
    for name, content in contents.items():
        write_atomic(folder / name, content)
    files = {Path(name).stem: folder / name for name in contents}
    return {"files": files, "largest_difference": difference}


def card(run: Run, member: int, to: str, difference: float) -> dict[str, Any]:
    """What the files are and how to use them, for readers who do not have the run."""
    a = run.config.architecture
    return {
        "made_by": "unseam export",
        "format": to,
        "objective": run.config.objective,
        "hyperparameters": dict(run.members[member].hyper),
        "seed": run.members[member].seed,
        "data": run.config.data["name"],
        "shape": list(run.shape),
        "features": list(run.config.features),
        "scaling": None if run.config.scaling is None else asdict(run.config.scaling),
        "architecture": asdict(a),
        "encoder": {
            "input": "x (B, *shape), where `scaling` is set (x - shift) / factor",
            "outputs": ["mean (B, K)", "variance (B, K)"],
        },
        "decoder": {"input": "z (B, K)", "outputs": ["x (B, *shape), the mean of p(x|z)"]},
        "largest_difference": difference,
    }


def _parts(model: Autoencoder, x: Tensor) -> list[tuple[str, nn.Module, Tensor]]:
    """(name, module, an input) of what is exported."""
    encoder = Encoder(model).eval()
    return [("encoder", encoder, x), ("decoder", _Decoder(model).eval(), encoder(x)[0])]


def apart(expected: Any, found: Any) -> float:
    """The largest difference of outputs, over the largest value.

    >>> _apart(torch.tensor([1.0, 4.0]), np.array([1.0, 3.0]))
    0.25
    """
    pairs = list(zip(expected, found, strict=True)) if isinstance(expected, tuple) else [(expected, found)]
    far = [_apart(np.asarray(a), np.asarray(b)) for a, b in pairs]
    return max(far)


def _apart(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max() / max(float(np.abs(a).max()), 1e-12))


def as_onnx(model: Autoencoder, x: Tensor, scratch: Path) -> tuple[dict[str, bytes], float]:
    """By torch's exporter, the batch left open; run again by onnxruntime."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    except ImportError as error:
        raise BadInput(f"to='onnx' needs {error.name}, which is not installed; pip install 'unseam[onnx]'") from None
    contents, far = {}, []
    for name, module, inputs in _parts(model, x):
        path = scratch / f"{name}.onnx"
        with quiet():
            torch.onnx.export(
                module, (inputs[:2],), path, dynamo=True, external_data=False, verbose=False,
                input_names=["x" if name == "encoder" else "z"],
                output_names=["mean", "variance"] if name == "encoder" else ["x"],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            )  # fmt: skip
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        found = session.run(None, {session.get_inputs()[0].name: inputs.numpy()})
        far.append(apart(module(inputs), tuple(found) if name == "encoder" else found[0]))
        contents[path.name] = path.read_bytes()
    return contents, max(far)


@contextmanager
def quiet() -> Iterator[None]:
    """torch's exporter tells of libraries that it would have used, had they been there, and of its own future."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _as_pt2(model: Autoencoder, x: Tensor, scratch: Path) -> tuple[dict[str, bytes], float]:
    """By torch.export, the batch left open; loaded and run on another number of rows."""
    contents, far = {}, []
    for name, module, inputs in _parts(model, x):
        path = scratch / f"{name}.pt2"
        with quiet():
            program = torch.export.export(
                module, (inputs[:2],), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},)
            )
            torch.export.save(program, path)
            far.append(apart(module(inputs), torch.export.load(path).module()(inputs)))
        contents[path.name] = path.read_bytes()
    return contents, max(far)


def as_torchscript(model: Autoencoder, x: Tensor, scratch: Path) -> tuple[dict[str, bytes], float]:
    """Traced on two rows, loaded and run on more. torch has deprecated it: understood until version 0.2."""
    log.warning("warning: torch has deprecated TorchScript; use --to pt2 (torch.export), this goes in version 0.2")
    contents, far = {}, []
    for name, module, inputs in _parts(model, x):
        path = scratch / f"{name}.pt"
        with quiet():
            torch.jit.trace(module, inputs[:2], check_trace=False).save(str(path))
            far.append(apart(module(inputs), torch.jit.load(str(path))(inputs)))
        contents[path.name] = path.read_bytes()
    return contents, max(far)


def as_safetensors(model: Autoencoder, x: Tensor, scratch: Path) -> tuple[dict[str, bytes], float]:
    """The weights alone, by torch's names; read again into a new model."""
    content = save({name: value.contiguous() for name, value in model.state_dict().items()})
    (path := scratch / "weights.safetensors").write_bytes(content)
    again = model.architecture.build(model.shape, seed=1).eval()
    again.load_state_dict(load_file(path))
    far = [
        apart(a(inputs), b(inputs))
        for (_, a, inputs), (_, b, _) in zip(_parts(model, x), _parts(again, x), strict=True)
    ]
    return {path.name: content}, max(far)


EXPORT_FORMATS: dict[str, Callable[[Autoencoder, Tensor, Path], tuple[dict[str, bytes], float]]] = {
    "onnx": as_onnx,
    "pt2": _as_pt2,
    "torchscript": as_torchscript,
    "safetensors": as_safetensors,
}
