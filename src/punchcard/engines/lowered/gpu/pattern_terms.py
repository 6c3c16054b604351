"""The patterns at which a kernel stops: what the table for the driver says in bytes of a card's buffer, by name."""

from __future__ import annotations

from collections.abc import Sequence

from punchcard.card.layout import Pattern
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu.kernel import PatternTerm
from punchcard.engines.lowered.pattern_table import pattern_table


def pattern_terms(compiled_model: CompiledModel, patterns: Sequence[Pattern]) -> list[list[PatternTerm]]:
    """For each pattern all that it looks at."""
    found = []
    for pattern in patterns:
        _, _, _, _, words, numbers, _, _, _, *rest = pattern_table(compiled_model, [pattern]).tolist()
        bits = [_place(compiled_model, at, mask % (1 << 64), wanted % (1 << 64))
                for at, mask, wanted in zip(*(rest[i : 3 * words : 3] for i in range(3)), strict=True)]
        signs = [_place(compiled_model, at, 0, sign) for at, sign in zip(
            rest[3 * words : 3 * words + 2 * numbers : 2], rest[3 * words + 1 :: 2], strict=True)]
        found.append(bits + signs)
    return found


def _place(compiled_model: CompiledModel, at: int, mask: int, wanted: int) -> PatternTerm:
    places, real = compiled_model.places, compiled_model.places.fields.real
    for word, start in places.words.items():
        if at == start:
            return PatternTerm(state=word, mask=mask, wanted=wanted)
    for slot, start in places.slots.items():
        if start <= at < start + slot.width * real:
            return PatternTerm(slot=(slot, (at - start) // real), wanted=wanted)
    for field in places.fields.all:
        column, within = divmod(at - places.arrays[field.block], field.stride)
        row = 0 if field.bits else within // field.item
        if 0 <= column < places.columns and field.offset <= within < field.offset + field.item * (1 + row):
            return PatternTerm(field=field, column=column, row=row, mask=mask, wanted=wanted)
    return PatternTerm()
