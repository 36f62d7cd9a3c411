"""Estimators that are trained: a VAE with any objective, and one whose latents are turned."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from unseam.axes import Array
from unseam.errors import BadInput, lookup
from unseam.lazy import require_torch
from unseam.sklearn_api.base import DTYPES, Codes, plain_input, seed_of

if TYPE_CHECKING:
    from unseam.finding.network import RotatedModel
    from unseam.models import Autoencoder


def _beta_of(objective: str, beta: float) -> float:
    """Of an objective that has one."""
    from unseam.objectives import OBJECTIVES

    known = {name: [field.name for field in fields(cast(Any, kind))] for name, kind in OBJECTIVES.items()}
    if "beta" in lookup(known, objective, "objective"):
        return float(beta)
    others = ", ".join(name for name, own in known.items() if "beta" in own)
    raise BadInput(f"beta={beta!r}, but objective={objective!r} has no beta; leave it away, or take one of {others}")


class VAE(Codes):
    """A VAE with any of our objectives. Columns are standardised; latents are sorted by information.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        How many latents; "auto" trains up to 10 and keeps those in use (at least one).
    objective : str, default="sigma-vae"
        A name (`unseam objectives`); the default learns the noise.
    beta : float, optional
        The weight of the KL, for objectives that have one (beta-vae).
    hidden : tuple of int, default=(64, 64)
        Widths of the hidden layers of both networks.
    steps : int or "auto", default="auto"
        Optimiser steps; "auto" grows with the number of rows.
    settings : dict, optional
        Hyperparameters of the objective and fields of the architecture and the training, as in `unseam.fit`.
    random_state : int, RandomState or None, default=0
        Of everything random.

    Attributes
    ----------
    n_components_ : int
        Columns of `transform`.
    explained_information_ : array (n_components_,)
        Nats of each latent.
    posterior_variance_ : array (n_components_,)
        Of each latent.
    loss_curve_ : array
        The logged losses.
    n_iter_ : int
        Optimiser steps.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> X = g.normal(size=(200, 2)) @ g.normal(size=(2, 5)) + 0.1 * g.normal(size=(200, 5))
    >>> VAE(2, steps=20).fit_transform(X).shape
    (200, 2)
    """

    def __init__(
        self, n_components: int | Literal["auto"] = "auto", *, objective: str = "sigma-vae", beta: float | None = None,
        hidden: tuple[int, ...] = (64, 64), steps: int | Literal["auto"] = "auto",
        settings: Mapping[str, Any] | None = None, random_state: Any = 0,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.objective = objective
        self.beta = beta
        self.hidden = hidden
        self.steps = steps
        self.settings = settings
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        require_torch("VAE")
        from unseam.train import fit
        from unseam.train.workers import without_resume

        if self.n_components != "auto" and not (
            isinstance(self.n_components, (int, np.integer)) and self.n_components > 0
        ):
            raise BadInput(f"n_components={self.n_components!r} must be 'auto' or a number of latents from 1")
        self.mean_ = X.mean(0)
        self.scale_ = np.where(X.std(0) > 0, X.std(0), 1.0)
        self.n_iter_ = int(np.clip(5 * len(X), 20, 3000)) if self.steps == "auto" else int(self.steps)
        latents = min(10, X.shape[1]) if self.n_components == "auto" else int(self.n_components)
        own = {} if self.beta is None else {"beta": _beta_of(self.objective, self.beta)}
        own |= {"s2": 0.01} if self.objective == "sigma-vae" else {}
        with tempfile.TemporaryDirectory() as folder, without_resume():
            run = fit(
                ((X - self.mean_) / self.scale_).astype(np.float32), self.objective, out=f"{folder}/run",
                seeds=[seed_of(self.random_state)],
                **{"latents": latents, "encoder": self.hidden, "decoder": self.hidden, "encoder_activation": "tanh",
                   "decoder_activation": "tanh", "steps": self.n_iter_, "batch": min(128, len(X)), "holdout": 0.0,
                   "watch": 0, "log_every": max(1, self.n_iter_ // 20), "workers": 1, "how": "stacked", "show": False,
                   "lr": 3e-3, **own, **(self.settings or {})},
            )  # fmt: skip
            log = run.log()
            self.loss_curve_ = log[log["name"] == "loss"].sort_values("step")["value"].to_numpy(float)
            model = run.model(0).double().eval()
        self.architecture_, self.weights_ = model.architecture, {k: v.numpy() for k, v in model.state_dict().items()}
        self._sort(X)

    def _sort(self, X: Array) -> None:
        import torch

        with torch.no_grad():
            q = self.model().encode(torch.as_tensor((X - self.mean_) / self.scale_))
            nats, variance = q.kl_per_latent().mean(0).numpy(), q.variance().mean(0).numpy()
        order = np.argsort(-nats, kind="stable")
        used = max(1, int((nats > 0.01).sum())) if self.n_components == "auto" else len(nats)
        self.kept_ = order[:used]
        self.active_ = nats[self.kept_] > 0.01
        self.explained_information_, self.posterior_variance_ = nats[self.kept_], variance[self.kept_]
        self.centre_ = q.mean.mean(0).numpy()
        self.n_components_ = self._n_features_out = used

    def model(self) -> Autoencoder:
        """The torch module, in double precision, made of the plain arrays that the estimator keeps."""
        import torch

        module = self.architecture_.build((len(self.mean_),), 0).double().eval()
        module.load_state_dict({name: torch.as_tensor(value) for name, value in self.weights_.items()})
        return module

    def _encode(self, X: Array) -> Array:
        import torch

        with torch.no_grad():
            codes = self.model().encode(torch.as_tensor((X - self.mean_) / self.scale_)).mean.numpy()
        return np.asarray(codes[:, self.kept_])

    def _decode(self, u: Array) -> Array:
        import torch

        z = np.repeat(self.centre_[None], len(u), axis=0)
        z[:, self.kept_] = u
        with torch.no_grad():
            return np.asarray(self.mean_ + self.scale_ * self.model().mean(torch.as_tensor(z)).numpy())

    def score_samples(self, X: Any) -> Array:  # (N, n) -> (N,)
        """A bound on log p of the standardised rows in nats (importance-weighted, 16 samples with fixed noise)."""
        from unseam.finding.network import log_bound

        check_is_fitted(self)
        X = validate_data(self, plain_input(X), dtype=DTYPES, reset=False).astype(np.float64)
        return log_bound(self.model(), (X - self.mean_) / self.scale_, samples=16, shared=True)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean bound a row."""
        return float(self.score_samples(X).mean())


