"""One checked reader for arrays and tables: .npy .npz .csv .tsv .parquet .h5. No pickle, no torch, no surprises.

Sizes that a file declares are held against the bytes it has, or against this machine's memory, before anything is read;
whatever is wrong ends in one line that names the file. A table says what was read: rows, columns, how each was taken.
"""

from unseam.read.hdf5 import Hdf5Rows
from unseam.read.load import load_array, load_table
from unseam.read.npy import FileRows, Header, npy_header
from unseam.read.refuse import DAMAGE, ENDINGS, TABLES, existing, memory, refusing
from unseam.read.tables import Columns, checked, is_number

__all__ = [
    "DAMAGE", "ENDINGS", "TABLES", "Columns", "FileRows", "Hdf5Rows", "Header", "checked", "existing", "is_number",
    "load_array", "load_table", "memory", "npy_header", "refusing",
]  # fmt: skip
