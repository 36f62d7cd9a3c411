"""Do two sparse dictionaries find the same features? Trained here on made-up data whose features are known.

    python examples/match_dictionaries.py

Data are sparse sums of 96 features in 32 dimensions; scikit-learn learns two dictionaries from two seeds.
`unseam.match` pairs their directions one to one, says what random directions would give, and which share both have.
The same on files:

    unseam match seed0.npy seed1.npy --signed --out matches.csv
    unseam match sae-a.safetensors:W_dec sae-b.safetensors:W_dec --signed
"""

import warnings

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning

import unseam


def made_up(rows: int, features: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.normal(size=(features, n))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    codes = rng.exponential(size=(rows, features)) * (rng.random((rows, features)) < 0.03)
    return codes @ truth + 0.01 * rng.normal(size=(rows, n)), truth


def learned(x: np.ndarray, size: int, seed: int) -> np.ndarray:
    model = MiniBatchDictionaryLearning(
        size, alpha=0.1, max_iter=10, batch_size=128, positive_code=True, fit_algorithm="cd", random_state=seed
    )
    return model.fit(x).components_


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # of codes on the way
    x, truth = made_up(3000, 96, 32, np.random.default_rng(0))
    one, two = (learned(x, 96, seed) for seed in (0, 1))
    found = unseam.match(one, two, truth, names=["seed 0", "seed 1", "truth"], signed=True)
    print(found, "\n")
    print(found.table().head(8).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
