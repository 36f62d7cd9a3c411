"""A torch Dataset or DataLoader read into arrays: its rows in its own order, each once, and their labels.

Of a DataLoader count the data set, the rows that its sampler chooses and its collate function. Its batch size,
shuffling and `drop_last` do not: training makes batches of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.progress import bar, log

_AT_ONCE = 256  # rows read at a time


class Rows(NamedTuple):
    """Observations (N, ...) and their labels, (N,) or (N, F), where every item came with plain numbers."""

    x: Array
    labels: Array | None


def is_torch_data(data: Any) -> bool:
    """Whether it is a torch Dataset or DataLoader."""
    if not any(kind.__module__.startswith("torch.utils.data") for kind in type(data).__mro__):
        return False
    from torch.utils.data import DataLoader, Dataset

    return isinstance(data, (Dataset, DataLoader))


def read_torch_data(data: Any, show: bool | None = None) -> Rows:
    """Every row of a Dataset or DataLoader, with a progress bar.

    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(torch.eye(3), torch.arange(3)), batch_size=2, shuffle=True)
    >>> x, labels = read_torch_data(loader)
    >>> x[0].tolist(), labels.tolist()
    ([1.0, 0.0, 0.0], [0, 1, 2])
    """
    dataset, rows, collate = _parts(data)
    parts: list[Array] = []
    labels: list[Array | None] = []
    with bar("reading data", len(rows), show) as advance:
        for first in range(0, len(rows), _AT_ONCE):
            index = rows[first : first + _AT_ONCE]
            x, label = _read(dataset, index, collate)
            if parts and x.shape[1:] != parts[0].shape[1:]:
                raise _ragged(index[0], x.shape[1:], parts[0].shape[1:])
            if not parts:
                again = _read(dataset, index[:1], collate)[0]
                if not np.array_equal(x[:1], again, equal_nan=x.dtype.kind == "f"):
                    log.warning("data gives another observation each time (augmentation?); each row is read once")
            parts.append(x)
            labels.append(label)
            advance(len(index))
    whole = [label for label in labels if label is not None]
    alike = len(whole) == len(parts) and len({label.shape[1:] for label in whole}) == 1
    return Rows(np.concatenate(parts), np.concatenate(whole) if alike else None)


def _parts(data: Any) -> tuple[Any, Sequence[int], Callable[[list[Any]], Any] | None]:
    """The data set, the rows to read and a collate function of the user's own."""
    from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, default_collate

    loader = data if isinstance(data, DataLoader) else None
    dataset = data if loader is None else loader.dataset
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise BadInput(
            f"data is a {type(dataset).__name__}, whose rows cannot be counted (it may never end); read as many as you "
            "want first: np.stack(list(itertools.islice(data, 10_000)))"
        )
    whole = range(len(dataset))
    if not len(whole):
        raise BadInput("data is empty: its length is 0")
    if loader is None:
        return dataset, whole, None
    collate = None if loader.collate_fn is default_collate or loader.batch_size is None else loader.collate_fn
    sampler = loader.sampler
    batches = loader.batch_sampler
    own_batches = batches is not None and getattr(batches, "sampler", None) is not sampler
    if own_batches:
        return dataset, [int(i) for batch in _counted(batches) for i in batch], collate
    plain = isinstance(sampler, SequentialSampler) or (
        isinstance(sampler, RandomSampler) and not sampler.replacement and len(sampler) == len(whole)
    )
    return dataset, whole if plain else [int(i) for i in _counted(sampler)], collate


def _counted(sampler: Any) -> Any:
    if not hasattr(sampler, "__len__"):
        raise BadInput(f"data: its sampler {type(sampler).__name__} has no length (it may never end); give the Dataset")
    return sampler


def _read(dataset: Any, index: Sequence[int], collate: Callable[[list[Any]], Any] | None) -> tuple[Array, Array | None]:
    """Some rows (B, ...) and their labels (B, ...)."""
    items = [dataset[i] for i in index]
    if collate is not None:
        x, label = _observation_and_label(collate(items))
        return x, _plain_label(label, len(x))
    pairs = [_observation_and_label(item) for item in items]
    first = pairs[0][0]
    for i, (x, _) in zip(index, pairs, strict=True):
        if x.shape != first.shape:
            raise _ragged(i, x.shape, first.shape)
    labels = [label for _, label in pairs if label is not None]
    alike = len(labels) == len(pairs) and len({np.shape(label) for label in labels}) == 1
    return np.stack([x for x, _ in pairs]), _plain_label(np.stack(labels), len(pairs)) if alike else None


def _ragged(row: int, shape: tuple[int, ...], first: tuple[int, ...]) -> BadInput:
    return BadInput(
        f"data: row {row} has shape {shape}, the first row {first}; all must be alike: crop, pad or resize them"
    )


def _observation_and_label(item: Any) -> tuple[Array, Any]:
    """x of x, (x,), (x, y, ...) or {"x": x, ...}, and y."""
    if isinstance(item, Mapping):
        item = tuple(item.values())
    if not isinstance(item, (tuple, list)):
        return _array(item), None
    return _array(item[0]), item[1] if len(item) > 1 else None


def _array(x: Any) -> Array:
    found: Array = x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)
    if found.dtype.kind not in "biuf":
        raise BadInput(f"data: an observation is {type(x).__name__}; a Dataset must give arrays, tensors or images")
    return found


def _plain_label(label: Any, rows: int) -> Array | None:  # -> (rows,) or (rows, F)
    """Labels that are numbers, one or a few for each row; anything else (masks, names) is left out."""
    if label is None or isinstance(label, (Mapping, tuple, list)):
        return None
    found = label.detach().cpu().numpy() if hasattr(label, "detach") else np.asarray(label)
    return found if found.dtype.kind in "biuf" and found.ndim in (1, 2) and len(found) == rows else None
