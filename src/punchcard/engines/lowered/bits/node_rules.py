"""Rules that say which function of bits a node is, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchcard.engines.lowered.bits.table import BitTable, bit_table, combine, constant_table, exact, scaled
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.nodes import Node
from punchcard.engines.lowered.rules import RuleTable

if TYPE_CHECKING:
    from punchcard.engines.lowered.bits.functions import BitFunctions

NODES: RuleTable[[BitFunctions, Node], BitTable] = RuleTable("nodes as functions of bits")
"""A node of width 1 as a function of few bits."""


@NODES
def tabulate_constant(functions: BitFunctions, node: Node) -> BitTable | None:
    """A constant depends on no bit."""
    return constant_table(exact(float(node.data[0]))) if node.op is op.CONSTANT else None


@NODES
def take_row(functions: BitFunctions, node: Node) -> BitTable | None:
    """A row of the card that holds ±1 is a bit of the word in which it is stored."""
    return functions.leaf(node) if node.op in (op.STATE, op.GATHER, op.LOAD) else None


@NODES
def take_given(functions: BitFunctions, node: Node) -> BitTable | None:
    """A value that an active column passes to a passive one is the function of bits that it is in the active column."""
    return functions.given.get(node) if node.op is op.GIVEN else None


@NODES
def compare_codes(functions: BitFunctions, node: Node) -> BitTable | None:
    """Two codes agree where the words of their bits are equal."""
    if node.op is not op.MATCH:
        return None
    equal = functions.agreement(functions.words.equal(*map(functions.code, node.args)))
    return bit_table(functions.words.bit(equal), 0, exact(float(node.data[0])))


@NODES
def take_checked_bit(functions: BitFunctions, node: Node) -> BitTable | None:
    """A row that is checked to be ±1 is a bit of the word into which its block is packed."""
    return functions.checked_bit(node) if node.op is op.BITS else None


@NODES
def multiply_tables(functions: BitFunctions, node: Node) -> BitTable | None:
    """A product of functions of few bits: the product for all settings."""
    if node.op is not op.MUL:
        return None
    x, y = map(functions.table, node.args)
    return None if x is None or y is None else combine(scaled, x, y)


@NODES
def add_tables(functions: BitFunctions, node: Node) -> BitTable | None:
    """A sum or ReLU of functions of few bits, or of one integer with steps: see `BitFunctions.sum_of`."""
    return functions.sum_of(node) if node.op in (op.FMA, op.SAME, op.RELU) else None
