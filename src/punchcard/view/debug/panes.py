"""The parts of the debugger's screen as coloured text. Signs differ by their letter too, not by colour alone."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from punchcard.view.colours import ABOVE, BELOW, CHANGED, shade
from punchcard.view.debug.debugger import Debugger

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
    changed = {(row, column) for row, column in debugger.state["changed"]}
    blocks = [block for block in debugger.about["layout"]["blocks"]
              if entries[:, block["start"] : block["start"] + block["rows"]].any()]
    text = Text(no_wrap=True)
    text.append(" " * NAME)
    for block in blocks:
        text.append(f" {block['name'][: block['rows']]:<{block['rows']}}", "italic dim")
    for column, numbers in zip(columns, entries, strict=True):
        text.append(f"\n{_fitted(debugger.column_name(column))}", "bold" if any(c == column for _, c in changed) else "")
        for block in blocks:
            text.append(" ")
            for row in range(block["start"], block["start"] + block["rows"]):
                letter, style = _letter(float(numbers[row]))
                text.append(letter, CHANGED_STYLE + style if (row, column) in changed else style)
    return text


def _fitted(name: str) -> str:
    return f"{name[: NAME - 2] + '…' if len(name) >= NAME else name:<{NAME}}"


def _letter(number: float) -> tuple[str, Style]:
    if number in (-1, 1):
        letter = PLUS if number > 0 else MINUS
        return letter, BITS[letter]
    if number == 0:
        return NOTHING, Style(dim=True)
    return "+" if number > 0 else "-", Style(color="black", bgcolor=shade(max(-1.0, min(1.0, number / 8)) * 0.6))


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
        text.append(f"{move.target} ← {move.source}", "bold")
        text.append(f"  weight {move.weight:.3g}, score {move.score:g}{gap}\n", "dim")
    if not moves:
        text.append("the run has ended" if debugger.ended else "every column takes from itself", "dim")
    return text


def output_text(debugger: Debugger) -> Text:
    """What the program has written, and what a person should be told."""
    state, text = debugger.state, Text()
    if state["message"]:
        text.append(f"{state['message']}\n", Style(color=CHANGED, bold=True))
    if debugger.about["ports"]:
        text.append(f"{state['read']:,} bytes read\n", "dim")
        text.append(state["output"])
    elif not state["message"]:
        text.append("this machine has no ports", "dim")
    return text
