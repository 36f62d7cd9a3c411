"""The stream of samples: every epoch a permutation, a pure function of the seed and the step."""

import pytest
import torch

from unseam.data import load_data
from unseam.errors import BadInput
from unseam.run import Training
from unseam.run.config import split
from unseam.train.batches import Feed, Order


def test_split_covers_every_row_once() -> None:
    train, test = split(101, 0.1)
    assert len(test) == 10
    assert torch.equal(torch.cat([train, test]).sort().values, torch.arange(101))


def test_every_epoch_is_a_permutation_and_epochs_differ() -> None:
    rows = torch.arange(50, 70)
    stream = Order(0, rows)(0, 60).view(3, 20)
    assert all(torch.equal(epoch.sort().values, rows) for epoch in stream)
    assert not torch.equal(stream[0], stream[1])
    assert torch.equal(Order(0, rows)(13, 30), stream.flatten()[13:43])
    assert not torch.equal(Order(1, rows)(0, 20), stream[0])


def test_a_feed_depends_on_seed_and_step_only() -> None:
    data = load_data("synth-linear", size=100)
    rows = torch.arange(100)
    shapes = {"z": (8, 2)}
    both = Feed(data, rows, [3, 4], 8)
    alone = Feed(data, rows, [4], 8)
    for step in (0, 5, 40, 41, 2):
        x, noise = both(step, shapes)
        y, other = alone(step, shapes)
        assert torch.equal(x[1], y[0])
        assert torch.equal(noise["z"][1], other["z"][0])


def test_rendered_and_remembered_batches_agree() -> None:
    data = load_data("sprites", size=16, orientations=2, xs=4, ys=4)
    feed = Feed(data, torch.arange(len(data)), [0, 1], 5)
    assert feed.memory is not None
    x, _ = feed(3, {"z": (5, 2)})
    feed.memory = None
    y, _ = feed(3, {"z": (5, 2)})
    assert torch.equal(x, y)
    assert x.shape == (2, 5, 1, 16, 16)


def test_a_batch_that_no_memory_holds_is_refused() -> None:
    """`--batch` of four hundred digits drew rows for minutes (command-line-82459)."""
    with pytest.raises(BadInput, match=r"batch=9{20} must be at most 1,048,576"):
        Training(batch=10**400 - 1)
    assert Training(batch=1 << 20).batch == 1 << 20
