"""Stop on the held-out loss, watch a training from a callback, and stop members for a reason of your own.

python examples/stop_training.py
"""

import tempfile
from pathlib import Path

import torch

import unseam


def main(steps: int = 3000) -> None:
    place = Path(tempfile.mkdtemp())
    settings = {"network": "mlp", "encoder": (32,), "decoder": (32,), "latents": 3, "lr": 3e-3, "beta": 1, "s2": 0.01}
    settings |= {"data_parameters": {"size": 1000}, "seeds": range(2), "steps": steps, "log_every": 50, "show": False}

    # 1. patience: a member stops when its held-out loss has not reached a new minimum for 300 steps, and takes the
    # weights of its lowest held-out loss
    run = unseam.fit("synth-nonlinear", patience=300, out=place / "patience", **settings)
    print(run.table()[["member", "step", "loss", "note"]].to_string(index=False))

    # 2. a callback sees every logged step of all members, and may stop them by returning True
    seen: list[tuple[int, float]] = []

    def watch(logged) -> bool:
        losses = logged.values["held-out/loss"]  # one number for each member
        seen.append((logged.step, sum(losses) / len(losses)))
        return len(seen) > 6 and seen[-7][1] - seen[-1][1] < 0.05  # 300 steps gained less than 0.05 nats

    run = unseam.fit("synth-nonlinear", callbacks=watch, out=place / "callback", **settings)
    print(f"stopped at step {int(run.table()['step'].max())} of {steps}; held-out loss by step:")
    print(", ".join(f"{step}: {loss:.3f}" for step, loss in seen[:: max(1, len(seen) // 6)]))

    # 3. the model as it is at some step: how its latents disentangle while it trains
    def diagnose(logged) -> None:
        if logged.step and logged.step % (steps // 6) == 0:
            found = unseam.diagnose(logged.model(0).eval(), data, beta=1, points=100)
            axes = "" if found.dto is None else f", DtO {found.dto:.2f} (random axes: {found.dto_haar:.2f})"
            print(f"step {logged.step}: {found.active} of 3 latents active{axes}")

    data = run.data.batch(torch.arange(500))
    unseam.fit("synth-nonlinear", callbacks=[diagnose], out=place / "diagnosed", **settings)


if __name__ == "__main__":
    main()
