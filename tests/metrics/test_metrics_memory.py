"""Memory of `unseam.score`: a small multiple of the codes, whatever the number of rows."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import gc, re, sys, warnings
import numpy as np
import unseam
warnings.filterwarnings("ignore")

def status(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

rng = np.random.default_rng(0)
factors = rng.integers(0, [4, 10], (400_000, 2)).astype(np.int32)
codes = np.empty((len(factors), 10), np.float32)
for i in range(10):
    codes[:, i] = factors[:, i % 2] + 0.3 * rng.normal(size=len(factors))
for name in sys.argv[1].split(","):
    unseam.score(codes[:2000], factors[:2000], metrics=name, workers=1)  # imports
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
    before = status("VmRSS")
    unseam.score(codes, factors, metrics=name, workers=1)
    print(name, (status("VmHWM") - before) / codes.nbytes)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="measures the peak by /proc")
def test_memory_is_a_small_multiple_of_the_codes() -> None:
    """Of float32 codes: 5 times measured here, and 3 to 6 times at 2 million rows."""
    names = "mig,mig-sup,mcc,modularity,code-mutual-information"
    done = subprocess.run([sys.executable, "-c", CODE, names], capture_output=True, text=True, check=True)
    found = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
    assert set(found) == set(names.split(","))
    assert max(found.values()) < 8
