"""Tables in memory, of any library: pandas, polars, Arrow, xarray, Hugging Face datasets; names are preserved."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, MissingPackage
from unseam.readers import limits
from unseam.readers.tables import Columns


def as_frame(source: Any, where: str) -> Any:
    """The pandas DataFrame of a table of any library; None for anything else.

    Parameters
    ----------
    source
        A pandas, polars, PyArrow, modin or DuckDB table (whatever narwhals supports), an xarray Dataset of
        one-dimensional variables, a two-dimensional xarray DataArray, or a Hugging Face `datasets.Dataset`.
    where
        What to call it in messages.

    Returns
    -------
    pandas.DataFrame or None

    >>> import pyarrow
    >>> list(as_frame(pyarrow.table({"age": [1, 2], "name": ["a", "b"]}), "data").columns)
    ['age', 'name']
    """
    import pandas

    if isinstance(source, pandas.DataFrame):
        return source
    if isinstance(source, (str, bytes, list, tuple, np.ndarray, type(None))) or hasattr(source, "detach"):
        return None
    if hasattr(source, "dims") and hasattr(source, "coords"):
        return _from_xarray(source, where)
    if hasattr(source, "column_names") and hasattr(source, "features") and hasattr(source, "to_pandas"):
        return _from_hugging_face(source, where)
    import narwhals.stable.v1 as nw

    native = nw.from_native(source, pass_through=True)
    if hasattr(native, "collect") and hasattr(native, "collect_schema"):
        native = native.collect()
    if not isinstance(native, nw.DataFrame):
        return None
    return pandas.DataFrame({name: _values(native[name]) for name in native.columns})


def _values(column: Any) -> Any:
    """A narwhals column as NumPy or a list: pandas' own conversion of polars would need PyArrow."""
    import narwhals.stable.v1 as nw

    kind = column.dtype
    if kind.is_numeric():
        return column.cast(nw.Float64).to_numpy() if column.null_count() else column.to_numpy()
    if kind in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    return column.to_list()


def _from_xarray(source: Any, where: str) -> Any:
    import pandas

    if hasattr(source, "data_vars"):
        dims = {variable.dims for variable in source.data_vars.values()}
        if len(dims) != 1 or len(next(iter(dims))) != 1:
            raise BadInput(
                f"{where} is an xarray Dataset of {len(dims)} shapes; its variables must share one dimension"
            )
        return pandas.DataFrame({str(name): variable.values for name, variable in source.data_vars.items()})
    if source.ndim != 2:
        return None  # images, a vector: an array
    last = source.dims[1]
    names = source.coords[last].values if last in source.coords else [f"{last}{i}" for i in range(source.shape[1])]
    return pandas.DataFrame(np.asarray(source.values), columns=[str(name) for name in names])


def _from_hugging_face(source: Any, where: str) -> Any:
    """The columns of numbers, truth values and words of a `datasets.Dataset`; pictures are read by `as_array`."""
    if isinstance(source.column_names, dict):
        splits = ", ".join(source.column_names)
        raise BadInput(
            f"{where} is a DatasetDict of {splits}; give one of them, for instance data[{splits.split(',')[0]!r}]"
        )
    return None if _picture_column(source) is not None else source.to_pandas()


def _picture_column(source: Any) -> str | None:
    """The first column of pictures (the feature `Image`, decoded by Pillow)."""
    return next((name for name, kind in source.features.items() if type(kind).__name__ == "Image"), None)


def frame_columns(frame: Any) -> Columns:
    """Names and values of a DataFrame: a missing number is NaN, any other missing cell None."""
    return Columns(
        [str(name) for name in frame.columns], [series_values(frame.iloc[:, i]) for i in range(frame.shape[1])]
    )


