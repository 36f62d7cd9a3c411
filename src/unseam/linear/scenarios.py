"""The generative factors of Vu 2024 ("Configurations of Generative Factors"), for any s, n and grouping.

Factors come in independent groups. The first of a group is its root v_1 ~ N(0, its variance); each other one follows
it, v_j = slope v_1 + z_j with z_j ~ N(0, residual). The data are Y = Gamma V + noise, Gamma the first s standard
basis vectors of R^n, noise ~ N(0, s2 I), s2 < 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.checks import partition, positive

LatentGroups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Scenario:
    """s factors in independent groups, seen through n dimensions with noise s2.

    Parameters
    ----------
    n : int
        Dimension of the observations.
    groups : tuple of tuple of int
        The groups of factors; groups are independent of each other.
    slopes : tuple of float
        How the other factors of a group follow its first, in turn; repeated where there are more.
    variances : tuple of float
        Of the first factor of each group, in turn; repeated where there are more.
    residual : float, default=0.25
        Variance of each other factor that the first does not explain.
    s2 : float, default=0.1
        Variance of the noise of the observations.

    Examples
    --------
    >>> v = Scenario(n=4, groups=((0, 1), (2,)), slopes=(0.5,), residual=0.75)
    >>> v.Sv
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1.5]])
    >>> v.Sy.shape, v.s
    ((4, 4), 3)
    """

    n: int
    groups: LatentGroups
    slopes: tuple[float, ...] = (1.0, 1.0)  # alpha, beta, ... of a group's followers in turn, repeated when it has more
    variances: tuple[float, ...] = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)  # of the groups' roots in turn, repeated likewise
    residual: float = 0.25  # of every z_j
    s2: float = 0.1
    s: int = field(init=False)

    def __post_init__(self) -> None:
        s = sum(map(len, self.groups))
        object.__setattr__(self, "groups", partition("groups", self.groups, s))
        object.__setattr__(self, "s", s)
        for name in ("variances", "residual", "s2"):
            positive(name, getattr(self, name))
        if self.s2 >= 1:
            raise BadInput(f"s2={self.s2:g} must be below 1, as in the slides")
        if self.n < s:
            raise BadInput(f"n={self.n} must be at least s={s}: each factor has a dimension of its own")
        if not self.slopes or not self.variances or not np.isfinite(self.slopes).all():
            raise BadInput(f"slopes={self.slopes} and variances={self.variances} must hold at least one finite number")

    @property
    def mixing(self) -> Array:  # (s, s)
        """V = mixing @ (roots and z_j, independent)."""
        L = np.eye(self.s)
        for root, *followers in self.groups:
            for k, j in enumerate(followers):
                L[j, root] = self.slopes[k % len(self.slopes)]
        return L

    @property
    def Sv(self) -> Array:  # (s, s)
        sources = np.full(self.s, self.residual)
        for g, (root, *_) in enumerate(self.groups):
            sources[root] = self.variances[g % len(self.variances)]
        return (self.mixing * sources) @ self.mixing.T

    @property
    def Gamma(self) -> Array:  # (n, s)
        return np.eye(self.n, self.s)

    @property
    def Sy(self) -> Array:  # (n, n)
        return self.Gamma @ self.Sv @ self.Gamma.T + self.s2 * np.eye(self.n)

    def joint(self, B: Array, Sw: Array) -> tuple[Array, Array]:  # (..., m, n), (..., m, m)
        """Cov(X) (..., m, m) and Cov(X, V) (..., m, s) of the code X = B Y + W.

        >>> v = Scenario(n=3, groups=((0,), (1,)))
        >>> Sx, Sxv = v.joint(np.eye(2, 3), np.eye(2))
        >>> Sx.shape, Sxv
        ((2, 2), array([[1. , 0. ],
               [0. , 1.5]]))
        """
        return B @ self.Sy @ B.swapaxes(-1, -2) + Sw, B @ self.Gamma @ self.Sv


def even_groups(s: int, count: int) -> LatentGroups:
    """s factors in `count` runs of nearly equal length, longer ones first.

    >>> even_groups(5, 3)
    ((0, 1), (2, 3), (4,))
    """
    if not 1 <= count <= s:
        raise BadInput(f"{count} groups of {s} factors: give between 1 and {s}, or some group is empty")
    return tuple(tuple(int(j) for j in part) for part in np.array_split(np.arange(s), count))


def published(s: int, n: int, counts: Sequence[int] = (3, 2, 1)) -> tuple[LatentGroups, ...]:
    """Scenarios 1, 2, 3 of the slides by their number of independent groups: 3, 2 and 1 for both sizes.

    >>> published(3, 4)
    (((0,), (1,), (2,)), ((0, 1), (2,)), ((0, 1, 2),))
    """
    if n < s:
        raise BadInput(f"n={n} must be at least s={s}")
    return tuple(even_groups(s, count) for count in counts)
