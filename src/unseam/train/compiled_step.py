"""The training step written out: one straight list of tensor operations, without vmap, modules, pytrees or autograd.

An objective is Python for one member. vmap and autograd turn it into tensor operations of the cohort, at every step
in the same way; so one step is watched (make_fx), its list is cleaned, and from then on the list alone is run. The
operations are the same, in the same order: what changes is who calls them. A step that cannot be written out (Python
that looks at values) is found by comparing one other batch, and runs as it is; `why_not` of the state says why.

What it buys: 6.0 against 10.6 ms a step for ten 60-40-20 MLPs, a ratio of 1.7 (medians of 9 alternating turns on a
busy machine; another run 1.6). torch.compile(backend="aot_eager") and functorch's aot_function were tried for the same;
neither took our step as it is: the first stops at vmap ("Cannot access storage of BatchedTensorImpl"), the second at
the likelihood's constants ("convert all Tensors to FakeTensors"), so there is no time of theirs to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.func import functionalize

from unseam.train import torch_private
from unseam.train.batches import Feed
from unseam.train.job import State
from unseam.train.stack import Forward
from unseam.train.torch_private import is_mutable

LONG = 1000  # steps from which writing the step out (about a second) pays
_LARGE = 4_000_000  # parameters of a group above which arithmetic rules, and there is nothing to gain
ATEN = torch.ops.aten
SAME_SHAPE = {ATEN.view.default, ATEN._unsafe_view.default, ATEN.expand.default, ATEN.reshape.default}
IDENTITY = {ATEN.detach.default, ATEN.alias.default, ATEN.lift_fresh_copy.default}
SHAPE_ONLY = {  # constants, whatever their argument holds
    ATEN.ones_like.default, ATEN.zeros_like.default, ATEN.full_like.default, ATEN.new_zeros.default,
    ATEN._new_zeros_with_same_feature_meta.default,
}  # fmt: skip
_VIEWS = {
    ATEN.view.default,
    ATEN._unsafe_view.default,
    ATEN.transpose.int,
    ATEN.permute.default,
    ATEN.unsqueeze.default,
}
DIRECT: dict[Any, Any] = {  # the same operations by torch's own functions, which are called 1 us sooner; reshape for
    # view, because an elementwise result may have other strides than it had while the step was traced
    ATEN.bmm.default: torch.bmm, ATEN.add.Tensor: torch.add, ATEN.sub.Tensor: torch.sub, ATEN.mul.Tensor: torch.mul,
    ATEN.div.Tensor: torch.div, ATEN.view.default: torch.reshape, ATEN.transpose.int: torch.transpose,
    ATEN.permute.default: torch.permute, ATEN.unsqueeze.default: torch.unsqueeze, ATEN.tanh.default: torch.tanh,
    ATEN.relu.default: torch.relu, ATEN.exp.default: torch.exp, ATEN.neg.default: torch.neg,
    ATEN.cat.default: torch.cat, ATEN.sum.dim_IntList: torch.sum, ATEN.mean.dim: torch.mean,
}  # fmt: skip
RTOL = {torch.float32: 1e-4, torch.float64: 1e-9}


class CompiledStep:
    """losses, gradients = the list of operations (leaves, x, noise, step)."""

    def __init__(self, graph: fx.GraphModule, players: list[str]) -> None:
        self.graph, self.players = graph, players

    @torch.no_grad()
    def __call__(self, state: State, x: Tensor, noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The losses (S,) of each player; their gradients are left in the stacks."""
        results = iter(self.graph(*arguments(state, x, noise)))
        losses = {name: next(results) for name in self.players}
        for stack in state.stacks.values():
            torch.cat([next(results) for _ in stack.leaves], out=stack.gradient)  # once through memory, not twice
        return losses


def arguments(state: State, x: Tensor, noise: Mapping[str, Tensor]) -> list[Tensor]:
    leaves = [leaf for stack in state.stacks.values() for leaf in stack.leaves]
    return [*leaves, x, *noise.values(), torch.tensor(state.step, device=x.device)]


def compile_step(forward: Forward, state: State, feed: Feed) -> CompiledStep | None:
    """The step of this group as a list of operations, where that pays, is possible, and gives what it must."""
    if sum(stack.flat.numel() for stack in state.stacks.values()) > _LARGE:
        return None
    written = trace_step(forward, state, *feed(0, forward.shapes))
    if written and not agree(written, forward, state, *feed(1, forward.shapes)):
        state.why_not, written = "it gave other numbers on another batch", None
    return written


def trace_step(forward: Forward, state: State, x: Tensor, noise: Mapping[str, Tensor]) -> CompiledStep | None:
    """The step as a list of operations, or None when it cannot be one."""
    if torch_private.make_fx is None:
        state.why_not = "this torch has no make_fx"
        return None
    try:
        graph, inputs = step_graph(forward, state, x, noise), arguments(state, x, noise)
        leaves = sum(len(stack.leaves) for stack in state.stacks.values())
        return CompiledStep(by_torch(clean(graph, inputs, leaves)), list(state.stacks))
    except Exception as error:  # a user's objective is any Python, and any of it may stand in the way; it can still run
        state.why_not = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return None


def step_graph(forward: Forward, state: State, x: Tensor, noise: Mapping[str, Tensor]) -> fx.GraphModule:
    """losses, gradients = graph(leaves, x, noise, step), as watched once; a gradient is flat."""
    players = list(state.stacks)

    def step(*flat: Tensor) -> list[Tensor]:
        losses, _ = forward.run(state, *(named := _named(state, list(noise), flat)))
        parameters = named[0]
        gradients = [
            torch.autograd.grad(losses[name].sum(), parameters[name], retain_graph=True, allow_unused=True)
            for name in players
        ]
        zeros = [[torch.zeros_like(p) if g is None else g for g, p in zip(gs, parameters[name], strict=True)]
                 for name, gs in zip(players, gradients, strict=True)]  # fmt: skip
        return [*(losses[name].detach() for name in players), *(g.flatten() for gs in zeros for g in gs)]

    return _watched(step, arguments(state, x, noise))


