"""Data sets that are drawn, computed or part of a package, one module each; `unseam.data.DATASETS` lists them."""
