"""SUBLEQ as a decoder over bits. The text is a program, and then its trace: see `language`.

A token is a label `0:`, an address `@1`, a number or `halt`. A prompt is instructions and cells in any order, then the label
of the first instruction. Of two that say the same thing the later counts. After a label comes the address that it writes to,
after an address the value, after a value the next label; after the label of a halt comes `halt`, which ends the text.

    layer 1   the latest label: the program counter, and the one after it.   1, 2 and 3 places back: what this token is,
              a value, or operand a, b or c of an instruction
    layer 2   of the instruction at the program counter: b after a label, a after an address, c after a value
    layer 3   the latest value of the cell in that operand, and of the cell that this token names
              feed-forward: b;  mem[b] - mem[a];  c where the value is at most 0, else the next instruction
    layer 4   where words are long: the high bits of the difference
"""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.language_models.stock.decoder import (
    NOTHING,
    ContextHead,
    DecoderLayer,
    Follower,
    StockDecoder,
    Tokens,
    embedding,
    families,
    number_bits,
    readout,
    stream_layout,
)
from punchcard.language_models.stock.formulas import Conditions, chunks, difference_layers
from punchcard.language_models.stock.language import SubleqText
from punchcard.language_models.stock.positions import Positions
from punchcard.transformer.build import assign
from punchcard.transformer.expression import Array, rows, stack

FAMILIES = ("label", "address", "number", "halt")


def decoder(sizes: SubleqText, positions: Positions) -> StockDecoder:
    """The decoder of these sizes."""
    n = sizes.word_bits
    layout = stream_layout({
        **dict.fromkeys(FAMILIES, 1), "own": n, "next": n, "low": 1,                       # what the token is
        "pc": n, "following": n, "key": n, "value": 1, "a": 1, "b": 1, "c": 1,             # layer 1
        "operand": n, "stop": 1, "x": n, "y": n, "carry": max(1, len(chunks(n)) - 1), "out": n,
    }, positions.blocks(), positions.count)
    one, label, address, number, halt, own, value, key = (
        rows(layout, name) for name in ("one", "label", "address", "number", "halt", "own", "value", "key"))
    a, b, c, pc, operand = (rows(layout, name) for name in ("a", "b", "c", "pc", "operand"))

    conditions = Conditions(layout)
    holds, truth = conditions.holds, conditions.truth
    layers = [
        DecoderLayer(
            (ContextHead(stack(own, rows(layout, "next")), rows(layout, "pc", "following"), query=one, key=label),
             ContextHead(stack(own, address, label), rows(layout, "key", "value", "a"), back=1),
             ContextHead(label, b, back=2), ContextHead(label, c, back=3)),
            assign(value, truth(holds(value, number))) + assign(a, truth(holds(a, number)))
            + assign(b, truth(holds(b, number, false=(a, value)), holds(halt)))
            + assign(c, truth(holds(c, number, false=(a, b, value))))),
        DecoderLayer((ContextHead(stack(own, halt), rows(layout, "operand", "stop"), query=stack(pc, label, address, number),
                                  key=stack(pc, b, a, c)),)),
    ]
    low = rows(layout, "low")
    values = (ContextHead(own, rows(layout, "x"), query=stack(operand, one), key=stack(key, value)),
              ContextHead(own, rows(layout, "y"), query=stack(own, one), key=stack(key, value)))
    chosen = conditions.chosen((operand, holds(label)), (operand, holds(number, low)),
                               (rows(layout, "following"), holds(number, false=(low,))))
    layers += difference_layers(layout, n, holds(address), chosen, values, NOTHING)
    tokens = families((sizes.instructions, sizes.memory, 1 << n, 1))
    return StockDecoder(layout, sizes.vocabulary(), len(tokens.family) - 1, _embedding(layout, positions, n, tokens),
                   tuple(layers), _readout(layout, n, tokens))


def _embedding(layout: Layout, positions: Positions, n: int, tokens: Tokens) -> Array:
    family, number = tokens
    signed = number - (number >> n - 1 << n)
    return embedding(layout, positions.blocks(), {
        **{name: family == i for i, name in enumerate(FAMILIES)},
        "own": number_bits(number, n), "next": number_bits(number + 1, n), "low": signed <= 0})


def _readout(layout: Layout, n: int, tokens: Tokens) -> Array:
    """After a value a label, after a label an address, or `halt` where the instruction is one, after an address a value."""
    lead = 2 * n + 4
    return readout(layout, tokens, 2 * n + 2, [
        Follower("number", lead, n), Follower("label", lead, n, {"stop": -1}), Follower("address", lead, n),
        Follower("label", lead, 0, {"stop": 1})])
