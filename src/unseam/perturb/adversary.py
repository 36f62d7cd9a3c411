"""The manipulation: a small change of the data that makes an entangled layout cheaper to decode than the disentangled.

    x' = fold(x + eps m(w))
    both sides   minimise their own L for `decoder_steps` batches
    m            then minimises L_ent - L_dis for one

(Zietlow 2022, section 4.2.4.) Both encoders see the original x, and their means do not learn. What L is:

    reconstruction   E_q -log p(x'|z), as published: decoders learn
    elbo             the same + beta KL(q || N(0, I)): how much noise each latent carries is chosen anew as well

With the first m can win without turning an axis: it makes the factor of an imprecise latent matter more, or dims the
picture. A VAE that is trained again simply gives that latent more precision, so the second lets both sides do that.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from unseam.data.sets.perturbed import Mover
from unseam.data.wrap import fold
from unseam.errors import BadInput, unknown
from unseam.objectives import Optimiser
from unseam.perturb.layouts import Teacher
from unseam.progress import bar
from unseam.rng import derive, generator
from unseam.run.checkpoint import load_checkpoint, save_checkpoint
from unseam.train.stack import Stack, Stepper

_Gap = Literal["elbo", "reconstruction"]
_EVERY = 50  # rounds between two measurements of the gap
_LOOK = 4096  # rows behind one look
SETTLE = 300  # steps of the two sides alone before the gap is read for the first time, and for the last
SAVE = 500  # rounds between two checkpoints
TRIAL = 150  # rounds after which starts of m are compared


@dataclass(frozen=True)
class Settings:
    """How m is trained."""

    eps: float = 0.1
    rounds: int = 800
    batch: int = 64
    samples: int = 3  # of z for each observation; published: 5
    decoder_steps: int = 3  # of both decoders for one of m
    lr: float = 1e-3
    starts: int = 1  # of m: of several, the one with the lowest gap is trained further
    gap: _Gap = "elbo"  # what is compared; "reconstruction" as published
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.eps <= 0.5:
            raise BadInput(f"eps={self.eps} must be in (0, 0.5]: beyond that folding back into [0, 1] hides the change")
        if self.gap not in get_args(_Gap):
            raise unknown("gap", self.gap, get_args(_Gap))
        for name in ("rounds", "batch", "samples", "decoder_steps", "starts"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}={getattr(self, name)} must be at least 1")
        if not self.lr > 0:
            raise BadInput(f"lr={self.lr} must be positive")


@dataclass(frozen=True)
class Manipulation:
    """What came out."""

    mover: Mover
    rounds: list[int]
    gaps: list[float]  # L_ent - L_dis at these rounds, nats an observation
    gap_before: float  # on the original data, both sides settled
    gap_after: float  # on the perturbed data, both sides settled
    decoders: dict[str, list[nn.Module]] = field(default_factory=dict)  # what the two sides have become


class _Player:
    """A module with its flat parameters and its optimiser."""

    def __init__(self, module: nn.Module, lr: float) -> None:
        self.module, self.stack = module, Stack([module])
        self.stepper = Stepper(Optimiser(lr=lr), self.stack.flat)
        self.stack.bind(self.stack.leaves)

    def step(self, loss: Tensor) -> None:
        self.stack.gradient.zero_()
        torch.autograd.backward(loss, inputs=self.stack.leaves)
        self.stepper.step()

    def state(self, name: str) -> dict[str, Tensor]:
        moments = {f"{name}/optimiser/{k}": v for k, v in self.stepper.state.items()}
        return {f"{name}/flat": self.stack.flat, **moments}

    def restore(self, name: str, tensors: dict[str, Tensor]) -> None:
        self.stack.flat.copy_(tensors[f"{name}/flat"])
        self.stepper.state = {key: tensors[f"{name}/optimiser/{key}"] for key in self.stepper.state}


class Game:
    """x' and both sides' losses; the players are m and every teacher's decoder."""

    def __init__(
        self, x: Tensor, w: Tensor, sides: Mapping[str, Sequence[Teacher]], settings: Settings, start: int = 0
    ) -> None:
        self.x, self.w, self.sides, self.settings, self.start = x, w, sides, settings, start
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(settings.seed, "mover", start))
            self.mover = Mover(w.shape[1], tuple(x.shape[1:]))
        self.m = _Player(self.mover, settings.lr)
        self.decoders = {
            f"{side}-{i}": _Player(nn.ModuleList([teacher.decoder, teacher.precision]), settings.lr)
            for side, teachers in sides.items()
            for i, teacher in enumerate(teachers)
        }
        self.step = 0

    def moved(self, rows: Tensor) -> Tensor:
        return fold(self.x[rows] + self.settings.eps * self.mover(self.w[rows]))

    def losses(self, rows: Tensor, x: Tensor, draw: torch.Generator) -> dict[str, Tensor]:  # side -> (B,)
        """Each side's loss, the mean over its teachers; both see the same noise, so that it does not blur the gap."""
        K = self.sides["disentangled"][0].mean.shape[1]
        noise = torch.randn(len(rows), self.settings.samples, K, generator=draw)
        return {
            side: torch.stack([self.loss(teacher, rows, x, noise) for teacher in teachers]).mean(0)
            for side, teachers in self.sides.items()
        }

    def loss(self, teacher: Teacher, rows: Tensor, x: Tensor, noise: Tensor) -> Tensor:  # -> (B,)
        if self.settings.gap == "reconstruction":
            return teacher.reconstruction(x, teacher.sample(rows, noise).detach())
        return teacher.reconstruction(x, teacher.sample(rows, noise)) + teacher.beta * teacher.kl(rows)

    def rows(self, *address: str | int) -> tuple[Tensor, torch.Generator]:
        draw = generator(self.settings.seed, "perturb", self.start, *address)
        return torch.randint(len(self.x), (self.settings.batch,), generator=draw), draw

    def teach(self, *address: str | int, original: bool = False) -> None:
        """One step of every teacher on its own loss."""
        rows, draw = self.rows("decoders", *address)
        with torch.no_grad():
            x = self.x[rows] if original else self.moved(rows)
        for side, loss in self.losses(rows, x, draw).items():
            teachers = self.sides[side]
            total = loss.mean() * len(teachers)
            players = [self.decoders[f"{side}-{i}"] for i in range(len(teachers))]
            for i, player in enumerate(players):
                player.stack.gradient.zero_()
                more = i + 1 < len(players)
                torch.autograd.backward(total, inputs=self.learning(player), retain_graph=more)
                player.stepper.step()

    def learning(self, player: _Player) -> list[Tensor]:
        """Decoder and precisions; as published the decoder alone."""
        leaves = player.stack.leaves
        return leaves[:-1] if self.settings.gap == "reconstruction" else leaves

    def settle(self, name: str, original: bool = False) -> None:
        for i in range(min(SETTLE, self.settings.rounds * self.settings.decoder_steps)):
            self.teach(name, i, original=original)

    def move(self, *address: str | int) -> None:
        """One step of m against the gap."""
        rows, draw = self.rows("mover", *address)
        loss = self.losses(rows, self.moved(rows), draw)
        self.m.step((loss["entangled"] - loss["disentangled"]).mean())

    def play(self) -> None:
        """A round."""
        for i in range(self.settings.decoder_steps):
            self.teach(self.step, i)
        self.move(self.step)
        self.step += 1

    @torch.no_grad()
    def gap(self, original: bool = False) -> float:
        """L_ent - L_dis on fixed rows, nats an observation."""
        draw = generator(0, "perturb", "look")  # the same for every seed of m
        rows = torch.randperm(len(self.x), generator=draw)[:_LOOK]
        x = self.x[rows] if original else self.moved(rows)
        loss = self.losses(rows, x, draw)
        return float((loss["entangled"] - loss["disentangled"]).mean())


