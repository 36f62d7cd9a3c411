"""Every metric on representations of known quality, as a Markdown table: python benchmarks/_known_table.py"""

import warnings

from _known import known

from unseam.metrics import METRICS, score

CASES = ("perfect", "noisy-0.3", "warped", "duplicated", "partial-3", "pairs-20", "rotated", "noise")


def main() -> None:
    warnings.simplefilter("ignore")
    rows: dict[str, list[str]] = {name: [] for name in METRICS}
    for case in CASES:
        z, v = known(case, 6000, (3, 6, 10, 8, 8), 10)
        found = score(z, v)
        for name in METRICS:
            rows[name].append(f"{found[name].value:.2f}" if name in found else "-")
    print("| metric | " + " | ".join(CASES) + " |\n| --- |" + " ---: |" * len(CASES))
    for name, cells in rows.items():
        if set(cells) != {"-"}:
            print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
