"""Our own models (`run.model(0)`): they bring posterior and likelihood."""

from typing import Any

from unseam.models.adapters.base import AdaptedModel, check_mode, check_precision, encode_all, read_encoder_output
from unseam.models.autoencoder import Autoencoder


def matches(model: Any) -> bool:
    return isinstance(model, Autoencoder)


def adapt(model: Autoencoder, x: Any) -> AdaptedModel:
    check_mode(model, "model")
    check_precision(model, "model")
    q, data = encode_all(model.encode, x, model)
    has_prior = model.family.has_prior
    return AdaptedModel(
        "unseam", model.decode, lambda x: read_encoder_output(model.encode(x)), q.mean, q.variance, q.covariance,
        model.likelihood, data=data, module=model,
        has_beta=has_prior,
    )  # fmt: skip