def manipulate(
    x: Tensor,  # (N, ...) the original observations
    w: Tensor,  # (N, W) what m may see of each
    disentangled: Sequence[Teacher],
    entangled: Sequence[Teacher],
    settings: Settings,
    checkpoint: Path | None = None,
    show: bool | None = None,
) -> Manipulation:
    """Train m; with a checkpoint a stopped training continues where it was, bit for bit."""
    sides = {"entangled": list(entangled), "disentangled": list(disentangled)}
    goes_on = checkpoint is not None and checkpoint.exists()
    start = _started(checkpoint) if goes_on else best_start(x, w, sides, settings, show)  # type: ignore[arg-type]
    game = Game(x, w, sides, settings, start)
    if goes_on:
        before, rows_used = _resume(game, checkpoint)  # type: ignore[arg-type]
    else:
        game.settle("first", original=True)
        before, rows_used = game.gap(original=True), [(0, game.gap())]
    with bar("moving the data", settings.rounds, show) as advance:
        advance(game.step)
        while game.step < settings.rounds:
            game.play()
            advance()
            if game.step % _EVERY == 0 or game.step == settings.rounds:
                rows_used.append((game.step, game.gap()))
            if checkpoint is not None and (game.step % SAVE == 0 or game.step == settings.rounds):
                _save(game, checkpoint, before, rows_used)
    game.settle("settle")
    rounds, gaps = zip(*rows_used, strict=True)
    after = {side: [t.decoder for t in teachers] for side, teachers in sides.items()}
    return Manipulation(copy.deepcopy(_plain(game)), list(rounds), list(gaps), before, game.gap(), after)


