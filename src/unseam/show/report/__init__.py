"""`unseam report`: a run, or a folder of runs, on one self-contained page.

collect.py     a run as the page shows it: members diagnosed, scored, one of them chosen without labels
sentences.py   the findings as sentences
tiles.py       the numbers at the top
member.py      one member: latents, pairs, reconstructions
cohort.py      all members: points, rows, curves
figures.py     drawings of pictures and of other data
provenance.py  how a run was made
codes.py       a run without a decoder
runs.py        a folder of runs and its page
page.py        templates -> one page
write.py       `report` itself, and its figures for a paper
"""

from unseam.show.report.write import report

__all__ = ["report"]
