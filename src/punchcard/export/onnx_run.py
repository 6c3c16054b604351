"""One loop in ONNX becomes a run: the same nodes in the body of a Loop, which ends when every card shows a halting pattern.

    going = true for every card, made = 0
    Loop, at most `loops` times, while any card is going:
        card   = where(going, one loop of card, card)       a card that has halted stays as it is
        made   = made + going
        going  = going and not matches(card)

Patterns are looked for after every loop, as everywhere: a card that is punched may show one before its first loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

BATCH = "batch"


class Nodes:
    """Nodes in the order in which they are written, and the constants that they use."""

    def __init__(self, constants: dict[str, TensorProto], prefix: str) -> None:
        self.nodes: list[NodeProto] = []
        self.constants = constants
        self._prefix = prefix

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """One more node; the name of its output."""
        name = f"{self._prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], **attributes))
        return name

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> str:
        """A constant that the whole graph has once, whoever uses it."""
        array = np.asarray(value, dtype=dtype)
        name = f"constant_{array.dtype}_{'_'.join(map(str, array.ravel().tolist()))}_{array.ndim}"
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def matches(self, card: str, patterns: Sequence[dict[str, Any]], dtype: DTypeLike) -> str:
        """For each card whether it has one of the patterns."""
        first = self.add("Gather", self.add("Gather", card, self.constant(0, np.int64), axis=2),
                         self.constant(0, np.int64), axis=1)
        found = self.add("Less", first, first)  # nowhere
        for pattern in patterns:
            bits = [(pattern["rows"] + i, bit) for i, bit in enumerate(pattern["bits"]) if bit]
            column = self.add("Gather", card, self.constant(pattern["column"], np.int64), axis=2)
            entries = self.add("Gather", column, self.constant([row for row, _ in bits], np.int64), axis=1)
            off = self.add("Abs", self.add("Sub", entries, self.constant([bit for _, bit in bits], dtype)))
            near = self.add("Cast", self.add("Less", off, self.constant(0.5, dtype)), to=TensorProto.INT64)
            all_near = self.add("ReduceMin", near, self.constant([1], np.int64), keepdims=0)
            found = self.add("Or", found, self.add("Cast", all_near, to=TensorProto.BOOL))
        return found

    def any_of(self, cards: str) -> str:
        """Whether one of the batch is true."""
        most = self.add("ReduceMax", self.add("Cast", cards, to=TensorProto.INT64), keepdims=0)
        return self.add("Cast", most, to=TensorProto.BOOL)


def run_of(loop: ModelProto, patterns: Sequence[dict[str, Any]]) -> ModelProto:
    """The run of a model that makes one loop, `card` to `next`: `card` and `loops` to `last` and `made`."""
    graph = loop.graph
    kind = graph.input[0].type.tensor_type.elem_type
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    shape = [dim.dim_param or dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim]
    constants: dict[str, TensorProto] = {}

    body = Nodes(constants, "in_loop_")
    batch = body.add("Unsqueeze", body.add("Unsqueeze", "going", body.constant([1], np.int64)), body.constant([2], np.int64))
    after = body.add("Where", batch, "next", "now")
    counted = body.add("Add", "counts", body.add("Cast", "going", to=TensorProto.INT64))
    going = body.add("And", "going", body.add("Not", body.matches(after, patterns, dtype)))
    goes_on = body.any_of(going)
    inside = helper.make_graph(
        [*(_with_input(node, "card", "now") for node in graph.node), *body.nodes], "one_loop",
        [_value("iteration", TensorProto.INT64, []), _value("before", TensorProto.BOOL, []),
         _value("now", kind, shape), _value("going", TensorProto.BOOL, [BATCH]),
         _value("counts", TensorProto.INT64, [BATCH])],
        [_value(goes_on, TensorProto.BOOL, []), _value(after, kind, shape), _value(going, TensorProto.BOOL, [BATCH]),
         _value(counted, TensorProto.INT64, [BATCH])])

    outer = Nodes(constants, "first_")
    batch_size = outer.add("Shape", "card", start=0, end=1)
    begun = outer.add("Expand", outer.constant(True, np.bool_), batch_size)
    none = outer.add("Expand", outer.constant(0, np.int64), batch_size)
    always = outer.constant(True, np.bool_)
    outer.nodes.append(helper.make_node("Loop", ["loops", always, "card", begun, none], ["last", "still_going", "made"],
                                        body=inside))
    whole = helper.make_graph(
        outer.nodes, "run",
        [_value("card", kind, shape), _value("loops", TensorProto.INT64, [])],
        [_value("last", kind, shape), _value("made", TensorProto.INT64, [BATCH])],
        [*graph.initializer, *constants.values()])
    made = helper.make_model(whole, opset_imports=loop.opset_import, ir_version=loop.ir_version)
    made.functions.extend(loop.functions)
    checker.check_model(made, full_check=True)
    return made


def _with_input(node: NodeProto, name: str, other: str) -> NodeProto:
    """The node with one of its inputs under another name: a body may not use a name of the graph around it for its own."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [other if given == name else given for given in node.input]
    return copy


def _value(name: str, kind: int, shape: Sequence[str | int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
