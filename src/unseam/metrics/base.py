"""What a metric returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unseam.axes import Array


@dataclass(frozen=True)
class Score:
    """The answer of one metric: its value, and everything needed to see where the value comes from.

    Parameters
    ----------
    name : str
        Of the metric.
    value : float
        The score.
    per_factor : array of shape (F,), optional
        NaN where the metric leaves a factor out; `notes` says which and why.
    per_latent : array of shape (K,), optional
        The score of each latent.
    matrix : array of shape (F, K), optional
        What the value was computed from, for instance mutual information in nats.
    settings : dict
        The parameters of the metric.
    extra : dict
        Further numbers, for instance the accuracy on the training half.
    notes : tuple of str
        Warnings in plain words.
    ci : (float, float), optional
        95 % interval of the value at this number of rows, on request.
    bias : float, optional
        How far the value lies above that of endless rows, estimated on request.
    chance : float, optional
        The same metric on permuted codes, on request.

    Examples
    --------
    >>> Score("mig", 0.5).value
    0.5
    """

    name: str
    value: float
    per_factor: Array | None = None  # (F,) NaN where the metric leaves a factor out; `notes` says which and why
    per_latent: Array | None = None  # (K,)
    matrix: Array | None = None  # (F, K) what the value was computed from, e.g. mutual information in nats
    settings: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)  # further numbers, e.g. the accuracy on the training half
    notes: tuple[str, ...] = ()  # warnings in plain words
    ci: tuple[float, float] | None = None  # 95 % interval of the value at this number of rows, on request
    bias: float | None = None  # how far the value lies above that of endless rows, estimated on request
    chance: float | None = None  # the same metric on permuted codes, on request

    def to_json(self) -> dict[str, Any]:
        """Every field that holds something, but the name, ready for `cli.common.emit`.

        >>> Score("mig", 0.5, settings={"bins": 20}).to_json()
        {'value': 0.5, 'settings': {'bins': 20}}
        """
        row = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        return {key: held for key, held in row.items() if not is_empty(held)}

    def having(self, **changes: Any) -> Score:
        """The same score with some fields replaced."""
        return replace(self, **changes)


def is_empty(held: Any) -> bool:
    return held is None or (isinstance(held, (tuple, Mapping)) and not held)
