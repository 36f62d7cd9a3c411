"""`align`: the repair. Turn latent space to the axes that its own geometry prefers; no labels, no retraining.

A rotation R of latent space leaves the prior N(0, I), the likelihood and every reconstruction unchanged, but it
changes what a diagonal posterior costs. So take the R with the smallest summed cost (`diagonalise.py`):
z' = R^T z, d'(z') = d(R z'), M' = R^T M R, and a posterior N(m, S) becomes N(R^T m, R^T S R).
An autoencoder has no prior that fixes the scale of its codes; `whiten` first gives them mean 0 and covariance I, as a
prior would: z = shift + T R z' with T the square root of the codes' covariance. Without it T = I and shift = 0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.curvature import MIXED_NATS, entanglement_cost, sigma_law
from unseam.geometry.diagnosis import html_table, three_digits
from unseam.geometry.diagonalise import joint_rotation
from unseam.geometry.jacobian import Decoder
from unseam.geometry.orthogonality import cosines, dto, haar, ima_contrast, select
from unseam.geometry.prepare import latents_to_turn, prepare_decoder
from unseam.geometry.verdict import about_beta
from unseam.models.likelihood import Likelihood
from unseam.models.posterior import Diagonal

HELPED = 0.01  # the entanglement cost must fall by this share of itself
FALLS = 1e-3  # nats by which the IMA contrast must fall as well


class Frame(NamedTuple):
    """New axes: z = shift + T R z' and back."""

    rotation: Tensor  # R (K, K)
    scale: Tensor  # T (K, K), symmetric; I unless whitened
    shift: Tensor  # (K,)

    def old(self, new: Tensor) -> Tensor:  # (B, K) -> (B, K)
        return self.shift.to(new) + new @ (self.scale @ self.rotation).T.to(new)

    def linear(self) -> Tensor:  # (K, K)
        """T^-1 R: a row vector times it, after the shift, is in new axes."""
        return torch.linalg.solve(self.scale, self.rotation)

    def new(self, old: Tensor) -> Tensor:  # (B, K) -> (B, K)
        return (old - self.shift.to(old)) @ self.linear().to(old)


def frame_of(codes: Array, whiten: bool) -> Frame:
    """No rotation yet; T and the shift from the codes when they are to be whitened.

    >>> frame = frame_of(np.array([[1.0, 4.0], [3.0, 0.0], [1.0, 0.0], [3.0, 4.0]]), whiten=True)
    >>> frame.shift, frame.scale
    (tensor([2., 2.], dtype=torch.float64), tensor([[1., 0.], [0., 2.]], dtype=torch.float64))
    """
    eye = torch.eye(codes.shape[1], dtype=torch.float64, device="cpu")
    if not whiten:
        return Frame(eye, eye, 0 * eye[0])
    values, axes = torch.linalg.eigh(torch.as_tensor(np.cov(codes.T, bias=True)).reshape(eye.shape))
    length = values.clamp(min=1e-8 * float(values.max()) + 1e-300).sqrt()
    return Frame(eye, (axes * length) @ axes.T, torch.as_tensor(codes.mean(0)))


class RotatedDecoder(nn.Module):
    """d'(z') = d(shift + T R z'). With its likelihood it can be diagnosed like a model."""

    def __init__(self, decoder: Decoder | nn.Module, frame: Frame, likelihood: Likelihood | None = None) -> None:
        super().__init__()
        self.decoder, self.frame, self.likelihood = decoder, frame, likelihood

    def forward(self, z: Tensor) -> Tensor:  # (B, K) -> (B, ...)
        out: Tensor = self.decoder(self.frame.old(z))
        return out

    def decode(self, z: Tensor) -> Tensor:
        """The same, by the name that models have."""
        return self.forward(z)


class RotatedEncoder(nn.Module):
    """x -> the encoder's posterior (or codes) in the new axes; (mean, log variance) is read as a diagonal posterior.

    >>> quarter = frame_of(np.zeros((2, 2)), False)._replace(rotation=torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double())
    >>> turned = RotatedEncoder(lambda x: (x, torch.zeros(1, 2)), quarter)(torch.tensor([[1.0, 0.0]]))
    >>> turned.mean, turned.variance()
    (tensor([[ 0., -1.]]), tensor([[1., 1.]]))
    """

    def __init__(self, encoder: Callable[[Tensor], Any], frame: Frame) -> None:
        super().__init__()
        self.encoder, self.frame = encoder, frame

    def forward(self, x: Tensor) -> Any:
        out = self.encoder(x)
        if isinstance(out, Tensor):
            return self.frame.new(out)
        q = Diagonal(*out) if isinstance(out, tuple) and len(out) == 2 else out
        if not callable(getattr(q, "rotate", None)):
            raise BadInput(
                f"encoder returns {type(q).__name__}; give codes (B, K), a posterior or (mean, log variance)"
            )
        return q.rotate(self.frame)


