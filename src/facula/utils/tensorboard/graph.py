"""What a model computes, as the GraphDef message that TensorBoard draws.

The model runs once. A mode sees every function that is called on tensors, hooks tell in which
module, and tensors are known by their identity; so the graph has the calls as they were made.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import facula
from facula.overrides import TorchFunctionMode, resolve_name
from facula.utils import _pytree as pytree
from facula.utils.tensorboard import wire

# TensorFlow's messages: NodeDef, AttrValue, TensorShapeProto
_NAME, _OP, _INPUT, _ATTRIBUTE = 1, 2, 3, 5
_LIST, _TEXT, _SHAPES = 1, 2, 7


def _shapes(tensors: list[facula.Tensor]) -> bytes:
    shapes = b""
    for t in tensors:
        sizes = b"".join(wire.data(2, wire.integer(1, n)) for n in t.shape)
        shapes += wire.data(_SHAPES, sizes)
    return wire.data(_LIST, shapes)


def _node(name: str, op: str, inputs: list[str], attributes: dict[str, bytes]) -> bytes:
    content = wire.data(_NAME, name) + wire.data(_OP, op)
    content += b"".join(wire.data(_INPUT, i) for i in inputs)
    for key, value in attributes.items():
        content += wire.data(_ATTRIBUTE, wire.data(1, key) + wire.data(2, value))
    return wire.data(1, content)


def _tensors_in(tree: Any) -> list[facula.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, facula.Tensor)]


class _Recorder(TorchFunctionMode):
    """Collects the nodes while a model runs."""

    def __init__(self, model: Any) -> None:
        self.nodes: list[bytes] = []
        self.lines: list[str] = []
        self.scopes = [type(model).__name__]
        self.producer: dict[int, str] = {}  # id of a tensor -> the node that gave it
        self.alive: list[facula.Tensor] = []  # so that no id is given a second time
        self.names: Counter[str] = Counter()
        self.parameters: dict[int, tuple[str, str, facula.Tensor]] = {}
        self._name_parameters(model, self.scopes[0])

    def _name_parameters(self, module: Any, scope: str) -> None:
        for kind, found in (("Parameter", module._parameters), ("Buffer", module._buffers)):
            for name, t in found.items():
                if t is not None:
                    self.parameters.setdefault(id(t), (f"{scope}/{name}", kind, t))
        for name, child in module.named_children():
            self._name_parameters(child, f"{scope}/{type(child).__name__}[{name}]")

    def add(
        self, name: str, op: str, inputs: list[str], outputs: list[facula.Tensor], note: str = ""
    ) -> str:
        self.names[name] += 1
        if self.names[name] > 1:
            name = f"{name}_{self.names[name] - 1}"
        attributes = {"_output_shapes": _shapes(outputs)}
        if note:
            attributes["attr"] = wire.data(_TEXT, note)
        self.nodes.append(_node(name, op, inputs, attributes))
        self.lines.append(f"{name}: {op}({', '.join(inputs)})")
        for i, t in enumerate(outputs):
            self.producer[id(t)] = f"{name}:{i}" if i else name
            self.alive.append(t)
        return name

    def source(self, t: facula.Tensor) -> str:
        """The node of a tensor; one that nothing computed gets a node of its own."""
        if id(t) not in self.producer:
            name, kind, _ = self.parameters.get(id(t), (f"{self.scopes[-1]}/constant", "Const", t))
            self.add(name, kind, [], [t])
        return self.producer[id(t)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        outputs = _tensors_in(result)
        name = getattr(func, "__name__", "call")
        if outputs and name != "__get__":
            full = (resolve_name(func) or name).removeprefix("facula.")
            others = [
                a if isinstance(a, (bool, int, float, str)) else None
                for a in pytree.tree_leaves((args, kwargs))
                if not isinstance(a, facula.Tensor)
            ]
            inputs = [self.source(t) for t in _tensors_in((args, kwargs))]
            note = ", ".join(str(o) for o in others if o is not None)
            self.add(f"{self.scopes[-1]}/{name}", full, inputs, outputs, note)
        return result


def graph_of(model: Any, input_to_model: Any) -> tuple[bytes, list[str]]:
    """The GraphDef message of ``model(*input_to_model)``, and a line for each node."""
    arguments = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
    recorder = _Recorder(model)
    for i, t in enumerate(_tensors_in(list(arguments))):
        recorder.add(f"input/{i}", "IO Node", [], [t])

    handles = []

    def watch(module: Any) -> None:
        for name, child in module.named_children():
            watch(child)

            def enter(*_: Any, part: str = f"{type(child).__name__}[{name}]") -> None:
                recorder.scopes.append(f"{recorder.scopes[-1]}/{part}")

            def leave(*_: Any) -> None:
                recorder.scopes.pop()

            handles.append(child.register_forward_pre_hook(enter))
            handles.append(child.register_forward_hook(leave, always_call=True))

    watch(model)
    try:
        with facula.no_grad(), recorder:
            result = model(*arguments)
    finally:
        for handle in handles:
            handle.remove()
    for i, t in enumerate(_tensors_in(result)):
        recorder.add(f"output/{i}", "IO Node", [recorder.source(t)], [t])
    return b"".join(recorder.nodes) + wire.data(4, wire.integer(1, 22)), recorder.lines
