"""SUBLEQ with words of several bytes as a decoder over bits: see `byte_language` for the text.

    layer 1   the latest label: the program counter, and the one after it.   the latest address.   1, 2 and 3 places back:
              which operand this token is, and whether the bytes before are 0
    layer 2   of the instruction at the program counter: b after a label, a after an address or a byte, c after the last byte
    layer 3   the latest byte of the next place, x of the cell in that operand and y of the cell that is written
    layer 4   x and y of the byte that was written last; feed-forward: the carry out of it
    layer 5   feed-forward: y - x with that carry;  b;  c where the value is at most 0, else the next instruction

A carry need not be kept. With the byte r that was written, y + not x + carry in = r + 256 carry out, so that y + not x - r
is -1 or 0 without a carry out, and 255 or 256 with one: a step at 128 tells them apart. y and x of that byte are asked of
the column before, since the cell itself has the new byte already.
"""

from __future__ import annotations

import numpy as np

from punchcard.card.layout import Layout
from punchcard.language_models.stock.byte_language import BYTE, SubleqByteText
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
from punchcard.language_models.stock.formulas import Conditions, set_bits
from punchcard.language_models.stock.positions import Positions
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import sum_where
from punchcard.primitives.literals import as_numbers, conjunction, step_where
from punchcard.transformer.build import assign
from punchcard.transformer.expression import Array, rows, stack

HALF = 1 << BYTE - 1
LABEL, ADDRESS, OPERANDS, FIRST_BYTE = range(4)
"""Families of tokens; one for the bytes of each place follows, and the last is `halt`."""


def decoder(sizes: SubleqByteText, positions: Positions) -> StockDecoder:
    """The decoder of these sizes."""
    k, n, m = sizes.places, pointer_size(sizes), (sizes.places - 1).bit_length()
    before = [f"zero{i}" for i in range(1, k)]
    layout = stream_layout({
        "label": 1, "address": 1, "operand": 1, "byte": 1, "middle": 1, "last": 1, "halt": 1,            # what the token is
        "own": n, "next": n, "zero": 1, "sign": 1, "place": m, "want": m, "asks": 1, **{f"then{i}": 1 for i in range(k)},
        "pc": n, "following": n, "cell": n, "a": 1, "b": 1, "c": 1, **dict.fromkeys(before, 1), "low": 1,    # layer 1
        "pointer": n, "stop": 1, "x": BYTE, "y": BYTE, "old_x": BYTE, "old_y": BYTE, "carry": 1, "out": n,   # later
    }, positions.blocks(), positions.count)
    one, label, address, operand, byte, middle, last, halt, own, zero = (rows(layout, name) for name in (
        "one", "label", "address", "operand", "byte", "middle", "last", "halt", "own", "zero"))
    a, b, c, pc, low, cell, pointer = (rows(layout, name) for name in ("a", "b", "c", "pc", "low", "cell", "pointer"))
    x, y, old_x, old_y, carry, out, asks = (
        rows(layout, name) for name in ("x", "y", "old_x", "old_y", "carry", "out", "asks"))
    conditions = Conditions(layout)
    holds, truth = conditions.holds, conditions.truth
    stored, want = stack(cell, rows(layout, "place"), byte), rows(layout, "want")
    zeros = [rows(layout, name) for name in before]
    backs = [ContextHead(stack(label, zero), rows(layout, name, f"zero{i}"), back=i) if i < k
             else ContextHead(label, rows(layout, name), back=i) for i, name in enumerate("abc", start=1)]
    total = number(old_y, one) + number(-old_x, one) - number(own[:BYTE], one)
    chosen = conditions.chosen((pointer, holds(label)), (pointer, holds(last, low)),
                               (rows(layout, "following"), holds(last, false=(low,))))
    answer = set_bits(out[:BYTE], sum_where(y, -x, as_numbers(carry, one), holds(asks), one) + chosen[:BYTE])
    layers = [
        DecoderLayer(
            (ContextHead(stack(own, rows(layout, "next")), rows(layout, "pc", "following"), query=one, key=label),
             ContextHead(own, cell, query=one, key=address), *backs),
            assign(a, truth(holds(a, operand)))
            + assign(b, truth(holds(b, operand, false=(a,)), holds(halt)))    # the first columns find nearer ones
            + assign(c, truth(holds(c, operand, false=(a, b))))
            + set_bits(low, conjunction(holds(last, rows(layout, "sign")), one)
                       + conjunction(holds(last, zero, *zeros, false=(rows(layout, "sign"),)), one))),
        DecoderLayer((ContextHead(stack(own, halt), rows(layout, "pointer", "stop"), query=stack(pc, label, asks, last),
                                  key=stack(pc, b, a, c)),)),
        DecoderLayer((ContextHead(own[:BYTE], x, query=stack(pointer, want, one), key=stored),
                      ContextHead(own[:BYTE], y, query=stack(cell, want, one), key=stored))),
        DecoderLayer(
            (ContextHead(stack(x, y), rows(layout, "old_x", "old_y"), back=1),),
            set_bits(carry, conjunction(holds(address), one)
                     + step_where(total - HALF * one, holds(middle), one, 2 * (1 << BYTE)))),
        DecoderLayer(formulas=answer + set_bits(out[BYTE:], chosen[BYTE:]) if n > BYTE else answer),
    ]
    tokens = families((sizes.instructions, sizes.memory, sizes.operands, *[1 << BYTE] * k, 1))
    return StockDecoder(layout, sizes.vocabulary(), len(tokens.family) - 1, _embedding(sizes, layout, positions, m, tokens),
                   tuple(layers), _readout(sizes, layout, tokens))


def pointer_size(sizes: SubleqByteText) -> int:
    """Bits of labels, addresses and operands, at least those of a byte."""
    return max(BYTE, sizes.operands.bit_length())


def _embedding(sizes: SubleqByteText, layout: Layout, positions: Positions, m: int, tokens: Tokens) -> Array:
    (family, numbers), n = tokens, pointer_size(sizes)
    k, place = sizes.places, family - FIRST_BYTE
    is_byte, is_last = (place >= 0) & (place < k), place == k - 1
    is_address = family == ADDRESS
    middle = is_byte & ~is_last
    return embedding(layout, positions.blocks(), {
        "label": family == LABEL, "address": is_address, "operand": family == OPERANDS, "byte": is_byte,
        "middle": middle, "last": is_last, "halt": place == k, "zero": is_byte & (numbers == 0),
        "sign": is_last & (numbers >= HALF), "asks": is_address | middle,
        **{f"then{i}": is_address if i == 0 else place == i - 1 for i in range(k)},
        "own": number_bits(numbers, n), "next": number_bits(numbers + 1, n),
        "place": number_bits(np.where(is_byte, place, 0), m), "want": number_bits(np.where(middle, place + 1, 0), m)})


def _readout(sizes: SubleqByteText, layout: Layout, tokens: Tokens) -> Array:
    """As with short words; a value is a byte for each place. Operands are in prompts only."""
    n = pointer_size(sizes)
    lead = 2 * n + 4
    return readout(layout, tokens, 2 * n + 2, [
        Follower("last", lead, n), Follower("label", lead, n, {"stop": -1}), Follower("one", -(10 * n + 16), n),
        *(Follower(f"then{i}", lead, BYTE) for i in range(sizes.places)), Follower("label", lead, 0, {"stop": 1})])
