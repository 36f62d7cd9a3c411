"""The whole campaign: `PYTHONPATH=src python -m tests.faults --inputs 20000 --kills 1000`."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
STRETCH = {"fuzz": 500, "kills": 50, "environment": 1}  # how many between two writings of the counts
sys.path.insert(0, str(HERE))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, help="bad inputs to try")
    parser.add_argument("--kills", type=int, default=1000, help="kills to try")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop each part after so long")
    parser.add_argument("--counts", type=Path, default=None, help="a file of counts to continue with, and to add to")
    asked = parser.parse_args()
    known = json.loads(asked.counts.read_text()) if asked.counts and asked.counts.exists() else {}
    had = {part: known.get(part, {}).get("done", 0) for part in PARTS}
    todo = {
        "fuzz": asked.inputs - had["fuzz"],
        "kills": asked.kills - had["kills"],
        "environment": 1 - had["environment"],
    }
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"UNSEAM_DATA": f"{place}/data", "OMP_NUM_THREADS": "1"}
        left = dict.fromkeys(PARTS, asked.seconds)
        for part, first, count in stretches(had, todo):
            if left[part] <= 0:  # the stretch before ended early
                continue
            began = time.monotonic()
            now = PARTS[part](first, count, Path(place), left[part])
            left[part] -= time.monotonic() - began
            known[part] = added(known.get(part, {}), now)
            print(part, known[part]["done"], now["defects"] or "", file=sys.stderr, flush=True)
            if asked.counts:  # after each stretch: what is stopped or breaks loses one at most
                asked.counts.write_text(json.dumps(known, indent=2))
    print(json.dumps(known, indent=2))
    return int(any(part["defects"] for part in known.values()))


def stretches(had: dict[str, int], todo: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """(part, first, count) in the order of the parts, a stretch at a time.

    >>> list(stretches({"fuzz": 0}, {"fuzz": 1200}))
    [('fuzz', 0, 500), ('fuzz', 500, 500), ('fuzz', 1000, 200)]
    """
    for part, count in todo.items():
        for begun in range(0, count, STRETCH[part]):
            yield part, had[part] + begun, min(STRETCH[part], count - begun)


def added(before: dict, now: dict) -> dict:
    """Two parts of a campaign as one: numbers add up, lists and tables join."""
    out = {**before, **now}
    for key in before.keys() & now.keys():
        if isinstance(now[key], dict) and key not in ("events", "defects"):
            out[key] = {k: before[key].get(k, 0) + now[key].get(k, 0) for k in {**before[key], **now[key]}}
        elif key == "defects":
            out[key] = before[key] | now[key] if isinstance(now[key], dict) else before[key] + now[key]
        elif key in ("done", "kills", "seconds"):
            out[key] = before[key] + now[key]
    return out


def inputs(first: int, count: int, place: Path, seconds: float) -> dict:
    from fault_fuzz import fuzz

    began = time.perf_counter()

    tally = fuzz(count, place / f"fuzz-{first}", first, seconds)
    return {
        "done": sum(tally.kinds.values()),
        "kinds": dict(tally.kinds),
        "outcomes": dict(tally.outcomes),
        "defects": tally.defects,
        "seconds": round(time.perf_counter() - began),
        "largest resident set, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def kills(first: int, count: int, place: Path, seconds: float) -> dict:
    return told("fault_kills.py", str(place / f"kills-{first}"), str(first), str(count), str(seconds))


def environment(first: int, count: int, place: Path, seconds: float) -> dict:
    return told("fault_environment.py", str(place / f"environment-{first}"))


def told(script: str, *words: str) -> dict:
    """A part that forks has a process of its own."""
    began = time.perf_counter()
    said = subprocess.run(
        [sys.executable, str(HERE / script), *words], check=True, capture_output=True, text=True
    ).stdout
    return {**json.loads(said), "seconds": round(time.perf_counter() - began)}


PARTS = {"fuzz": inputs, "kills": kills, "environment": environment}


if __name__ == "__main__":
    sys.exit(main())