@dataclass(frozen=True)
class Alignment:
    """The rotation, the turned model, and what it bought.

    Parameters
    ----------
    rotation : Tensor of shape (K, K)
        New axes as columns, in old (or whitened) coordinates.
    frame : Frame
        The whole map between old and new codes.
    decoder : RotatedDecoder
        The decoder of the new codes.
    encoder : RotatedEncoder or None
        The encoder that gives them.
    codes : array of shape (N, K)
        The codes in the new axes.
    variances : array of shape (m, K)
        What the Sigma law gives a diagonal posterior in the new axes, at the points used.
    table : tuple of dict
        Rows with `what`, `before` and `after`.
    helped : bool
        Whether the cost fell by more than 1 % at unseen points, and the IMA contrast with it.
    verdict : str
        The result in words.

    Examples
    --------
    >>> codes = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    >>> align(lambda z: z @ torch.tensor([[3.0, 0.0], [0.0, 1.0]]), codes).helped
    False
    """

    rotation: Tensor  # (K, K), columns = new axes in old (or whitened) coordinates
    frame: Frame  # the whole map between old and new codes
    decoder: RotatedDecoder
    encoder: RotatedEncoder | None
    codes: Array  # (N, K) the codes in the new axes
    variances: Array  # (m, K) what the Sigma law gives a diagonal posterior in the new axes, at the points used
    table: tuple[dict[str, Any], ...]  # rows {"what", "before", "after"}
    helped: bool
    verdict: str

    def __repr__(self) -> str:
        """One line: codes and rotations fill pages."""
        return f"Alignment({self.verdict})"

    def __str__(self) -> str:
        rows = [f"  {r['what']:<34} {three_digits(r['before']):>9} {three_digits(r['after']):>9}" for r in self.table]
        return "\n".join([self.verdict, f"  {'':<34} {'before':>9} {'after':>9}", *rows])

    def _repr_html_(self) -> str:
        rows = [[r["what"], three_digits(r["before"]), three_digits(r["after"])] for r in self.table]
        return f"<p>{escape(self.verdict)}</p>{html_table([['', 'before', 'after'], *rows])}"


@torch.no_grad()
def align(
    decoder: Decoder | nn.Module,
    codes: Any,  # (N, K)
    posterior: Any = None,
    *,
    encoder: Callable[[Tensor], Any] | None = None,
    likelihood: Likelihood | str | None = None,
    s2: float = 0.5,
    beta: float | None = 1.0,  # None: estimated from the posterior
    points: int = 2000,
    restarts: int = 2,
    seed: int = 0,
    chunk: int | None = None,
    whiten: bool = False,
    keep_axes: bool = False,
) -> Alignment:
    """Find the rotation of latent space with the smallest entanglement cost, and say whether it helped.

    Set `whiten` for an autoencoder without a prior. With `keep_axes` the result holds the axes as they were where no
    rotation helps: the best one then follows accidents of the points that were drawn.

    Parameters
    ----------
    decoder : callable or Module
        Maps codes (B, K) to outputs (B, ...), row by row.
    codes : array of shape (N, K)
        Posterior means; or a torch.distributions object, or (mean, log-variance), for both.
    posterior : optional
        A posterior, variances (N, K) or covariances (N, K, K).
    encoder : callable, optional
        Maps observations to codes; it is turned with the decoder.
    likelihood : Likelihood or str, optional
        A Gaussian of variance `s2` by default.
    s2 : float, default=0.5
        Variance of the Gaussian, where no likelihood is given.
    beta : float or None, default=1.0
        The weight of the KL in the loss; None estimates it from the posterior.
    points : int, default=2000
        Codes at which Jacobians are taken.
    restarts : int, default=2
        Random rotations from which the search starts, besides the old axes and those of the mean metric.
    seed : int, default=0
        Of the random draws.
    chunk : int, optional
        Points at a time, to bound memory; chosen by their size by default.
    whiten : bool, default=False
        Whiten the codes first, for an autoencoder without a prior.
    keep_axes : bool, default=False
        Return the axes as they were where no rotation helps.

    Returns
    -------
    Alignment
        The rotation, the turned decoder and encoder, and a table of what changed.

    Examples
    --------
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> turn = torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    >>> codes = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    >>> result = align(lambda z: z @ turn @ W.T, codes)
    >>> result.helped, bool(torch.allclose(result.rotation, turn.double(), atol=1e-6))
    (True, True)
    """
    q = prepare_decoder(decoder, codes, posterior, likelihood, s2, beta, points, chunk)
    frame = frame_of(q.codes, whiten)
    M, beta = frame.scale @ q.M.pullback @ frame.scale, q.beta
    used = latents_to_turn(q)  # a dead latent has no axis to find, and its column would only add noise
    old = select(M, used)
    small = joint_rotation(old, beta, restarts, seed)
    rows = _compare(old, small.T @ old @ small, beta, held_out(old, beta, seed))
    helped = judge(rows)
    words = say(rows, helped) if used.sum() > 1 else nothing_to_turn(int(used.sum()))
    if keep_axes and not helped:
        frame, M, words = frame_of(q.codes, whiten=False), q.M.pullback, f"{words}; the axes are kept"
    else:
        frame = frame._replace(rotation=_embed(small, used))
    if encoder is None and isinstance(decoder, nn.Module):
        encoder = getattr(decoder, "encode", None)
    return Alignment(
        rotation=frame.rotation,
        frame=frame,
        decoder=RotatedDecoder(q.decode, frame, q.likelihood),
        encoder=None if encoder is None else RotatedEncoder(encoder, frame),
        codes=frame.new(torch.as_tensor(q.codes)).numpy(),
        variances=sigma_law(frame.rotation.T @ M @ frame.rotation, beta).numpy(),
        table=rows,
        helped=helped,
        verdict="; ".join(part for part in (words, about_beta(beta, q.beta_source), *q.notes) if part),
    )


