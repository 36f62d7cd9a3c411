"""The whole campaign: `PYTHONPATH=src python -m tests.faults --inputs 20000 --kills 1000`."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, help="bad inputs to try")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--kills", type=int, default=1000, help="about how many SIGKILLs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"UNSEAM_DATA": f"{place}/data", "OMP_NUM_THREADS": "1"}
        found = {"fuzz": inputs(asked.inputs, asked.first, Path(place)), "kills": kills(asked.kills, Path(place))}
    print(json.dumps(found, indent=2))
    return int(any(part["defects"] for part in found.values() if part))


def inputs(count: int, first: int, place: Path) -> dict:
    from fault_fuzz import Tally, fuzz

    began = time.perf_counter()

    def tell(tally: Tally) -> None:
        print(f"{sum(tally.kinds.values())} inputs, {dict(tally.outcomes)}", file=sys.stderr, flush=True)

    tally = fuzz(count, place / "fuzz", first, tell)
    return {
        "inputs": sum(tally.kinds.values()),
        "kinds": dict(tally.kinds),
        "outcomes": dict(tally.outcomes),
        "defects": tally.defects,
        "seconds": round(time.perf_counter() - began),
        "largest resident set, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def kills(count: int, place: Path) -> dict:
    if not count:
        return {}
    times = max(0, count - 300)  # the others fall before file events
    words = [sys.executable, str(HERE / "fault_kills.py"), str(place / "kills"), str(count), str(times)]
    began = time.perf_counter()
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return {**json.loads(told), "seconds": round(time.perf_counter() - began)}


if __name__ == "__main__":
    sys.exit(main())
