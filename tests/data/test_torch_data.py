"""A torch Dataset or DataLoader as data: every row once, in order, with labels where they are numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

from unseam.data.torch_data import is_torch_data, read_torch_data
from unseam.errors import BadInput
from unseam.train import fit

X = torch.arange(600.0).reshape(300, 2)
Y = torch.arange(300) % 4


class Items(Dataset[Any]):
    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[float]:
        while True:
            yield 1.0


@pytest.mark.parametrize(
    "data",
    [
        TensorDataset(X, Y),
        DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(X, Y), batch_size=None),
    ],
)
def test_every_row_once_in_the_order_of_the_data_set(data: Any) -> None:
    assert is_torch_data(data)
    x, labels = read_torch_data(data, show=False)
    assert np.array_equal(x, X.numpy())
    assert labels is not None
    assert np.array_equal(labels, Y.numpy())


def test_samplers_subsets_and_collate_functions_count() -> None:
    plain = TensorDataset(X)
    some = read_torch_data(DataLoader(plain, sampler=SubsetRandomSampler([3, 5])), show=False).x
    assert sorted(some[:, 0]) == [6.0, 10.0]
    assert read_torch_data(Subset(plain, [4, 2]), show=False).x[:, 0].tolist() == [8.0, 4.0]
    batches = BatchSampler(SequentialSampler(range(10)), 4, drop_last=True)
    assert len(read_torch_data(DataLoader(plain, batch_sampler=batches), show=False).x) == 8
    doubled = DataLoader(plain, collate_fn=lambda items: torch.stack([x for (x,) in items]) * 2)
    assert np.array_equal(read_torch_data(doubled, show=False).x, 2 * X.numpy())


def test_forms_of_items() -> None:
    row = torch.ones(2)
    for item in (row, (row,), [row, "name"], {"x": row}, (row, torch.ones(3, 3, 3)), (row.numpy(), None)):
        x, labels = read_torch_data(Items(item, item), show=False)
        assert x.shape == (2, 2)
        assert labels is None
    assert read_torch_data(Items((row, torch.ones(3)), (row, torch.ones(3))), show=False).labels.shape == (2, 3)  # type: ignore[union-attr]
    assert not any(is_torch_data(plain) for plain in (X, X.numpy(), "sprites"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Endless(), "cannot be counted"),
        (DataLoader(Endless()), "cannot be counted"),
        (TensorDataset(torch.zeros(0, 2)), "data is empty"),
        (Items(torch.ones(2), torch.ones(3)), r"row 1 has shape \(3,\), the first row \(2,\)"),
        (Items(*[torch.ones(2)] * 256, torch.ones(3)), r"row 256 has shape \(3,\)"),
        (Items("text", "more"), "an observation is str"),
    ],
)
def test_what_cannot_be_read_is_one_line(data: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_torch_data(data, show=False)


def test_fit_takes_them_and_keeps_labels_as_factors(tmp_path: Path) -> None:
    run = fit(
        TensorDataset(X / 600, Y), network="linear", latents=2, steps=3, out=tmp_path / "run", show=False, scale="none"
    )
    assert len(run.data) == 300
    assert run.data.space is not None
    assert [(f.size, f.kind) for f in run.data.space.factors] == [(4, "categorical")]
    assert np.array_equal(run.data.factors(torch.arange(8)).numpy().ravel(), Y[:8].numpy())


def test_augmentation_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    class Noisy(Items):
        def __getitem__(self, i: int) -> Any:
            return torch.randn(2)

    read_torch_data(Noisy(1, 2), show=False)
    assert "another observation each time" in capsys.readouterr().err
