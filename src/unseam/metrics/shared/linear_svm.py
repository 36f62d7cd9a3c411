"""A linear support vector machine of one feature, solved exactly.

One against the rest, squared hinge, intercept regularised as liblinear (and so scikit-learn's LinearSVC) does:

    minimise  1/2 (w^2 + b^2) + sum_i C_i max(0, 1 - y_i (w x_i + b))^2

with C_i = C * balanced class weight for the class, and C for the rest (two classes: each its own weight). The
points inside the margin are those on one side of a threshold, so their sums are differences of prefix sums of
the sorted feature: a Newton step of all classes at once costs C log N, and a handful of steps is exact.
"""

from __future__ import annotations

import numpy as np

from unseam.axes import Array

_STEPS = 60


class SortedFeature:
    """One feature sorted once, to be classified against any number of labellings."""

    def __init__(self, x: Array) -> None:  # (N,)
        self.order = np.argsort(x, kind="stable")
        self.x = x[self.order].astype(np.float64)
        self.sums = prefix(self.x)

    def fit(self, labels: Array, classes: int, c: float = 0.01) -> Array:  # (C, 2) rows of (w, b)
        """The decision lines of every class; two classes give lines of opposite sign.

        >>> lines = SortedFeature(np.array([0.0, 1.0, 2.0])).fit(np.array([0, 0, 1]), 2)
        >>> np.allclose(lines[0], -lines[1])
        True
        """
        n, counts = len(self.x), np.bincount(labels, minlength=classes)
        present = counts > 0
        balanced = n / (present.sum() * np.maximum(counts, 1))
        inside = c * balanced
        outside = c * balanced[::-1] if classes == 2 else np.full(classes, c)
        lines = Problem(self, labels[self.order], counts).solve(inside, outside)
        return np.where(present[:, None], lines, [0.0, -np.inf])

    def predict(self, lines: Array, x: Array) -> Array:
        return (lines[:, :1] * x + lines[:, 1:]).argmax(axis=0)


def prefix(x: Array) -> Array:  # (N,) -> (N + 1, 3) running sums of 1, x, x^2
    return np.concatenate([np.zeros((1, 3)), np.cumsum(np.stack([np.ones_like(x), x, x * x], axis=1), axis=0)])


class Problem:
    """All one-against-rest problems of one feature and one labelling."""

    def __init__(self, feature: SortedFeature, labels: Array, counts: Array) -> None:
        n = len(labels)
        self.x, self.all = feature.x, feature.sums
        by_class = np.argsort(
            labels.astype(np.min_scalar_type(len(counts))), kind="stable"
        )  # small numbers: in one pass
        self.keys = labels[by_class] * (n + 1) + by_class  # class, then place on the line
        self.own = prefix(self.x[by_class])  # prefix sums run on through the classes
        self.first = np.concatenate([[0], np.cumsum(counts)])
        self.base = np.arange(len(counts)) * (n + 1)

    def sums_inside(self, w: Array, b: Array, sign: int) -> tuple[Array, Array]:  # (C, 3) twice
        """Sums over the points with sign * (w x + b) < 1: of the class itself, and of all points."""
        with np.errstate(divide="ignore", invalid="ignore"):
            threshold = np.where(w == 0, np.where(sign * b < 1, np.inf, -np.inf), (sign - b) / w)
        below = (sign * w > 0) | (w == 0)
        place = np.where(below, np.searchsorted(self.x, threshold, "left"), np.searchsorted(self.x, threshold, "right"))
        own = np.searchsorted(self.keys, self.base + place)
        lower = self.own[own] - self.own[self.first[:-1]], self.all[place]
        upper = self.own[self.first[1:]] - self.own[own], self.all[-1] - self.all[place]
        return np.where(below[:, None], lower[0], upper[0]), np.where(below[:, None], lower[1], upper[1])

    def solve(self, inside: Array, outside: Array) -> Array:
        """Newton's method: the objective is piecewise quadratic, so a step that changes no set is the end."""
        w = b = np.zeros(len(inside))
        for _ in range(_STEPS):
            own, _all = self.sums_inside(w, b, 1)
            own_left, all_left = self.sums_inside(w, b, -1)
            positive, negative = inside[:, None] * own, outside[:, None] * (all_left - own_left)
            total, pull = positive + negative, positive - negative
            h_ww, h_wb, h_bb = 1 + 2 * total[:, 2], 2 * total[:, 1], 1 + 2 * total[:, 0]
            det = h_ww * h_bb - h_wb**2
            new_w = 2 * (h_bb * pull[:, 1] - h_wb * pull[:, 0]) / det
            new_b = 2 * (h_ww * pull[:, 0] - h_wb * pull[:, 1]) / det
            done = np.allclose(new_w, w, rtol=1e-10, atol=1e-12) and np.allclose(new_b, b, rtol=1e-10, atol=1e-12)
            w, b = new_w, new_b
            if done:
                break
        return np.stack([w, b], axis=1)
