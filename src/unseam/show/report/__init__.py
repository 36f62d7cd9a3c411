"""`unseam report`: a run, or a folder of runs, on one self-contained page.

view.py      a run as the page sees it: members diagnosed, scored, one of them chosen without labels
words.py     findings in plain words
numbers.py   the tiles at the top
member.py    one member: latents, pairs, reconstructions       plates.py   the same for a paper
cohort.py    all members: points, rows, curves                 scatter.py  members as points
figures.py   drawings of pictures' data                        vectors.py  of data that are no pictures
made.py      how a run was made
codes.py     a run without a decoder
runs.py      a folder of runs                                  runs_page.py  its page
page.py      templates -> one page                             write.py    `report` itself
"""

from unseam.show.report.write import report

__all__ = ["report"]
