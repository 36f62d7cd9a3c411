"""What a user of two cores would train small VAEs with, as pairs of processes that `benchmarks/cohort.py` sets going.

plain   a PyTorch loop in each process, as in _plain_loop.py, one thread
tuned   the same with autocast to bfloat16, channels_last, fused Adam and set_to_none
jax     a vmapped `lax.scan` over steps in each process, half of the members each, one thread and one core

`python _competitors.py KIND PART MEMBERS DATA.npy CORE` reads numbers of steps from stdin, does them, and writes the
seconds. Compilation comes before the first line. Nothing of unseam is used.
"""

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

BATCH = 64
LAYERS = {  # encoder and decoder without the two heads, latents, weight of the KL: as in _plain_loop.py
    "mlp": ((60, 40, 20), (60, 40, 20), 2, 1e-3),
    "wide": ((400, 400), (500, 500), 6, 1e-3),
}


class Pair:
    """Two processes of a kind, idle until `rate` asks both for steps at the same time."""

    def __init__(self, kind: str, part: str, members: int, data: Path) -> None:
        self.halves = [members - members // 2, members // 2] if kind == "jax" else [1, 1]
        self.processes = [self._start(kind, part, half, data, core) for core, half in enumerate(self.halves) if half]
        for process in self.processes:
            self._read(process)

    @staticmethod
    def _start(kind: str, part: str, members: int, data: Path, core: int) -> subprocess.Popen[str]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, __file__, kind, part, str(members), str(data), str(core)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env={**os.environ, **threads, **flags}, **pipes)

    @staticmethod
    def _read(process: subprocess.Popen[str]) -> float:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise RuntimeError(f"{process.args} ended with {process.wait()}")
        return float(line)

    def rate(self, steps: int) -> float:
        """Member-steps per second of both together."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        return sum(half * steps / self._read(p) for half, p in zip(self.halves, self.processes, strict=False))

    def close(self) -> None:
        for process in self.processes:
            process.communicate("")


def torch_loop(part: str, data: np.ndarray, tuned: bool):
    import torch
    from _plain_loop import MLPVAE, ConvVAE, PlainLoop, WideVAE

    torch.set_flush_denormal(True)
    model = {"mlp": MLPVAE, "wide": WideVAE, "conv": ConvVAE}[part]()
    loop = PlainLoop(model, torch.from_numpy(data), BATCH, 1)
    if not tuned:
        return loop.run
    model = model.to(memory_format=torch.channels_last)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    torch.set_num_threads(1)

    def run(steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            x = loop.data[torch.randint(len(loop.data), (BATCH,))]
            if x.dim() == 4:
                x = x.to(memory_format=torch.channels_last)
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(x)
            loss.backward()
            optimiser.step()
        return time.perf_counter() - start

    return run


def jax_scan(part: str, data: np.ndarray, members: int):
    """The step of one member, vmapped over members, scanned over steps; Adam written out, as optax does it."""
    import jax
    import jax.numpy as jnp
    from jax import lax, random

    encoder, decoder, latents, beta = LAYERS[part]
    n = data.shape[1]
    sizes = [[n, *encoder, 2 * latents], [latents, *decoder, n]]
    rows = jnp.asarray(data)

    def start(key):
        keys = iter(random.split(key, 32))

        def layer(a, b):
            return random.uniform(next(keys), (a, b), minval=-1, maxval=1) / a**0.5, jnp.zeros(b)

        return [[layer(a, b) for a, b in pairwise(s)] for s in sizes]

    def layers(parameters, x):
        for W, b in parameters[:-1]:
            x = jnp.tanh(x @ W + b)
        W, b = parameters[-1]
        return x @ W + b

    def loss(parameters, x, noise):
        mean, log_var = jnp.split(layers(parameters[0], x), 2, 1)
        theta = layers(parameters[1], mean + jnp.exp(0.5 * log_var) * noise)
        kl = 0.5 * (mean**2 + jnp.exp(log_var) - log_var - 1).sum(1)
        return (((x - theta) ** 2).sum(1) + beta * kl).mean()

    def step(carry, _):
        p, m, v, t, key = carry
        key, of_batch, of_noise = random.split(key, 3)
        x = rows[random.randint(of_batch, (BATCH,), 0, len(rows))]
        g = jax.grad(loss)(p, x, random.normal(of_noise, (BATCH, latents)))
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        a, b = 1 - 0.9**t, 1 - 0.999**t
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * (m / a) / (jnp.sqrt(v / b) + 1e-8), p, m, v)
        return (p, m, v, t, key), None

    def train(carry, steps):
        return lax.scan(step, carry, None, steps)[0]

    many = jax.jit(jax.vmap(train, (0, None)), static_argnums=1, donate_argnums=0)
    keys = random.split(random.key(0), members)
    p = jax.vmap(start)(keys)
    zeros = jax.tree.map(jnp.zeros_like, p)
    state = [(p, zeros, jax.tree.map(jnp.zeros_like, p), jnp.zeros(members), keys)]
    compiled: set[int] = set()

    def run(steps: int) -> float:
        if steps not in compiled:
            state[0] = jax.block_until_ready(many(state[0], steps))
            compiled.add(steps)
        start = time.perf_counter()
        state[0] = jax.block_until_ready(many(state[0], steps))
        return time.perf_counter() - start

    return run


def main(kind: str, part: str, members: str, path: str, core: str) -> None:
    if hasattr(os, "sched_setaffinity"):
        free = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {free[int(core) % len(free)]})
    data = np.load(path)
    run = jax_scan(part, data, int(members)) if kind == "jax" else torch_loop(part, data, kind == "tuned")
    run(3)
    print(0.0, flush=True)
    for line in sys.stdin:
        print(run(int(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