class Align(Codes):
    """The latents of a `VAE`, rotated to its preferred axes.

    Parameters
    ----------
    estimator : VAE, optional
        The VAE to fit and rotate; `VAE()` by default.
    clue : {"geometry", "independence"}, default="geometry"
        Rotate to the axes of the geometry of the decoder, or to those that are most independent.

    Attributes
    ----------
    estimator_ : VAE
        The fitted VAE.
    turned_ : bool
        Whether its latents were rotated; not if fewer than two are in use.
    explained_information_ : array (n_components_,)
        Nats of each latent.
    n_components_ : int
        Columns of `transform`.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> X = g.normal(size=(200, 2)) * [3, 1] @ g.normal(size=(2, 5)) + 0.1 * g.normal(size=(200, 5))
    >>> Align(VAE(2, steps=50)).fit_transform(X).shape
    (200, 2)
    """

    def __init__(self, estimator: VAE | None = None, *, clue: Literal["geometry", "independence"] = "geometry") -> None:
        self.estimator = estimator
        self.clue = clue

    def _fit(self, X: Array) -> None:
        if self.clue not in ("geometry", "independence"):
            raise BadInput(f"clue={self.clue!r} must be 'geometry' or 'independence'")
        self.estimator_ = clone(self.estimator or VAE()).fit(X)
        turned = self._turned(X)
        self.turned_ = turned is not None
        if turned is not None:
            self.frame_ = {k: getattr(turned.frame, k).numpy() for k in ("rotation", "scale", "shift")}
            self.kept_, self.sign_ = turned.kept, turned.sign
            self.explained_information_ = turned.nats(self._unit(X))
        else:
            self.explained_information_ = self.estimator_.explained_information_
        self.n_components_ = self._n_features_out = len(self.explained_information_)

    def _unit(self, X: Array) -> Array:
        return np.asarray((X - self.estimator_.mean_) / self.estimator_.scale_)

    def _turned(self, X: Array) -> RotatedModel | None:
        """None where fewer than two latents are in use: there is nothing to turn."""
        from unseam.finding import network as net

        model, x = self.estimator_.model(), self._unit(X)
        if net.model_latents_in_use(model, x).sum() < 2:
            return None
        return (net.by_geometry if self.clue == "geometry" else net.by_independence)(model, x)

    def _model(self) -> RotatedModel:
        import torch

        from unseam.finding.network import RotatedModel
        from unseam.geometry.align import Frame

        frame = Frame(**{name: torch.as_tensor(value) for name, value in self.frame_.items()})
        return RotatedModel(self.estimator_.model(), frame, self.kept_, self.sign_)

    def _encode(self, X: Array) -> Array:
        return self._model().encode(self._unit(X)) if self.turned_ else self.estimator_._encode(X)

    def _decode(self, u: Array) -> Array:
        if not self.turned_:
            return self.estimator_._decode(u)
        return np.asarray(self.estimator_.mean_ + self.estimator_.scale_ * self._model().decode(u))
