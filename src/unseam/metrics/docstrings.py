"""The docstring of a metric's public call: its formula's, with every parameter that the call takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

PARAMETERS = {  # name -> (type, meaning); a name means the same for every metric
    "codes": ("array or DataFrame (N, K)", "One row per observation, one column per latent."),
    "factors": ("array or DataFrame (N, F)", "The true factors of the same rows."),
    "space": ("FactorSpace, optional", "Names, sizes and kinds of the factors; guessed from their values by default."),
    "sampler": ("callable, optional", "factors (B, F) -> codes (B, K), with `space`, in place of codes and factors."),
    "names": ("sequence of str, optional", "Names of the factors."),
    "kinds": ("sequence of str, optional", "Their kinds: ordinal, categorical, cyclic or continuous."),
    "test_codes": ("array, optional", "Held-out codes for predictors; by default the rows are split."),
    "test_factors": ("array, optional", "The factors of those rows."),
    "variances": ("array (N, K), optional", "Posterior variances of the codes."),
    "bin_continuous": ("int, optional", "Cut continuous factors into this many bins."),
    "prune": ("float, default=0.0", "Leave out latents whose standard deviation is at most this (see factor-vae)."),
    "active": ("sequence, optional", "The latents that count: a mask, or numbers."),
    "groups": ("str or sequence, optional", 'Latents that are one vector each: [[0, 1], [2, 3]], or "0-1,2-3".'),
    "components": ("int, default=1", "Numbers that stand for each of those groups."),
    "seed": ("int, default=0", "Of everything random."),
    "workers": ("int, optional", "Processes for predictors; by default one for each core."),
    "alpha": ("float", "The weight of overlap against multiple encoding, from 0 to 1."),
    "backend": ("str", "The predictor: lightgbm, quick, sklearn, forest or linear."),
    "batch": ("int", "Observations behind one training point."),
    "bins": ("int", "Bins of a latent, of equal width."),
    "c": ("float", "The C of the linear SVMs."),
    "estimator": ("str", "Of mutual information: histogram, quantile or knn."),
    "k": ("int", "Latents that each factor keeps."),
    "labels": ("int", "Labelled rows that predictors learn from."),
    "method": ("str", "How dependence is measured."),
    "model": ("str", "The predictor: logistic or trees."),
    "neighbours": ("int", "How many neighbours predict."),
    "normalise": ("bool", "Divide by the total variance."),
    "pairs": ("int", "Pairs of observations for each factor."),
    "penalty": ("float", "The L2 penalty of the logistic regression, 1/C of scikit-learn; 0 for none."),
    "quantile": ("float", "The quantile of deviations; 1 is the maximum of the paper."),
    "test": ("int", "Points that the classifier is tested on."),
    "train": ("int", "Points that the classifier learns from."),
}


def call_docstring(doc: str | None, parameters: Iterable[inspect.Parameter], returns: str = "Score") -> str:
    """The formula's docstring with the sections Parameters, Returns and Examples.

    >>> seed = inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY)
    >>> print(call_docstring("One line.", [seed]))
    One line.
    <BLANKLINE>
    Parameters
    ----------
    seed : int, default=0
        Of everything random.
    <BLANKLINE>
    Returns
    -------
    Score
        Its value, with `per_factor`, `per_latent` and `matrix` where the metric has them.
    """
    text = inspect.cleandoc(doc or "")
    summary, example = (text.partition(">>>")[0].strip(), "".join(text.partition(">>>")[1:]))
    lines = [summary, "", "Parameters", "----------"]
    for parameter in parameters:
        kind, meaning = PARAMETERS[parameter.name]
        default = parameter.default
        known = "default" in kind or "optional" in kind or default is inspect.Parameter.empty or default is None
        lines += [f"{parameter.name} : {kind}{'' if known else f', default={default!r}'}", f"    {meaning}"]
    what = "Its value, with `per_factor`, `per_latent` and `matrix` where the metric has them."
    lines += ["", "Returns", "-------", returns, f"    {what}"]
    return "\n".join([*lines, "", "Examples", "--------", example] if example else lines)
