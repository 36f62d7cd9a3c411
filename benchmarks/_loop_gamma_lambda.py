"""The alternating updates of Vu 2024 (eq. 9, 10) one problem at a time, as they are printed: the reference to beat."""

import numpy as np


def solve_one(Sy, gamma, lam, A, tolerance=0.05, steps=5000, rtol=1e-12):
    """-> B, loss, relative error, name of the outcome. Same rules for stopping as unseam.linear.gamma_lambda."""
    n, m = A.shape
    Sz, inv_Sy, eye_n, eye_m = np.eye(n), np.linalg.inv(Sy), np.eye(n), np.eye(m)
    total = np.trace(Sy)
    E = Sy + A @ A.T
    loss = gamma / 2 * (n * np.log(2 * np.pi) + np.trace(E)) + lam * np.trace(E)
    error, B = np.trace(E) / total, np.zeros((m, n))
    for _ in range(steps):
        Q = gamma * np.linalg.inv(Sz) + 2 * lam * eye_n
        T = eye_m + A.T @ Q @ A
        if np.linalg.eigvalsh(T)[0] <= 0:
            return B, loss, error, "diverged"
        Sw = np.linalg.inv(T)
        new_B = Sw @ A.T @ Q
        inv_Sw = np.linalg.inv(Sw)
        new_Sz = np.linalg.inv(inv_Sy + new_B.T @ inv_Sw @ new_B)
        new_A = new_Sz @ new_B.T @ inv_Sw
        if np.trace(new_B @ new_A @ inv_Sw) * 1e-8 * total / n >= 1 or np.linalg.eigvalsh(new_Sz)[0] <= 0:
            return B, loss, error, "diverged"
        last, last_error = loss, error
        B, A, Sz = new_B, new_A, new_Sz
        R = eye_n - A @ B
        E = R @ Sy @ R.T + A @ Sw @ A.T
        kl = (np.trace(B @ Sy @ B.T + Sw) - np.linalg.slogdet(Sw)[1] - m) / 2
        nll = (n * np.log(2 * np.pi) + np.linalg.slogdet(Sz)[1] + np.trace(np.linalg.inv(Sz) @ E)) / 2
        loss, error = kl + gamma * nll + lam * np.trace(E), np.trace(E) / total
        still = abs(loss - last) <= rtol * max(1, abs(loss))
        if error <= tolerance:
            return B, loss, error, "tolerance reached"
        if error > 1 - 1e-3 and (error > last_error or still):
            return B, loss, error, "collapsed"
        if still:
            return B, loss, error, "converged"
    return B, loss, error, "unfinished"
