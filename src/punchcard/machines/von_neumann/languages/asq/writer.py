"""Writer of `.asq` text: of an image, which is disassembled, and of items that a compiler made.

The text of an image assembles to the same words.
What is code is found by following the program from address 0, as far as it can be followed without running it; the rest is
data. A program that writes its own jumps may hide code from this: it is then shown as data, with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq.items import (
    MADE,
    Cell,
    CellRun,
    Expression,
    Item,
    Label,
    MacroCall,
    Pool,
    Summand,
    name,
    number,
)

PORT = -1
INSTRUCTION = 3
DATA_ON_A_LINE = 8
SHORTEST_STRING = 4
_PRINTABLE = re.compile(rb"[ -~\n]{%d,}" % SHORTEST_STRING)


def disassemble(image: Image) -> str:
    """The text of an image."""
    words = image.words
    starts = _instructions(words)
    own = {address: name for name, address in image.labels.items() if name.isidentifier()}
    taken = set(own.values())
    invented = {address: name + "_" * (name in taken) for address, name in _labels(words, starts).items()}
    labels = invented | own
    indent = max((len(name) for name in labels.values()), default=0) + 2
    lines: list[str] = []
    address = 0
    while address < len(words):
        if address in starts:
            prefix = f"{labels[address]}:" if address in labels else ""
            lines.append(f"{prefix:<{indent}}{write_statement(_instruction(words, address, labels))}")
            address += INSTRUCTION
        else:
            end = next((place for place in range(address + 1, len(words)) if place in starts), len(words))
            lines += [f"{'':<{indent}}. {' '.join(row)}" for row in _rows(_labelled([*_data(words, address, end, labels)]))]
            address = end
    return "\n".join([*lines, ""])


def _instructions(words: tuple[int, ...]) -> set[int]:
    """Addresses of instructions that can be reached; of two that overlap, the one found first."""
    found: set[int] = set()
    taken: set[int] = set()
    waiting = [0]
    while waiting:
        address = waiting.pop()
        cells = range(address, address + INSTRUCTION)
        if address < 0 or cells.stop > len(words) or not taken.isdisjoint(cells):
            continue
        found.add(address)
        taken.update(cells)
        a, b, c = words[address : cells.stop]
        always = a == b  # the difference is 0
        if PORT in (a, b):
            waiting.append(cells.stop)
        else:
            waiting += [c] if always else [c, cells.stop]
    return found


def _labels(words: tuple[int, ...], starts: set[int]) -> dict[int, str]:
    """Names for the cells that instructions use, the targets of jumps first."""
    targets: set[int] = set()
    cells: set[int] = set()
    for address in starts:
        a, b, c = words[address : address + INSTRUCTION]
        cells |= {a, b}
        if c != address + INSTRUCTION:
            targets.add(c)
    known = range(len(words))
    return {address: f"L{address}" if address in starts and address in targets else f"m{address}"
            for address in sorted(cells | targets) if address in known}


def _instruction(words: tuple[int, ...], address: int, labels: dict[int, str]) -> list[Item]:
    """Three cells; the jump to the next instruction is left out, unless it has a label in the text."""
    items: list[Item] = []
    for place, word in enumerate(words[address : address + INSTRUCTION], start=address):
        if place in labels and place > address:
            items.append(Label(MADE, labels[place]))
        goes_on = place == address + 2 and word == place + 1 and place not in labels
        next_cell = (Summand(1, "next", MADE),)
        items.append(Cell(next_cell if goes_on else name(labels[word]) if word in labels else number(word), MADE))
    return items


def _data(words: tuple[int, ...], start: int, end: int, labels: dict[int, str]) -> Iterator[Item]:
    """Data cells with their labels; characters in a row as a string."""
    bounds = [start, *(address for address in range(start + 1, end) if address in labels), end]
    for first, last in pairwise(bounds):
        if first in labels:
            yield Label(MADE, labels[first])
        codes, place = bytes(word if 0 <= word < 128 else 0 for word in words[first:last]), first
        for text in _PRINTABLE.finditer(codes):
            yield from (Cell(number(word), MADE) for word in words[place : first + text.start()])
            yield CellRun(MADE, len(text.group()), text.group())
            place = first + text.end()
        yield from (Cell(number(word), MADE) for word in words[place:last])


def _rows(cells: Sequence[str]) -> Iterator[list[str]]:
    """Data lines: a labelled cell and a string begin one."""
    row: list[str] = []
    for cell in cells:
        if row and (len(row) == DATA_ON_A_LINE or ":" in cell or '"' in cell or '"' in row[-1]):
            yield row
            row = []
        row.append(cell)
    if row:
        yield row


# Items as text

def write_statement(items: Sequence[Item]) -> str:
    """An instruction, with the labels of its operands, a use of a macro, or @pool."""
    (first, *_) = items
    if isinstance(first, Pool):
        return "@pool"
    if isinstance(first, MacroCall):
        return " ".join([f"@{first.name}", *map(_operand, first.operands)])
    cells = [item.expression for item in items if isinstance(item, Cell)]
    count = INSTRUCTION
    if [term.kind for term in cells[2]] == ["next"]:
        count = 1 if cells[0] == cells[1] and len(items) == INSTRUCTION else 2
    return " ".join(_labelled(items)[:count])


def write_data(items: Sequence[Item]) -> str:
    """A data line."""
    return " ".join([".", *_labelled(items)])


def _labelled(items: Sequence[Item]) -> list[str]:
    """Cells with their labels before them."""
    found: list[str] = []
    labels = ""
    for item in items:
        if isinstance(item, Label):
            labels += f"{item.name}:"
        else:
            found.append(labels + _cell(item))
            labels = ""
    return [*found, labels] if labels else found


def _cell(item: Item) -> str:
    if isinstance(item, CellRun):
        return _characters(item.codes) if item.codes else f"[{item.count}]"
    assert isinstance(item, Cell)
    return _operand(item.expression)


def _operand(expression: Expression) -> str:
    """A sum as an operand; parentheses keep a minus apart from the operand before it."""
    text = _sum(expression)
    return f"({text})" if text.startswith("-") else text


def _sum(expression: Expression) -> str:
    parts = []
    for term in expression:
        if term.kind == "number":
            parts.append(f"{term.factor * term.number:+d}")
        else:
            text = {"next": "?", "constant": f"={_sum(term.constant)}" if term.constant else ""}.get(term.kind, term.name)
            parts += [("+" if term.factor > 0 else "-") + text] * abs(term.factor)
    return "".join(parts).removeprefix("+")


def _characters(codes: bytes) -> str:
    """Bytes as cells of a data line: strings where they can be, numbers where not."""
    parts: list[str] = []
    for byte in codes:
        char = chr(byte)
        safe = 32 <= byte < 127 and char not in '"\\'
        written = char if safe else {"\n": "\\n", '"': '\\"', "\\": "\\\\"}.get(char)
        if written is None:
            parts.append(str(byte))
        elif parts and parts[-1].startswith('"'):
            parts[-1] = parts[-1][:-1] + written + '"'
        else:
            parts.append(f'"{written}"')
    return " ".join(parts)
