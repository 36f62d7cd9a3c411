"""What chance gives: the DtO of a uniformly random rotation, to print beside every DtO.

K = 2 is closed: V is a turn by a, uniform on 0 .. pi/4 from the nearest signed permutation, and |V - P| = 2 sqrt 2
sin(a/2). For K up to 64 the table below was drawn once by `drawn`: 200,000 rotations up to K = 35, 20,000 beyond, where
the spread is small (standard errors of the means below 0.0006).
"""

from functools import lru_cache
from math import cos, pi, sin, sqrt

import numpy as np

from unseam.geometry.orthogonality import distances
from unseam.rng import numpy_generator

MORE_DRAWS = 2_000  # for K > 64, where the spread is below 0.03
AT_ONCE = 400_000  # numbers of one block of rotations


@lru_cache
def haar(K: int) -> tuple[float, float]:
    """Mean and standard deviation of DtO for a uniformly random V.

    >>> [round(haar(K)[0], 3) for K in (1, 2, 3, 10)]
    [0.0, 0.548, 0.98, 2.849]
    """
    if K < 2:
        return 0.0, 0.0
    if K == 2:
        mean = 16 * sqrt(2) / pi * (1 - cos(pi / 8))
        return mean, sqrt(16 / pi * (pi / 4 - sin(pi / 4)) - mean**2)
    return TABLE[K] if K in TABLE else drawn(K, MORE_DRAWS)


def drawn(K: int, draws: int, seed: int = 0) -> tuple[float, float]:
    """The same by drawing rotations."""
    rng, size = numpy_generator(seed, "haar", K), max(1, AT_ONCE // K**2)
    blocks = [min(size, draws - done) for done in range(0, draws, size)]
    d = np.concatenate([distances(rotations(rng, n, K)) for n in blocks])
    return float(d.mean()), float(d.std())


def rotations(rng: np.random.Generator, n: int, K: int) -> np.ndarray:  # (n, K, K)
    """Uniformly random orthogonal matrices."""
    Q, R = np.linalg.qr(rng.standard_normal((n, K, K)))
    return Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]  # without the signs QR is not uniform


DRAWN = (  # mean and standard deviation for K = 3, 4, ...
    0.9801, 0.2635, 1.3290, 0.2200, 1.6345, 0.1916, 1.9116, 0.1705, 2.1689, 0.1537, 2.4085, 0.1407, 2.6350, 0.1298,
    2.8491, 0.1211, 3.0535, 0.1137, 3.2494, 0.1066, 3.4373, 0.1006, 3.6185, 0.0955, 3.7932, 0.0913, 3.9628, 0.0872,
    4.1271, 0.0834, 4.2872, 0.0804, 4.4428, 0.0772, 4.5945, 0.0745, 4.7425, 0.0724, 4.8875, 0.0702, 5.0291, 0.0680,
    5.1681, 0.0660, 5.3040, 0.0642, 5.4372, 0.0625, 5.5684, 0.0612, 5.6970, 0.0597, 5.8233, 0.0584, 5.9478, 0.0571,
    6.0702, 0.0559, 6.1905, 0.0546, 6.3090, 0.0535, 6.4263, 0.0525, 6.5417, 0.0517, 6.6551, 0.0508, 6.7670, 0.0501,
    6.8786, 0.0492, 6.9881, 0.0481, 7.0958, 0.0475, 7.2030, 0.0467, 7.3087, 0.0462, 7.4123, 0.0455, 7.5162, 0.0445,
    7.6184, 0.0444, 7.7189, 0.0432, 7.8194, 0.0427, 7.9180, 0.0424, 8.0160, 0.0419, 8.1125, 0.0413, 8.2089, 0.0404,
    8.3042, 0.0401, 8.3980, 0.0397, 8.4922, 0.0389, 8.5837, 0.0389, 8.6753, 0.0389, 8.7670, 0.0380, 8.8573, 0.0377,
    8.9462, 0.0371, 9.0355, 0.0365, 9.1232, 0.0367, 9.2108, 0.0360, 9.2974, 0.0357, 9.3827, 0.0355,
)  # fmt: skip
TABLE = {k + 3: (DRAWN[2 * k], DRAWN[2 * k + 1]) for k in range(len(DRAWN) // 2)}
