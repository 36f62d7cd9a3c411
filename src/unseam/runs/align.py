"""A trained run, aligned: a rotation for each member, what `unseam align` writes of it, and how that is read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unseam.atomic import write_array, write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam.from_json import as_type
from unseam.geometry import Alignment
from unseam.geometry import align as align_codes
from unseam.geometry.align import Frame, RotatedDecoder, RotatedEncoder
from unseam.geometry.diagnosis import not_finite
from unseam.progress import bar
from unseam.readers import load_array
from unseam.run import Run, load_run
from unseam.runs.diagnose import ROWS_ENCODED, chosen_members, kl_weight_of, needs_decoder, see
from unseam.runs.represent import without_constants
from unseam.stats import matched_codes

ROW = {"member": int, "helped": bool, "verdict": str, "table": tuple[Mapping[str, Any], ...]}  # of alignment.json
Aligned = tuple[Alignment, dict[str, Array]]  # a member turned, and its codes before and after


def align_members(
    run: Run, members: Iterable[int] | None = None, points: int = ROWS_ENCODED, seed: int = 0, show: bool | None = None
) -> dict[int, Aligned]:
    """`align` for some members, or all; a member that no rotation helps keeps its axes."""
    chosen, out = chosen_members(run, members), {}
    with bar("aligning", len(chosen), show) as advance:
        for member in chosen:
            out[member] = align(run, member, points, seed, keep_axes=True)
            advance()
    return out


def align(run: Run, member: int, points: int = ROWS_ENCODED, seed: int = 0, keep_axes: bool = False) -> Aligned:
    """A member turned to its preferred axes; its codes before and after and, where known, the factors that vary.

    With `keep_axes` a member that no rotation helps stays as it is.
    """
    needs_decoder(run)
    model = run.model(member)
    encoded = without_constants(see(run, model, points, seed))
    found = align_codes(
        model,
        encoded.posterior.mean,
        encoded.posterior,
        beta=kl_weight_of(run, member),
        points=points,
        seed=seed,
        whiten=not encoded.posterior.has_prior,  # nothing fixed the scale
        keep_axes=keep_axes,
    )
    arrays = arrays_of(found, encoded.codes)
    if encoded.factors is None or encoded.space is None:
        return found, arrays
    return found, {**arrays, "factors": encoded.factors, "names": np.array(encoded.space.names)}


def arrays_of(found: Alignment, before: Array) -> dict[str, Array]:
    """What is stored of an alignment beside its summary."""
    frame = {name: part.numpy() for name, part in found.frame._asdict().items()}
    return {"codes": found.codes, "codes_before": before, "variances": found.variances, **frame}


def weakest_correlation(codes: Array, factors: Array) -> float:  # (N, K), (N, F)
    """Match factors to latents one to one by absolute rank correlation; the smallest of all factors', 0 if unmatched.

    >>> t = np.arange(10.0)
    >>> weakest_correlation(np.stack([t, t % 2], 1), np.stack([t % 2, -t], 1))
    1.0
    >>> weakest_correlation(t[:, None], np.stack([t, t % 2], 1))
    0.0
    """
    return round(float(matched_codes(factors, codes).values.min()), 12)


def save_alignment(folder: str | Path, run: Run | str, aligned: Mapping[int, Aligned]) -> dict[str, Any]:
    """Write what `align` found of some members of a run, or of the model FILE.py:NAME; returns alignment.json."""
    place = Path(folder)
    rows: list[dict[str, Any]] = []
    for member, (found, arrays) in aligned.items():
        write_array(place / f"member-{member}.npz", arrays)
        rows.append({**_summary(member, found, arrays), "aligned_member": len(rows)})  # its number in the aligned run
    source = {"model": run} if isinstance(run, str) else {"run": str(run.folder.resolve())}
    document = {**source, "out": str(place), "members": rows}
    write_atomic(place / "alignment.json", json.dumps(document, indent=2))
    return document


def _summary(member: int, found: Alignment, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """One member of alignment.json; where factors are known, how well the weakest of them is found."""
    table = [{name: None if not_finite(value) else value for name, value in row.items()} for row in found.table]
    if "factors" in arrays:
        before, after = (weakest_correlation(arrays[k], arrays["factors"]) for k in ("codes_before", "codes"))
        table.append({"what": "weakest factor correlation", "before": before, "after": after})
    summary = {"helped": found.helped, "verdict": found.verdict, "table": table}
    return {"member": member, **summary, "rotation": found.rotation.tolist()}


def load_alignment(folder: str | Path, member: int | None = None, run: str | Path | Run | None = None) -> Alignment:
    """Load a member as `unseam align` left it.

    Parameters
    ----------
    folder : str or Path
        The folder that `unseam align` wrote.
    member : int, optional
        Which member; may be left out if there is only one.
    run : str, Path or Run, optional
        The run, if it is no longer where it was.

    Returns
    -------
    Alignment
        The rotated encoder and decoder, codes and rotation, and the table of before and after.

    Examples
    --------
    >>> import tempfile
    >>> from unseam.train import fit
    >>> at = tempfile.mkdtemp()
    >>> trained = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...               out=at + "/run", show=False)
    >>> document = save_alignment(at + "/aligned", trained, {0: align(trained, 0, points=50)})
    >>> found = load_alignment(at + "/aligned")
    >>> found.encoder(trained.data.batch(torch.arange(3))).mean.shape, found.decoder(torch.zeros(1, 2)).shape
    (torch.Size([3, 2]), torch.Size([1, 3]))
    """
    place = Path(folder)
    document = read_summary(place)
    row = _pick(document["members"], member, place)
    model = _opened(run, document["run"]).model(row["member"])
    arrays = read_arrays(place / f"member-{row['member']}.npz", model.architecture.latents)
    frame = Frame(*(torch.as_tensor(arrays[name]) for name in Frame._fields))
    return Alignment(
        rotation=frame.rotation,
        frame=frame,
        decoder=RotatedDecoder(model.decode, frame, model.likelihood),
        encoder=RotatedEncoder(model.encode, frame),
        codes=arrays["codes"],
        variances=arrays["variances"],
        table=tuple(row["table"]),
        helped=row["helped"],
        verdict=row["verdict"],
    )


def read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "alignment.json"
    if not path.is_file():
        raise BadInput(f"alignment={str(folder)!r} has no alignment.json; make it with `unseam align RUN --out`")
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        if "model" in document:
            raise BadInput(
                f"{path} is of the model {document['model']}, whose networks are not stored; member-0.npz has its "
                "codes, and unseam.align(model, x) gives the turned networks"
            )
        as_type(str, document["run"], "run")
        for row in document["members"]:
            for name, kind in ROW.items():
                as_type(kind, row[name], name)
    except BadInput:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{path} is damaged ({error!r}); write it again with `unseam align`") from None
    return document


def _pick(rows: Sequence[Mapping[str, Any]], member: int | None, folder: Path) -> Mapping[str, Any]:
    """The row of a member."""
    known = [row["member"] for row in rows]
    if member is None and len(rows) == 1:
        return rows[0]
    if member not in known:
        raise BadInput(f"member={member}: {folder} holds members {', '.join(map(str, known))}; name one of them")
    return rows[known.index(member)]


def read_arrays(path: Path, latents: int) -> dict[str, Array]:
    """What `align` stored of a member with so many latents: finite numbers, of shapes that belong together."""
    damaged = f"{path} is missing or damaged, or of another run; write it again with `unseam align`"
    try:
        arrays = {
            name: np.asarray(load_array(path, str(path), name)) for name in (*Frame._fields, "codes", "variances")
        }
    except BadInput as error:
        raise BadInput(f"{damaged} ({error})") from None
    N, K = len(arrays["codes"]) if arrays["codes"].ndim else 0, latents
    shapes = {"rotation": (K, K), "scale": (K, K), "shift": (K,), "codes": (N, K), "variances": (N, K)}
    for name, array in arrays.items():
        if array.dtype.kind != "f" or array.shape != shapes[name] or not np.isfinite(array).all():
            raise BadInput(f"{damaged} ({name} is {array.dtype} {array.shape}, not finite numbers {shapes[name]})")
    return {name: np.array(array) for name, array in arrays.items()}


def _opened(run: str | Path | Run | None, stored: str) -> Run:
    if isinstance(run, Run):
        return run
    if run is None and not Path(stored).exists():
        raise BadInput(f"the aligned run is no longer at {stored!r}; give run= the folder where it is now")
    return load_run(stored if run is None else run)