def _embed(small: Tensor, used: Array) -> Tensor:  # (k, k), (K,) -> (K, K)
    """A rotation of the latents in use that leaves the others alone.

    >>> _embed(torch.tensor([[2.0]]), np.array([False, True]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    R, keep = torch.eye(len(used), dtype=small.dtype, device=small.device), np.flatnonzero(used)
    R[np.ix_(keep, keep)] = small
    return R


def held_out(M: Tensor, beta: float, seed: int) -> tuple[float, float]:
    """Cost before and after at points that the rotation has not seen: fitted on every other point, measured between.

    On few points there is always a rotation that fits their accidents; here it earns nothing.
    """
    R = joint_rotation(M[::2], beta, restarts=0, seed=seed)
    rest = M[1::2]
    return float(entanglement_cost(rest, beta).mean()), float(entanglement_cost(R.T @ rest @ R, beta).mean())


def _compare(old: Tensor, new: Tensor, beta: float, unseen: tuple[float, float]) -> tuple[dict[str, Any], ...]:
    """The before/after table, with what chance gives for the DtO."""
    before, after = measures(old, beta), measures(new, beta)
    luck = haar(old.shape[-1])[0]
    rows: list[dict[str, Any]] = [{"what": what, "before": before[what], "after": after[what]} for what in before]
    rows.insert(1, {"what": "the same at unseen points", "before": unseen[0], "after": unseen[1]})
    return (*rows, {"what": "DtO by chance", "before": luck, "after": luck})


def measures(M: Tensor, beta: float) -> dict[str, float]:  # (m, K, K)
    """What a rotation can change, all of it of the columns of A D, whose cost is what `align` lowers."""
    K = M.shape[-1]
    squares = cosines(M).square().sum((1, 2)) - K
    return {
        "entanglement cost (nats of loss)": float(entanglement_cost(M, beta).mean()),
        "IMA contrast (nats)": float(ima_contrast(M).mean()),
        "mean squared cosine": float(squares.mean() / max(K * (K - 1), 1)),
        "DtO": dto(M),
    }


def judge(rows: tuple[dict[str, Any], ...]) -> bool:
    """Helped: the cost fell by more than 1 % at unseen points, and the IMA contrast of A D, which has no scale, by
    0.001 (an infinite one stays infinite and is no objection)."""
    unseen, contrast = rows[1], rows[2]
    fell = contrast["after"] < contrast["before"] - FALLS or math.isinf(contrast["before"])
    return bool(unseen["after"] < (1 - HELPED) * unseen["before"] and fell)


def nothing_to_turn(used: int) -> str:
    """
    >>> nothing_to_turn(0)
    'align did nothing: no latent is active, so there is no axis to turn'
    """
    return f"align did nothing: {'one' if used else 'no'} latent is active, so there is no axis to turn"


def say(rows: tuple[dict[str, Any], ...], helped: bool) -> str:
    """In plain words, what the rotation changed and what it did not."""
    before, after = (three_digits(rows[1][side]) for side in ("before", "after"))
    change = f"from {before} to {after} nats of loss at unseen points"
    if helped:
        worse = [row["what"] for row in rows[2:] if row["after"] > 1.01 * row["before"]]
        return f"align lowered the entanglement cost {change}" + (f", but {' and '.join(worse)} rose" if worse else "")
    if rows[2]["before"] < MIXED_NATS:
        return f"align did not help: the latents are almost orthogonal already (cost {change})"
    return (
        f"align did not help: the best rotation changes the cost {change}; what is left varies from point to point "
        "(curved or polar latents, or equal singular values)"
    )