def report_graph(
    forward: Forward, state: State, x: Tensor, noise: Mapping[str, Tensor]
) -> tuple[fx.GraphModule, dict[str, torch.Size]]:
    """What is logged of a batch, as a graph of the same arguments, and its names and shapes."""
    shapes: dict[str, torch.Size] = {}

    def look(*flat: Tensor) -> list[Tensor]:
        _, report = forward.run(state, *_named(state, list(noise), flat), logging=True)
        shapes.update({name: value.shape for name, value in report.items()})
        return list(report.values())

    with torch.no_grad():
        return _watched(look, arguments(state, x, noise)), shapes


def _named(
    state: State, noises: list[str], flat: Sequence[Tensor]
) -> tuple[dict[str, list[Tensor]], Tensor, dict[str, Tensor], Tensor]:
    """Flat arguments -> parameters by player, x, noise by name, step."""
    values = iter(flat)
    parameters = {name: [next(values) for _ in stack.leaves] for name, stack in state.stacks.items()}
    x, noise = next(values), {name: next(values) for name in noises}
    return parameters, x, noise, next(values)


def _watched(function: Callable[..., list[Tensor]], inputs: list[Tensor]) -> fx.GraphModule:
    """Its operations as a graph, none of which writes into its arguments."""
    assert torch_private.make_fx is not None
    graph: fx.GraphModule = torch_private.make_fx(function)(*inputs)
    if any(is_mutable(node.target) for node in graph.graph.nodes):
        with torch.no_grad():
            graph = torch_private.make_fx(functionalize(graph))(*inputs)
    return graph


def clean(module: fx.GraphModule, inputs: list[Tensor], leaves: int = 0) -> fx.GraphModule:
    """Without operations that change nothing; with those of constants done once, and with views of the parameters
    (the first `leaves` inputs, which stay where they are) taken once."""
    graph = module.graph
    graph.eliminate_dead_code()
    values = Values(module)
    with torch.no_grad():
        values.run(*inputs)
    parameters = {node for node, _ in zip(graph.nodes, range(leaves), strict=False)}  # and views of them

    def replaced(node: fx.Node, other: fx.Node) -> fx.Node:
        node.replace_all_uses_with(other)
        graph.erase_node(node)
        return other

    def keep(node: fx.Node, value: Tensor) -> fx.Node:
        module.register_buffer(f"_kept_{node.name}", value)
        with graph.inserting_before(node):
            buffer = graph.get_attr(f"_kept_{node.name}")
        values.of[buffer] = value
        return replaced(node, buffer)

    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if changes_nothing(node, values.of):
            replaced(node, node.args[0])
        elif node.target in _VIEWS and node.args[0] in parameters:
            viewed = node.target(values.of[node.args[0]].detach(), *node.args[1:])  # of the parameter, not of a copy
            parameters.add(keep(node, viewed))
        elif is_constant(node, values.of, parameters):
            keep(node, values.of[node].clone())
    graph.eliminate_dead_code()
    return module


def by_torch(module: fx.GraphModule) -> fx.GraphModule:
    """A graph that runs as fast as torch can call it."""
    graph = module.graph
    for node in graph.nodes:
        if node.op == "call_function" and not node.kwargs:
            node.target = DIRECT.get(node.target, node.target)
    graph.set_codegen(fx.graph.CodeGen())  # arguments as they come: the list has no nested inputs
    module.recompile()
    return module


class Values(fx.Interpreter):
    """Runs a graph and keeps the value of every node."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.of: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.of[n] = super().run_node(n)
        return self.of[n]


def changes_nothing(node: fx.Node, of: Mapping[Any, Any]) -> bool:
    if node.target in IDENTITY:
        return True
    if node.target in SAME_SHAPE:
        return bool(of[node].shape == of[node.args[0]].shape)
    if node.target in (ATEN.mul.Scalar, ATEN.pow.Tensor_Scalar, ATEN.div.Scalar):
        return bool(node.args[1] == 1 and of[node].dtype == of[node.args[0]].dtype)
    return False


def is_constant(node: fx.Node, of: Mapping[fx.Node, Any], parameters: Container[fx.Node] = ()) -> bool:
    known = all(n.op == "get_attr" and n not in parameters for n in node.all_input_nodes)
    fixed = node.target in SHAPE_ONLY or known
    return fixed and isinstance(of[node], Tensor)


def agree(written: CompiledStep, forward: Forward, state: State, x: Tensor, noise: Mapping[str, Tensor]) -> bool:
    """Whether the list gives what the objective gives, on a batch and a step that it was not written on."""
    step, state.step = state.step, state.step + 1
    try:
        losses = written(state, x, noise)
        gradients = {name: stack.gradient.clone() for name, stack in state.stacks.items()}
        expected, _ = forward(state, x, noise, logging=False)
        forward.backward(state, expected)
    finally:
        state.step = step
    tolerance = RTOL[forward.dtype]
    return all(
        close(losses[n], expected[n].detach(), tolerance) and close(gradients[n], state.stacks[n].gradient, tolerance)
        for n in losses
    )


def close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    scale = b.abs().max().clamp_min(torch.finfo(b.dtype).tiny)
    return bool((a - b).abs().max() <= tolerance * scale)