def series_values(series: Any) -> Array:  # (N,)
    """A column as NumPy has it, with pandas' own types (nullable numbers, categories, Arrow) as plain ones.

    >>> import pandas
    >>> series_values(pandas.Series([1, None], dtype="Int64"))
    array([ 1., nan])
    >>> series_values(pandas.Series(["a", None], dtype="category"))
    array(['a', None], dtype=object)
    """
    import pandas

    kind = series.dtype
    if not pandas.api.types.is_extension_array_dtype(kind):
        return np.asarray(series.to_numpy())
    missing = np.asarray(series.isna().to_numpy(), bool)
    if pandas.api.types.is_bool_dtype(kind) and not missing.any():
        return np.asarray(series.to_numpy(bool))
    if pandas.api.types.is_numeric_dtype(kind) and not pandas.api.types.is_bool_dtype(kind):
        if missing.any() or kind.kind == "f":
            return np.asarray(series.to_numpy(np.float64, na_value=np.nan))
        return np.asarray(series.to_numpy(np.uint64 if kind.kind == "u" else np.int64))
    if kind.kind in "mM":
        return np.asarray(series.to_numpy())
    values = np.array(series.astype(object).to_numpy(), object)  # a copy: pandas' own cannot be written to
    values[missing] = None
    return values


def as_array(source: Any, where: str) -> Any:
    """An object that holds numbers but is not a table, as a NumPy array, without loss.

    Masked cells become NaN (a missing cell), sparse matrices and tensors dense ones if they fit, tensors that require
    a gradient their values, bfloat16 single precision, lists an array, pictures of a data set an array.

    >>> as_array(np.ma.array([1, -9999], mask=[False, True]), "data")
    array([ 1., nan])
    """
    if isinstance(source, np.ma.MaskedArray):
        return _unmasked(source, where)
    if hasattr(source, "detach"):
        return _from_tensor(source, where)
    if isinstance(source, (list, tuple, memoryview)):
        try:
            return np.asarray(source)
        except ValueError:
            raise BadInput(f"{where} has rows of different lengths; give a full (rows, columns) table") from None
    if hasattr(source, "toarray") and hasattr(source, "nnz"):
        needed = int(np.prod(source.shape, dtype=object)) * source.dtype.itemsize
        if needed > limits.memory():
            raise BadInput(
                f"{where} is sparse {source.shape}; dense it would need {needed:,} bytes, more than this machine's "
                "memory holds: choose fewer columns"
            )
        return source.toarray()
    if hasattr(source, "column_names") and hasattr(source, "features") and (name := _picture_column(source)):
        return _pictures(source, name, where)
    return source


def _unmasked(source: Any, where: str) -> Array:
    """A masked array with NaN where it is masked."""
    if not np.ma.getmaskarray(source).any():
        return np.asarray(source.data)
    if source.dtype.kind not in "fiub":
        raise BadInput(f"{where} is a masked array of {source.dtype}; only masked numbers can be read")
    kind = source.dtype if source.dtype.kind == "f" else np.float64
    return np.asarray(source.astype(kind).filled(np.nan))


def _from_tensor(source: Any, where: str) -> Array:
    tensor = source.detach()
    if tensor.device.type == "meta":
        raise BadInput(f"{where} is a tensor on the meta device, which holds no values")
    if "sparse" in str(tensor.layout):
        needed = int(np.prod(tuple(tensor.shape), dtype=object)) * tensor.element_size()
        if needed > limits.memory():
            raise BadInput(f"{where} is sparse {tuple(tensor.shape)}; dense it needs {needed:,} bytes, more than fit")
        tensor = tensor.to_dense()
    tensor = tensor.cpu()
    return np.asarray(tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.resolve_conj().numpy())


def _pictures(source: Any, name: str, where: str) -> Array:  # (N, H, W) or (N, H, W, 3) uint8
    try:
        images = [np.asarray(row if row.mode == "L" else row.convert("RGB")) for row in source[name]]
    except ImportError:
        raise MissingPackage(where, "pillow", "all") from None
    shapes = sorted({image.shape for image in images})
    if len(shapes) != 1:
        raise BadInput(
            f"{where}: column {name!r} has pictures of {len(shapes)} shapes, {shapes[:3]}; make them one size"
        )
    return np.stack(images)
