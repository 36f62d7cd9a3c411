"""The rules of the verdicts in words, printed on every page; verdicts.py has them in code."""

POLICY = (
    "Only rows that compare with something the source prints are counted. The column *published* holds what the source "
    "prints and nothing else, the column *agrees if* our limit.",
    "A *published number* agrees when the 95 % interval of our value minus the published one lies within the row's "
    "margin. It also agrees when the interval contains 0 and lies within one printed deviation: ten restarts of the "
    "source alone make an interval of 0.72 deviations on either side. It differs when the interval leaves out 0 and is "
    "not within the row's margin, and is open when it does neither. The interval is Welch's over restarts where the "
    "source prints mean and deviation (its number of restarts is 10 where it prints none), the central 95 % of our "
    "repetitions where it prints one value, and a point where nothing is random.",
    "A *published ordering* (an order, a direction, or words for which the row states a limit) agrees when a one-sided "
    "test at 5 % shows it, differs when the same test shows the opposite at 5 %, and is open otherwise, with the side "
    "to which it leans. Words that say there is no effect need an equivalence test: the 95 % interval within a stated "
    "margin agrees, an interval without the expected value differs, the rest is open.",
    "Where the source leaves settings open that move a number more than chance does, the question is whether they can "
    "give it: it agrees when the one setting that gives most numbers of the table gives this one (within the central "
    "95 % of its repetitions), differs when none of the settings does, and is open when only another one does.",
    "*Not comparable*: a shorter training than the source's, a number on other data or networks, a file that is not "
    "here, or a question that these settings cannot decide. An ordering that is claimed of all models of a kind is "
    "compared on data that stands in, and the row says so. Not to reject is neither to agree nor to differ.",
    "Not counted: *by construction* (an identity, which only a fault in the program can break), *own control* and "
    "*beyond the paper* (the source prints nothing); they hold, are open, fail, or are only shown.",
)
