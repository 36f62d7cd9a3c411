"""A long training: memory, open files and threads of the process stay flat, and kills on the way change no bit.

`python tests/faults/fault_soak.py FOLDER [--steps 200000] [--kills 8] [--every 5]` trains two small models twice, once
undisturbed and once with SIGKILL at random times, and prints one JSON document. The undisturbed process is looked at
every few seconds (/proc); its first tenth is left out, because allocators and caches fill up then. Takes minutes to
an hour, so it is not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fault_kills import state

MODEL = ("--network", "mlp", "--encoder", "16", "--decoder", "16", "--latents", "3", "--seeds", "0,1", "--batch", "32")


def start(*words: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "unseam", "train", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)


def look(pid: int) -> dict[str, int]:
    """Resident memory in kB, open files and threads of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    return {
        "resident kB": int(status["VmRSS"].split()[0]),
        "open files": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(status["Threads"]),
    }


def step_of(folder: Path) -> int:
    """How far the last checkpoint is; 0 without one."""
    from unseam.run.checkpoint import load_checkpoint

    path = folder / "checkpoints" / "group-000.safetensors"
    return int(load_checkpoint(path)[1]["step"]) if path.exists() else 0


def undisturbed(folder: Path, words: tuple[str, ...], every: float) -> list[dict[str, int]]:
    """Train to the end; what the process looked like on the way."""
    process, looks = start(*words, "--out", str(folder)), []
    while process.poll() is None:
        time.sleep(every)
        try:
            looks.append(look(process.pid))
        except (FileNotFoundError, ProcessLookupError, KeyError):  # it has just ended
            break
    _, told = process.communicate()
    if process.returncode:
        raise RuntimeError(told.decode()[-2000:])
    return looks


def killed(folder: Path, words: tuple[str, ...], kills: int, steps: int) -> list[int]:
    """The same training, killed after random numbers of steps and resumed; the last checkpoint at each kill."""
    draw, found = random.Random(0), []
    for after in sorted(draw.randrange(steps) for _ in range(kills)):
        process = start(*again(folder, words))
        while process.poll() is None and step_of(folder) < after:
            time.sleep(0.2)
        time.sleep(draw.uniform(0, 2))  # between two checkpoints
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            found.append(step_of(folder))
        process.communicate()
    process = start(*again(folder, words))
    _, told = process.communicate()
    if process.returncode:
        raise RuntimeError(told.decode()[-2000:])
    return found


def again(folder: Path, words: tuple[str, ...]) -> tuple[str, ...]:
    return ("--resume", str(folder)) if (folder / "config.json").exists() else (*words, "--out", str(folder))


def soak(place: Path, steps: int = 200_000, kills: int = 8, every: float = 5.0) -> dict[str, Any]:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = ("ring", *MODEL, "--steps", str(steps), "--checkpoint-seconds", "5", "--workers", "1")
    began = time.monotonic()
    looks = undisturbed(place / "undisturbed", words, every)
    took = time.monotonic() - began
    later = looks[len(looks) // 10 :] or looks
    out: dict[str, Any] = {"steps": steps, "seconds": round(took), "looks": len(looks)}
    for name in ("resident kB", "open files", "threads"):
        found = [seen[name] for seen in later]
        half = len(found) // 2
        out[name] = {"first": found[0], "last": found[-1], "least": min(found), "most": max(found)}
        out[name]["mean of halves"] = [round(sum(part) / max(len(part), 1)) for part in (found[:half], found[half:])]
    out["bytes of results.sqlite"] = (place / "undisturbed" / "results.sqlite").stat().st_size
    out["kills, after steps"] = killed(place / "killed", words, kills, steps)
    truth, found = state(place / "undisturbed"), state(place / "killed")
    out["defects"] = [f"other numbers in {key}" for key in truth if truth[key] != found.get(key)]
    if step_of(place / "undisturbed") != steps:
        out["defects"].append("it did not reach its last step")
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--every", type=float, default=5.0)
    asked = parser.parse_args()
    print(json.dumps(soak(asked.folder, asked.steps, asked.kills, asked.every)))
