"""Unlabelled data -> findings: which independent factors is it made of, and how sure is that?

found = unseam.find("wine.csv")
print(found)                      # two sentences, then one line per factor
found.transform(new_rows)
"""

from unseam.finding.findings import Findings
from unseam.finding.grades import FoundFactor
from unseam.finding.search import find

__all__ = ["Findings", "FoundFactor", "find"]