def best_start(
    x: Tensor, w: Tensor, sides: Mapping[str, Sequence[Teacher]], settings: Settings, show: bool | None = None
) -> int:
    """The start of m whose gap is lowest after some rounds; the teachers given stay as they are."""
    if settings.starts == 1:
        return 0
    rounds, gaps = min(TRIAL, settings.rounds), []
    with bar("trying starts", settings.starts * rounds, show) as advance:
        for start in range(settings.starts):
            game = Game(x, w, {side: copy.deepcopy(list(t)) for side, t in sides.items()}, settings, start)
            for _ in range(rounds):
                game.play()
                advance()
            gaps.append(game.gap())
    return min(range(settings.starts), key=lambda start: gaps[start])


def _started(path: Path) -> int:
    """The start that a checkpoint continues from."""
    return int(load_checkpoint(path)[1]["start"])


def _plain(game: Game) -> Mover:
    """m with its weights as ordinary parameters."""
    mover = Mover(game.mover.inputs, game.mover.shape)
    mover.load_state_dict({name: block[0].detach().clone() for name, block in game.m.stack.state().items()})
    return mover


def _save(game: Game, path: Path, before: float, rows_used: Sequence[tuple[int, float]]) -> None:
    tensors = game.m.state("m")
    for name, player in game.decoders.items():
        tensors |= player.state(name)
    save_checkpoint(
        path,
        tensors,
        {
            "settings": asdict(game.settings),
            "start": game.start,
            "step": game.step,
            "before": before,
            "seen": [*rows_used],
        },
    )


def _resume(game: Game, path: Path) -> tuple[float, list[tuple[int, float]]]:
    tensors, meta = load_checkpoint(path)
    for name, value in asdict(game.settings).items():
        if meta["settings"][name] != value and name != "rounds":  # more rounds go on from the same place
            raise BadInput(f"{name}={value}, but {path} was begun with {meta['settings'][name]}; choose another folder")
    if any(len(tensors.get(f"{n}/flat", ())) != len(p.stack.flat) for n, p in {"m": game.m, **game.decoders}.items()):
        raise BadInput(f"{path} was begun with other models or data; choose another folder")
    game.m.restore("m", tensors)
    for name, player in game.decoders.items():
        player.restore(name, tensors)
    game.step = int(meta["step"])
    return float(meta["before"]), [(int(a), float(b)) for a, b in meta["seen"]]
