"""One checked reader for arrays and tables: .npy .npz .h5, text, JSON, Parquet, Feather, Excel, Stata and SPSS files,
packed or not, and the tables of other libraries. No pickle, no torch, no surprises.

Sizes that a file declares are held against the bytes it has, or against this machine's memory, before anything is read;
every error is one line that names the file. A table reports what was read: rows, columns, and the kind of each.
"""

from unseam.readers.formats import load_array, load_table
from unseam.readers.frames import as_array, as_frame, frame_columns
from unseam.readers.hdf5 import Hdf5Rows
from unseam.readers.limits import DAMAGE, ENDINGS, TABLES, ending, existing, memory, refusing
from unseam.readers.npy import FileRows, Header, npy_header
from unseam.readers.tables import Columns, checked, is_number

__all__ = [
    "DAMAGE", "ENDINGS", "TABLES", "Columns", "FileRows", "Hdf5Rows", "Header", "as_array", "as_frame", "checked",
    "ending", "existing", "frame_columns", "is_number", "load_array", "load_table", "memory", "npy_header", "refusing",
]  # fmt: skip
