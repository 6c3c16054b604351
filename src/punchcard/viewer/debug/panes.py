"""The parts of the debugger's screen as coloured text. Signs differ by their letter too, not by colour alone."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from rich.style import Style
from rich.text import Text

from punchcard.errors import printable
from punchcard.viewer.colours import ABOVE, BELOW, CHANGED, shade
from punchcard.viewer.debug.debugger import Debugger

NAME = 16
"""Letters of a column's name beside its strip."""
PLUS, MINUS, NOTHING = "1", "0", "·"
BITS = {PLUS: Style(color="white", bgcolor=ABOVE), MINUS: Style(color="black", bgcolor=BELOW)}
CHANGED_STYLE = Style(bold=True, underline=True, reverse=True)


def card_text(debugger: Debugger) -> Text:
    """The card, a line for each column: a letter for each row, in the order of the named blocks above them.

    1 and 0 are the bits +1 and -1, a dot is the number 0, and + and - are other numbers. What changed is in reverse.
    """
    columns, entries = debugger.card()
    blocks = [block for block in debugger.about["layout"]["blocks"]
              if entries[:, block["start"] : block["start"] + block["rows"]].any()]
    visible = {row for block in blocks for row in range(block["start"], block["start"] + block["rows"])}
    changed = {(row, column) for row, column in debugger.state["changed"] if row in visible}
    touched = {column for _, column in changed}
    text = Text(no_wrap=True)
    text.append(" " * NAME)
    for block in blocks:
        text.append(f" {block['name'][: block['rows']]:<{block['rows']}}", "italic dim")
    for column, numbers in zip(columns, entries, strict=True):
        text.append(f"\n{_fitted(debugger.column_name(column))}", "bold" if column in touched else "dim")
        for block in blocks:
            rows = range(block["start"], block["start"] + block["rows"])
            letters = [_letter(float(numbers[row]), (row, column) in changed) for row in rows]
            text.append(" ")
            for style, run in groupby(letters, key=itemgetter(1)):  # a screen draws few long pieces faster than letters
                text.append("".join(letter for letter, _ in run), style)
    return text


def _fitted(name: str) -> str:
    name = boxed(name)
    return f"{name[: NAME - 2] + '…' if len(name) >= NAME else name:<{NAME}}"


@lru_cache(maxsize=1 << 14)
def _letter(number: float, changed: bool) -> tuple[str, Style]:
    if number in (-1, 1):
        letter = PLUS if number > 0 else MINUS
        style = BITS[letter]
    elif number == 0:
        letter, style = NOTHING, Style(dim=True)
    else:
        letter = "+" if number > 0 else "-"
        style = Style(color="black", bgcolor=shade(max(-1.0, min(1.0, number / 8)) * 0.6))
    return letter, CHANGED_STYLE + style if changed else style


def attention_text(debugger: Debugger) -> Text:
    """The moves of the chosen head, a line each."""
    layer = debugger.about["layers"][debugger.layer_chosen]
    text = Text()
    if not layer["heads"]:
        return text.append(f"{layer['name']} has no heads", "dim")
    head = layer["heads"][debugger.head]
    text.append(f"{layer['name']}, head {debugger.head + 1} of {len(layer['heads'])}, temperature {head['temperature']:g}\n",
                "bold")
    moves = debugger.moves()
    for move in moves:
        gap = "" if move.gap is None else f", gap {move.gap:g}"
        text.append(boxed(f"{move.target} ← {move.source}"), "bold")
        text.append(f"  weight {move.weight:.3g}, score {move.score:g}{gap}\n", "dim")
    if not moves:
        text.append("the run has ended" if debugger.ended else "every column takes from itself", "dim")
    return text


def boxed(text: str) -> str:
    """Text that may change the terminal: such characters are shown as a box, which keeps the width."""
    return printable(text.expandtabs(), keep="\n", instead="\ufffd")


def output_text(debugger: Debugger) -> Text:
    """What the program has written, and the message of its end."""
    state, text = debugger.state, Text()
    if state["message"]:
        text.append(f"{boxed(state['message'])}\n", Style(color=CHANGED, bold=True))
    if debugger.about["ports"]:
        text.append(f"{state['read']:,} bytes read\n", "dim")
        text.append(boxed(state["output"]))
    elif not state["message"]:
        text.append("this machine has no ports", "dim")
    return text
