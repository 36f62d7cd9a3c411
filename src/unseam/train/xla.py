"""The training step by XLA, many steps in a call: the third engine, for stacked MLPs and linear models on a CPU.

A small step is a hundred operations of a few microseconds each, and calling them one by one costs more than doing
them. So the step that compiled_step.py traces (losses and gradients) is translated once, operator by operator
(xla_operators.py), the optimiser is added, and XLA compiles a loop over steps from it:

    p, moments, fine  <-  step(p, moments, batch i, noise i)        for i = start .. stop - 1

`start` and `stop` are known only when it is called: one program serves chunks of every length, so the numbers do not
depend on how a run was cut, and a resumed run is the uninterrupted one. Batches and noise are drawn ahead, by the
same addresses as in the other engines. What is logged is a second program of the same kind. The engines agree up to
rounding, not bit for bit.

A member that leaves the finite numbers is noticed at the end of a chunk. The chunk is then done again one step at a
time, and the member is held at the weights that it had before the step at fault.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from unseam.objectives import Optimiser
from unseam.train.batches import Feed
from unseam.train.compiled_step import RTOL, arguments, clean, report_graph, step_graph
from unseam.train.job import State, hold
from unseam.train.stack import ADAGRAD_EPS, Forward, Stepper
from unseam.train.step_by_step import culprit, put_held
from unseam.train.xla_operators import operators

CHUNK = 128  # steps of a call at most
HELD_OUT_BATCHES = 4  # batches of held-out samples of a call at most
_MEMORY = 64 * 2**20  # bytes of batches and noise that are drawn ahead at once
_OPTIONS = {"xla_cpu_multi_thread_eigen": False}  # a process a core


class NotTranslated(Exception):
    """Why XLA cannot run a step."""


def installed() -> bool:
    """Whether JAX can be imported (it is not: that takes half a second)."""
    return find_spec("jax") is not None and find_spec("jaxlib") is not None


def xla_engine(forward: Forward, state: State, feed: Feed) -> XLA | None:
    """The engine of this group, or None with the reason in `state.why_not`."""
    try:
        engine = XLA(forward, state, feed)
        if state.engine != "xla":  # one that goes on was checked when it began
            engine.check()
    except Exception as error:  # a user's objective is any Python; the other engines can still run it
        words = str(error).splitlines()[0] if str(error) else ""
        state.engine = ""
        state.why_not = words if isinstance(error, NotTranslated) else f"{type(error).__name__}: {words}"
        return None
    state.engine = "xla"
    return engine


class XLA:
    """The steps of one group of members; its own arrays are ahead of `state` only while `run` runs."""

    def __init__(self, forward: Forward, state: State, feed: Feed) -> None:
        import jax

        self.forward, self.state, self.feed = forward, state, feed
        example = feed(0, forward.shapes)
        inputs = arguments(state, *example)
        look, self.shapes = report_graph(forward, state, *example)
        programs = [translated(clean(graph, inputs)) for graph in (step_graph(forward, state, *example), look)]
        per_step = sum(part.nbytes for part in self._draw(feed, 0, 1, 1))
        self.capacity = max(1, min(CHUNK, _MEMORY // per_step))
        self.looked = min(HELD_OUT_BATCHES, self.capacity)
        self.kept: tuple[Feed, list[list[Any]]] | None = None  # the held-out samples, drawn once
        rows = feed.memory if feed.by_row else None
        with self.context():
            self.memory = None if rows is None else jax.dlpack.from_dlpack(rows.contiguous())
            self.members = None if len(feed.seeds) == len(feed.member_seeds) else np.asarray(feed.members)
            self.advance = jax.jit(self._advance(programs[0]), compiler_options=_OPTIONS)
            self.measure = jax.jit(self._measure(programs[1]), compiler_options=_OPTIONS)
            self.joined = jax.jit(_joined, compiler_options=_OPTIONS)
        self.load()
        self.store()  # the same numbers; compiled here, where no training time is counted

    def context(self) -> AbstractContextManager[None]:
        """In double precision only if the run is; the user's own settings of JAX stay what they are."""
        import jax

        return jax.enable_x64(self.forward.dtype == torch.float64)

    # The two programs

    def _batch(self, i: Any, drawn: Sequence[Any], memory: Any) -> list[Any]:
        """x and the noise of all members at step i of what was drawn."""
        from jax import lax

        x, *noise = [lax.dynamic_index_in_dim(part, i, 0, False) for part in drawn]
        if memory is not None:
            x = memory.at[x].get(mode="promise_in_bounds")
        return [x, *noise] if self.members is None else [part[self.members] for part in (x, *noise)]

    def _advance(self, step: Callable[..., Any]) -> Callable[..., Any]:
        from jax import lax
        from jax import numpy as jnp

        players = list(self.state.stacks)
        settings = [self.state.optimisers[name].settings for name in players]
        sizes = [len(self.state.stacks[name].leaves) for name in players]
        axis = self.forward.members > 1

        def one(i: Any, carry: Any, drawn: Any, rates: Any, memory: Any, first: Any, alive: Any) -> Any:
            weights, moments, fine = carry
            flat = [leaf for leaves in weights for leaf in leaves]
            results = iter(step(*flat, *self._batch(i, drawn, memory), first + i))
            for _ in players:
                fine = fine & jnp.isfinite(next(results))

            def kept(new: Any, old: Any) -> Any:
                return jnp.where(alive.reshape(-1, *[1] * (old.ndim - 1)) if axis else alive[0], new, old)

            stepped: list[Any] = []
            remembered: list[Any] = []
            for p, s, rate, size, m in zip(weights, settings, rates, sizes, moments, strict=True):
                gradients = [next(results).reshape(leaf.shape) for leaf in p[:size]]
                new = [
                    [kept(new_moment(s, k, old, g), old) for old, g in zip(parts, gradients, strict=True)]
                    for k, parts in enumerate(m)
                ]
                # The weights' update reads the new moments from memory. Left to itself, XLA computes them again
                # from the old ones, which it copies for that at every step: 4 to 20 % of a step.
                new = lax.optimization_barrier(new) if new else new
                changed = [optimised(s, rate[i], *of) for of in zip(p, gradients, *new, strict=True)]
                stepped.append(list(map(kept, changed, p)))
                remembered.append(new)
            return stepped, remembered, fine

        def advance(
            carry: Any, drawn: Any, rates: Any, memory: Any, first: Any, start: Any, stop: Any, alive: Any
        ) -> Any:
            fine = jnp.ones(alive.shape, bool)
            weights, moments, fine = lax.fori_loop(
                start, stop, lambda i, carry: one(i, carry, drawn, rates, memory, first, alive), (*carry, fine)
            )
            for leaf in [leaf for leaves in weights for leaf in leaves]:
                fine = fine & jnp.isfinite(leaf).reshape(len(alive), -1).all(1)
            return (weights, moments), fine

        return advance

    def _measure(self, look: Callable[..., Any]) -> Callable[..., Any]:
        from jax import lax
        from jax import numpy as jnp

        def measure(weights: Any, drawn: Any, memory: Any, step: Any, count: Any) -> Any:
            flat = [leaf for leaves in weights for leaf in leaves]

            def one(i: Any) -> Any:
                return look(*flat, *self._batch(i, drawn, memory), step)

            first = one(0)
            total = lax.fori_loop(1, count, lambda i, total: [a + b for a, b in zip(total, one(i), strict=True)], first)
            return _flat([value / jnp.asarray(count, value.dtype) for value in total])

        return measure

    # Their use

    def load(self) -> None:
        """Take the weights, the optimisers' memories and who is held from the state."""
        import jax

        put_held(self.state)
        stacks, steppers = self.state.stacks, self.state.optimisers
        self.alive = np.array([i not in self.state.held for i in range(self.forward.members)])
        self.counts = {name: int(steppers[name].moments.get("step", torch.zeros((), device="cpu"))) for name in stacks}
        weights = [[leaf.detach().numpy().copy() for leaf in stack.leaves] for stack in stacks.values()]
        moments = [[self._leaves(name, flat) for flat in self._moments(name)] for name in stacks]
        with self.context():
            self.carry = jax.device_put((weights, moments), jax.local_devices(backend="cpu")[0])

    def _leaves(self, player: str, flat: Tensor) -> list[Any]:
        """A copy of a flat buffer as arrays in the shapes of the leaves."""
        stack = self.state.stacks[player]
        return [(part[0] if stack.members == 1 else part).numpy().copy() for part in stack.like(flat)]

    @torch.no_grad()
    def store(self) -> None:
        """Put them back, for checkpoints and all who look at the state."""
        with self.context():
            joined = self.joined(self.carry)
        for name, (weights, moments) in zip(self.state.stacks, joined, strict=True):
            self.state.stacks[name].flat.copy_(torch.from_dlpack(weights))
            for flat, new in zip(self._moments(name), moments, strict=True):
                flat.copy_(torch.from_dlpack(new))
            if "step" in (kept := self.state.optimisers[name].moments):
                kept["step"].fill_(self.counts[name])

    def _moments(self, player: str) -> list[Tensor]:
        """What the player's optimiser keeps, each as flat as the weights."""
        return [value for name, value in self.state.optimisers[player].moments.items() if name != "step"]

    def run(self, count: int) -> int:
        """Up to `count` steps; how many were done: fewer than asked for when a chunk is full or nobody is left."""
        count, first, before = min(count, self.capacity), self.state.step, self.carry
        drawn = self._draw(self.feed, first, count, self.capacity)
        rates = [self._rates(name) for name in self.state.stacks]

        def steps(start: int, stop: int) -> Any:
            """The members of which all numbers stayed finite."""
            with self.context():
                self.carry, fine = self.advance(self.carry, drawn, rates, self.memory, first, start, stop, self.alive)
                return np.asarray(fine) | ~self.alive

        if not steps(0, count).all():
            self.carry = before
            count = self._carefully(steps, count)
        self.counts = {name: done + count for name, done in self.counts.items()}
        self.state.step += count
        self.store()
        return count

    def _carefully(self, steps: Callable[[int, int], Any], count: int) -> int:
        """A chunk one step at a time; whoever leaves the finite numbers is held at the weights before that step."""
        for i in range(count):
            before = self.carry
            while not (fine := steps(i, i + 1)).all():
                self.carry = before
                self.store()
                causes = self._causes(self.state.step + i)
                for position in map(int, np.flatnonzero(~fine)):
                    self.state.frozen[position] = causes(position)
                    hold(self.state, position)
                    self.alive[position] = False
            if not self.alive.any():
                return i + 1
        return count

    def _causes(self, step: int) -> Callable[[int], str]:
        """Why a member is held at this step, by the step as it is."""
        before, self.state.step = self.state.step, step
        losses, _ = self.forward(self.state, *self.feed(step, self.forward.shapes), logging=False)
        self.forward.backward(self.state, losses)
        self.state.step = before

        def cause(position: int) -> str:
            what = culprit(self.state, losses, position)
            return (
                f"its {what} was not finite at step {step}"
                if what
                else (f"its weights were not finite after step {step}")
            )

        return cause

    def report(self) -> dict[str, Tensor]:
        """What is logged of this step's batch."""
        return self._named(self._means(self._draw(self.feed, self.state.step, 1, self.looked), 1))

    def held_out(self, feed: Feed, batches: int) -> dict[str, Tensor]:
        """Means of what is logged over the first batches of a feed, which are drawn once."""
        if self.kept is None or self.kept[0] is not feed:
            starts = range(0, batches, self.looked)
            self.kept = feed, [self._draw(feed, i, min(self.looked, batches - i), self.looked) for i in starts]
        parts, left = [], batches
        for drawn in self.kept[1]:
            size = min(self.looked, left)
            parts.append(size / batches * self._means(drawn, size))
            left -= size
        return self._named(torch.stack(parts).sum(0))

    def _means(self, drawn: Sequence[Any], count: int) -> Tensor:
        """All that is logged as one flat tensor: to hand over each number costs more than to compute it."""
        with self.context():
            return torch.from_dlpack(self.measure(self.carry[0], drawn, self.memory, self.state.step, count))

    def _named(self, flat: Tensor) -> dict[str, Tensor]:
        parts = flat.split([shape.numel() for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def members_held(self) -> None:
        """Members were stopped: the others go on without them."""
        self.load()

    def _draw(self, feed: Feed, step: int, count: int, room: int) -> list[Any]:
        """Samples and noises of `count` steps, in arrays with room for more; where the data is in memory, its rows."""
        parts = [torch.cat(part) for part in zip(*feed.ahead(step, count, self.forward.shapes), strict=True)]
        if feed.by_row:
            parts[0] = parts[0].to(torch.int32)
        return [torch.cat([p, p[:1].expand(room - count, *p.shape[1:])]).numpy() for p in parts]

    def _rates(self, player: str) -> Any:
        """What depends on the step alone (capacity, 2): Adam's step size and the root of its second correction."""
        settings, done = self.state.optimisers[player].settings, self.counts[player]
        t = np.arange(done + 1, done + 1 + self.capacity, dtype=np.float64)
        if settings.name != "adam":
            return np.full((len(t), 2), settings.lr, self._numbers)
        rates = np.stack([settings.lr / (1 - settings.b1**t), np.sqrt(1 - settings.b2**t)], 1)
        return rates.astype(self._numbers)

    @property
    def _numbers(self) -> str:
        return str(self.forward.dtype).removeprefix("torch.")

    def check(self) -> None:
        """Compare a step and a report on another batch with those of the objective as it is; raise if they differ."""
        state, forward = self.state, self.forward
        state.step += 1
        try:
            losses, expected = forward(state, *self.feed(state.step, forward.shapes), logging=True)
            forward.backward(state, losses)
            report = self.report()
            drawn = self._draw(self.feed, state.step, 1, self.capacity)
            rates = [self._rates(name) for name in state.stacks]
            with self.context():
                found, _ = self.advance(self.carry, drawn, rates, self.memory, state.step, 0, 1, self.alive)
        finally:
            state.step -= 1
        pairs = [(report[name], value, 1.0) for name, value in expected.items()]
        for name, weights, moments in zip(state.stacks, *found, strict=True):
            kept = _after_a_step(state, name)
            parts = moments[0] if moments else weights
            pairs.append((torch.cat([torch.from_dlpack(part).flatten() for part in parts]), kept, 0.0))
        if not all(_close(ours, theirs, RTOL[forward.dtype], least) for ours, theirs, least in pairs):
            raise NotTranslated("it gave other numbers than the step as it is")


def _after_a_step(state: State, player: str) -> Tensor:
    """What the optimiser would keep of the gradients (its first moment), or the weights if it keeps nothing."""
    flat, stepper = state.stacks[player].flat.clone(), state.optimisers[player]
    flat.grad = state.stacks[player].gradient
    other = Stepper(stepper.settings, flat)
    other.state = {name: value.clone() for name, value in stepper.moments.items()}
    other.step()
    return next(iter(other.moments.values()), flat)


def _close(ours: Tensor, theirs: Tensor, tolerance: float, least: float) -> bool:
    """Equal up to rounding where theirs is finite, relative to its largest number, or to `least`."""
    known = torch.isfinite(theirs)
    if not known.any():
        return True
    scale = max(float(theirs[known].abs().max()), least, torch.finfo(theirs.dtype).tiny)
    return bool((ours[known] - theirs[known]).abs().max() <= tolerance * scale)


def _flat(parts: Sequence[Any]) -> Any:
    from jax import numpy as jnp

    return jnp.concatenate([part.ravel() for part in parts])


def _joined(carry: Any) -> list[tuple[Any, list[Any]]]:
    """Each player's weights and moments in one array, in the order of the stack's flat buffer."""
    return [(_flat(weights), [_flat(parts) for parts in moments]) for weights, moments in zip(*carry, strict=True)]


def new_moment(s: Optimiser, k: int, old: Any, g: Any) -> Any:
    """What the optimiser keeps of a parameter's gradients (its k-th number), after one more."""
    if s.name == "adagrad":
        return old + g * g
    return old + (1 - s.b1) * (g - old) if k == 0 else s.b2 * old + (1 - s.b2) * g * g


def optimised(s: Optimiser, rate: Any, p: Any, g: Any, *moments: Any) -> Any:
    """A parameter after one step, as `stack.Stepper` does it, by its gradient and the new moments."""
    from jax import numpy as jnp

    if s.name == "adam":
        m, v = moments
        eps = s.eps or float(jnp.finfo(p.dtype).tiny)
        return (1 - s.lr * s.weight_decay) * p - rate[0] * m / (jnp.sqrt(v) / rate[1] + eps)
    if s.name == "adagrad":
        return p - s.lr * g / (jnp.sqrt(moments[0]) + ADAGRAD_EPS)
    return p - s.lr * g


def translated(module: fx.GraphModule) -> Callable[..., list[Any]]:
    """A graph of ATen operators as a function of JAX arrays."""
    known: dict[Any, Callable[..., Any]] = {operator.getitem: operator.getitem, **operators()}
    nodes = list(module.graph.nodes)
    missing = sorted({str(n.target) for n in nodes if n.op == "call_function" and n.target not in known})
    if missing:
        raise NotTranslated(f"xla_operators.py has no {', '.join(missing)}")

    def run(*inputs: Any) -> list[Any]:
        from jax import numpy as jnp

        values: dict[fx.Node, Any] = {}
        given = iter(inputs)

        def of(arguments: Any) -> Any:
            return fx.node.map_arg(arguments, values.__getitem__)

        for node in nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = jnp.asarray(getattr(module, node.target).detach().numpy())
            elif node.op == "call_function":
                values[node] = known[node.target](*of(node.args), **of(node.kwargs))
        return list(of(nodes[-1].args[0]))

    return run
