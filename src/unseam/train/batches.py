"""Which samples a member sees when, and its noise: pure functions of (seed, step), so a resumed run needs no state.

Draws are made for blocks of steps at once, which keeps Python out of the training step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.data.pairs import Pairing, partners, varying
from unseam.data.wrap import Dressed
from unseam.rng import generator

_MEMORY = 512 * 2**20  # data sets below this many bytes are rendered once and gathered from


def small(data: Dataset) -> bool:
    """Whether all of it may be kept in memory."""
    return not data.stochastic and 4 * len(data) * int(torch.Size(data.shape).numel()) <= _MEMORY


class Order:
    """The stream of training rows of one member: one random permutation after the other."""

    def __init__(self, seed: int, rows: Tensor) -> None:
        self.seed, self.rows = seed, rows
        self.epoch, self.permuted = -1, rows

    def __call__(self, start: int, count: int) -> Tensor:
        """Rows at positions start .. start + count - 1 of the stream (count,)."""
        parts, size = [], len(self.rows)
        while count > 0:
            epoch, offset = divmod(start, size)
            if epoch != self.epoch:
                order = torch.randperm(size, generator=generator(self.seed, "order", epoch), device="cpu")
                self.epoch, self.permuted = epoch, self.rows[order]
            part = self.permuted[offset : offset + count]
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return torch.cat(parts)


class Feed:
    """Batches and noise of S members at a step: x (S, B', *shape) and named noise (S, ...).

    With a pairing half of a batch is drawn and its second half are the partners; the noise then holds `changed`
    (S, B, F), 1 where a factor that varies differs within a pair.
    """

    def __init__(
        self,
        data: Dataset,
        rows: Tensor,
        seeds: Sequence[int],
        batch: int,
        block: int = 32,
        pairing: Pairing | None = None,
        device: torch.device | str = "cpu",
        like: Feed | None = None,  # another of the same data, which has it in memory
    ) -> None:
        self.device, self.member_seeds = torch.device(device), tuple(seeds)
        self.data, self.seeds, self.block, self.pairing = data, tuple(dict.fromkeys(seeds)), block, pairing
        members = [self.seeds.index(seed) for seed in seeds]  # those of one seed see the same
        self.members = torch.tensor(members, device=self.device)
        self.batch = batch // 2 if pairing else batch
        self.rows, self.orders = rows, [Order(seed, rows) for seed in self.seeds]
        self.number, self.index = -1, torch.empty(0, dtype=torch.long, device="cpu")
        self.noises: dict[str, Tensor] = {}
        self.memory: Tensor | None
        self.bare: Tensor | None
        self.memory, self.bare = self._rendered() if like is None else (like.memory, like.bare)

    def __call__(self, step: int, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Tensor, dict[str, Tensor]]:
        within = self._at(step, shapes)
        x, noises = self._batch(within, step), {name: noise[:, within] for name, noise in self.noises.items()}
        if len(self.seeds) == len(self.members):
            return x, noises
        return x[self.members], {name: noise[self.members] for name, noise in noises.items()}

    def ahead(self, step: int, count: int, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[list[Tensor]]:
        """Samples and named noises of `count` steps, each (n, S', ...) for n steps and the S' distinct seeds.

        Samples are rows of `memory` where they are there (`by_row`), else the observations themselves.
        """
        while count > 0:
            within = self._at(step, shapes)
            size = min(count, self.block - within)
            span = slice(within, within + size)
            if self.by_row:
                x = self.index[:, span].transpose(0, 1)
            else:
                x = torch.stack([self._batch(i, step + i - within) for i in range(span.start, span.stop)])
            yield [x, *(noise[:, span].transpose(0, 1) for noise in self.noises.values())]
            step, count = step + size, count - size

    @property
    def by_row(self) -> bool:
        """Whether all samples of a batch are rows of the data in memory; asked after the first batch."""
        return self.memory is not None and (self.pairing is None or self.index.shape[2] == 2 * self.batch)

    def _at(self, step: int, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """The position of a step in its block, which is drawn if it is not the last one that was."""
        number, within = divmod(step, self.block)
        if number != self.number:
            self._draw(number, shapes)
        return within

    def _batch(self, within: int, step: int) -> Tensor:  # (S', B', *shape)
        x = self._observe(self.index[:, within], step)
        if self.pairing and x.shape[1] == self.batch:  # partners that are not rows
            x = torch.cat([x, self._partners(self.seconds[:, within], step).to(x.device)], 1)
        return x.to(self.device)

    def _rendered(self) -> tuple[Tensor | None, Tensor | None]:
        """What fits into memory, once: the data, or its ingredients where every draw of it differs."""
        every = torch.arange(len(self.data), device="cpu")
        if small(self.data):
            return self.data.batch(every).to(self.device), None
        dressed = isinstance(self.data, Dressed) and small(self.data.of)
        return None, self.data.of.batch(every) if dressed else None  # type: ignore[attr-defined]

    def _draw(self, number: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        count = self.block * self.batch
        index = [order(number * count, count) for order in self.orders]
        self.index = torch.stack(index).unflatten(1, (self.block, self.batch))  # (S, block, B')
        if self.pairing:
            self._pair(number, index)
        for name, shape in shapes.items():
            self.noises[name] = torch.stack([self._noise(seed, name, number, shape) for seed in self.seeds])
        self.number = number

    def _noise(self, seed: int, name: str, number: int, shape: tuple[int, ...]) -> Tensor:  # (block, *shape)
        """Drawn where it is used: each kind of device has its own stream."""
        draw = generator(seed, "noise", name, number, device=self.device)
        return torch.randn(self.block, *shape, generator=draw, device=self.device)

    def _pair(self, number: int, index: Sequence[Tensor]) -> None:
        """The partners of a block of rows, beside them; as factors where they are not rows of the data."""
        assert self.pairing is not None
        found = [
            partners(self.data, rows, self.pairing, generator(seed, "pairs", number), self.rows)
            for rows, seed in zip(index, self.seeds, strict=True)
        ]
        size = (self.block, self.batch)
        columns = varying(self.data.space) if self.data.space is not None else torch.arange(0, device="cpu")
        changed = torch.stack([f.changed[:, columns].float() for f in found]).unflatten(1, size)
        self.noises["changed"] = changed.to(self.device)
        if found[0].rows is not None:
            seconds = torch.stack([f.rows for f in found if f.rows is not None]).unflatten(1, size)
            self.index = torch.cat([self.index, seconds], 2)
        else:
            self.seconds = torch.stack([f.factors for f in found if f.factors is not None]).unflatten(1, size)

    def _observe(self, index: Tensor, step: int) -> Tensor:  # (S, B') -> (S, B', *shape)
        if self.memory is not None:
            return self.memory[index.to(self.device)]
        if not self.data.stochastic:
            return self.data.batch(index.flatten()).unflatten(0, index.shape)
        draws = [generator(seed, "observe", step) for seed in self.seeds]
        return torch.stack([self._drawn(row, draw) for row, draw in zip(index, draws, strict=True)])

    def _drawn(self, rows: Tensor, draw: torch.Generator) -> Tensor:  # (B',) -> (B', *shape)
        if self.bare is None:
            return self.data.batch(rows, draw)
        assert isinstance(self.data, Dressed)
        return self.data.paint(self.bare[rows], rows, draw)

    def _partners(self, factors: Tensor, step: int) -> Tensor:  # (S, B, F) -> (S, B, *shape)
        if not self.data.stochastic:
            return self.data.observe(factors.flatten(0, 1)).unflatten(0, factors.shape[:2])
        draws = [generator(seed, "observe", "partner", step) for seed in self.seeds]
        return torch.stack([self.data.observe(f, draw) for f, draw in zip(factors, draws, strict=True)])
