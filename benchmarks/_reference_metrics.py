"""Straightforward implementations with NumPy and scikit-learn, one loop a definition, to measure ours against.

Same definitions and settings as ours (and as the field's common reference); nothing clever. Codes (N, K), factors
(N, F) integers. The interventional ones take `encode`, factors (B, F) -> codes (B, K), as the papers describe.
"""

import numpy as np
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.svm import LinearSVC


def binned(x, bins=20):
    return np.stack([np.digitize(c, np.histogram(c, bins)[1][:-1]) for c in x.T], axis=1)


def mi_matrix(codes, factors):
    b = binned(codes)
    return np.array([[mutual_info_score(v, z) for z in b.T] for v in factors.T])


def mig(codes, factors):
    m = np.sort(mi_matrix(codes, factors), axis=1)
    h = np.array([mutual_info_score(v, v) for v in factors.T])
    return np.mean((m[:, -1] - m[:, -2]) / h)


def modularity(codes, factors):
    m = mi_matrix(codes, factors) ** 2
    best = m.max(axis=0)
    return np.mean(1 - (m.sum(axis=0) - best) / (best * (len(m) - 1)))


def sap(codes, factors, test_codes, test_factors):
    s = np.zeros((factors.shape[1], codes.shape[1]))
    for f in range(factors.shape[1]):
        for j in range(codes.shape[1]):
            model = LinearSVC(C=0.01, class_weight="balanced").fit(codes[:, [j]], factors[:, f])
            s[f, j] = np.mean(model.predict(test_codes[:, [j]]) == test_factors[:, f])
    s.sort(axis=1)
    return np.mean(s[:, -1] - s[:, -2])


def explicitness(codes, factors, test_codes, test_factors):
    mean, std = codes.mean(axis=0), codes.std(axis=0)
    z, zt = (codes - mean) / std, (test_codes - mean) / std
    out = []
    for f in range(factors.shape[1]):
        model = LogisticRegression().fit(z, factors[:, f])
        for x, v in ((z, factors), (zt, test_factors)):
            out.append(roc_auc_score(v[:, [f]] == model.classes_, model.predict_proba(x)))
    return np.mean(out[1::2])


def irs(codes, factors, quantile=0.99):
    groups = binned(factors)
    spread = np.abs(codes - codes.mean(axis=0)).max(axis=0)
    moved = np.zeros((codes.shape[1], factors.shape[1]))
    for f in range(factors.shape[1]):
        values = np.unique(groups[:, f])
        for value in values:
            z = codes[groups[:, f] == value]
            moved[:, f] += np.percentile(np.abs(z - z.mean(axis=0)), 100 * quantile, axis=0) / len(values)
    return np.average((1 - moved / spread[:, None]).max(axis=1), weights=spread)


def dci(codes, factors, test_codes, test_factors, stages=100):
    """Disentanglement, completeness, informativeness; fewer `stages` cost proportionally less."""
    r, right = [], []
    for f in range(factors.shape[1]):
        model = GradientBoostingClassifier(n_estimators=stages).fit(codes, factors[:, f])
        r.append(model.feature_importances_)
        right.append(np.mean(model.predict(test_codes) == test_factors[:, f]))
        np.mean(model.predict(codes) == factors[:, f])
    r = np.array(r).T + 1e-11
    d = 1 - entropy(r.T, base=r.shape[1])
    c = 1 - entropy(r, base=r.shape[0])
    return np.sum(d * r.sum(1)) / r.sum(), np.sum(c * r.sum(0)) / r.sum(), np.mean(right)


def draw(sizes, n, rng):
    return np.stack([rng.integers(0, s, n) for s in sizes], axis=1)


def factor_vae(encode, sizes, rng, batch=64, train=10_000, test=5_000):
    variance = encode(draw(sizes, 10_000, rng)).var(axis=0, ddof=1)

    def votes(points):
        out = np.zeros((len(sizes), len(variance)), int)
        for _ in range(points):
            f = rng.integers(len(sizes))
            factors = draw(sizes, batch, rng)
            factors[:, f] = factors[0, f]
            out[f, np.argmin(encode(factors).var(axis=0, ddof=1) / variance)] += 1
        return out

    winner = votes(train).argmax(axis=0)
    v = votes(test)
    return v[winner, np.arange(len(variance))].sum() / v.sum()


def beta_vae(encode, sizes, rng, batch=64, train=10_000, test=5_000):
    def points(n):
        x, y = [], []
        for _ in range(n):
            f = rng.integers(len(sizes))
            one, two = draw(sizes, batch, rng), draw(sizes, batch, rng)
            two[:, f] = one[:, f]
            x.append(np.abs(encode(one) - encode(two)).mean(axis=0))
            y.append(f)
        return np.array(x), np.array(y)

    model = LogisticRegression().fit(*points(train))
    return model.score(*points(test))
