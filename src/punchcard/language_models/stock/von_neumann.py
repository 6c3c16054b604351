"""SUBLEQ with one memory as a decoder over bits, with input and output as tokens: see `image_language` for the text.

    layer 1   the latest label: the program counter, and 1, 2 and 3 more.   the latest count of characters read, and 1 more.
              the token before: the address of a value, a place of the input, whether this line reads
    layer 2   two words of the instruction: b and a after a label, b after a count, a and c after an address, a after `>`
    layer 3   the latest value at the operand, or the character that is read; the latest value at this token's address;
              from the token before: c, and whether this line reads
              feed-forward: b, or a count, or `>`;  mem[b] - mem[a], or what was read;  the character;  c or the next label
    layer 4   where words are long: the high bits of the difference

c is fetched at the address, before the value is there: an instruction that stores to its own words was fetched whole.
"""

from __future__ import annotations

import numpy as np

from punchcard.card.layout import Layout
from punchcard.language_models.stock.decoder import (
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
from punchcard.language_models.stock.formulas import Conditions, chunks, difference_layers, set_bits
from punchcard.language_models.stock.image_language import VonNeumannText
from punchcard.language_models.stock.positions import Positions
from punchcard.transformer.build import assign
from punchcard.transformer.expression import Array, rows, stack

FAMILIES = ("label", "address", "number", "write", "character", "count", "place", "halt")


def decoder(sizes: VonNeumannText, positions: Positions) -> StockDecoder:
    """The decoder of these sizes."""
    n = sizes.word_bits
    layout = stream_layout({
        "never": 1, **dict.fromkeys(FAMILIES, 1), "asks": 1, "ends": 1, "low": 1,             # what the token is
        "own": n, "own1": n, "own2": n, "own3": n,
        "pc": n, "pc1": n, "pc2": n, "pc3": n, "next": n, "key": n, "value": 1, "input": 1, "reads": 1,    # layer 1
        "pointer": n, "also": n, "operand": n, "second": n, "source": n, "port": 1, "asked": 1,            # layer 2
        "x": n, "y": n, "jump": n, "did": 1, "stop": 1, "carry": max(1, len(chunks(n)) - 1), "out": n,
    }, positions.blocks(), positions.count)
    one, never, label, address, number, write, character, count, place, low = (
        rows(layout, name) for name in ("one", "never", *FAMILIES[:7], "low"))
    own, key, value, given, reads = (rows(layout, name) for name in ("own", "key", "value", "input", "reads"))
    pc, pc1, pc2, pc3, operand, second = (rows(layout, name) for name in ("pc", "pc1", "pc2", "pc3", "operand", "second"))
    x, jump, did, port, asked = (rows(layout, name) for name in ("x", "jump", "did", "port", "asked"))
    conditions = Conditions(layout)
    holds, truth, chosen = conditions.holds, conditions.truth, conditions.chosen
    cell = stack(one, never)
    """A value of the memory, not of the input."""
    stored = stack(value, given)
    layers = [
        DecoderLayer(
            (ContextHead(rows(layout, "own", "own1", "own2", "own3"), rows(layout, "pc", "pc1", "pc2", "pc3"), query=one,
                         key=label),
             ContextHead(rows(layout, "own1"), rows(layout, "next"), query=one, key=count),
             ContextHead(stack(own, address, place, count), rows(layout, "key", "value", "input", "reads"), back=1)),
            assign(value, truth(holds(number, value), holds(number, given, false=(value,))))
            + assign(given, truth(holds(number, given)))
            + set_bits(rows(layout, "pointer"), chosen((pc1, holds(label)), (pc1, holds(count)), (pc, holds(address)),
                                                       (pc, holds(write))))
            + set_bits(rows(layout, "also"), chosen((pc, holds(label)), (pc2, holds(address))))),
        DecoderLayer(
            (ContextHead(own, operand, query=stack(rows(layout, "pointer"), cell), key=stack(key, stored)),
             ContextHead(own, second, query=stack(rows(layout, "also"), cell), key=stack(key, stored))),
            assign(port, truth(holds(operand))) + assign(asked, truth(holds(label, second)))
            + set_bits(rows(layout, "source"), chosen((operand, holds(false=(reads,))), (key, holds(reads))))),
    ]
    branches = (number, low)
    following = chosen((operand, holds(label, false=(asked,))), (rows(layout, "next"), holds(label, asked)),
                       (operand, holds(count)), (x, holds(address, reads)), (x, holds(write)),
                       (jump, holds(*branches, false=(did,))), (pc3, holds(*branches, did)),
                       (pc3, holds(number, false=(low,))), (pc3, holds(character)))
    values = (ContextHead(own, x, query=stack(rows(layout, "source"), one, reads), key=stack(key, stored)),
              ContextHead(own, rows(layout, "y"), query=stack(own, cell), key=stack(key, stored)),
              ContextHead(stack(second, reads), rows(layout, "jump", "did"), back=1))
    stop = set_bits(rows(layout, "stop"), chosen((jump[-1], holds(*branches, false=(did,)))))
    layers += difference_layers(layout, n, holds(address, false=(reads,)), following, values, stop)
    tokens = families((sizes.memory, sizes.memory, 1 << n, 1, 256, sizes.inputs + 2, sizes.inputs + 1, 1))
    return StockDecoder(layout, sizes.vocabulary(), len(tokens.family) - 1, _embedding(sizes, layout, positions, tokens),
                   tuple(layers), _readout(sizes, layout, tokens))


def _embedding(sizes: VonNeumannText, layout: Layout, positions: Positions, tokens: Tokens) -> Array:
    """A count k has k - 1 as its own bits: the place of the character that was read last."""
    family, number = tokens
    n, is_count = sizes.word_bits, family == FAMILIES.index("count")
    signed = number - (number >> n - 1 << n)
    return embedding(layout, positions.blocks(), {
        **{name: family == i for i, name in enumerate(FAMILIES)},
        "asks": np.isin(family, [0, 5]), "ends": np.isin(family, [2, 4]), "low": signed <= 0,
        "own": number_bits(number - is_count, n), **{f"own{k}": number_bits(number + k, n) for k in (1, 2, 3)}})


def _readout(sizes: VonNeumannText, layout: Layout, tokens: Tokens) -> Array:
    """A token of the right family leads. After a label or a count: a count where the line reads, else `>` where b is the
    port, else an address. After a number or a character: `halt` where the next label is negative, else a label."""
    n = sizes.word_bits
    lead = 10 * n + 16
    return readout(layout, tokens, 2 * n + 2, [
        Follower("ends", lead, n, {"stop": -1}), Follower("asks", lead, n, {"asked": -1, "port": -1}),
        Follower("address", lead, n), Follower("asks", lead, 0, {"asked": -1, "port": 1}), Follower("write", lead, 8),
        Follower("label", lead, n, {"asked": 1}), Follower("one", -lead, n), Follower("ends", lead, 0, {"stop": 1})])
