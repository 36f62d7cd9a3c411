"""What a study's table says: python examples/analyse_study.py studies/sprites16.parquet"""

import sys
from pathlib import Path

from unseam.study import load
from unseam.study.analyse import analyse, words

OURS = Path(__file__).parents[1] / "studies" / "sprites16.parquet"

if __name__ == "__main__":
    tables = analyse(load(sys.argv[1] if len(sys.argv) > 1 else OURS).table())
    for key in words.key_results(tables):
        print(f"{key.question}\n  slides: {key.slides}\n  here:   {key.here}\n")
    print("Does geometry choose better than chance?")
    for text in words.answer(tables):
        print(f"  {text}")
    print(tables["selection"].to_string(index=False, float_format="{:.2f}".format))
