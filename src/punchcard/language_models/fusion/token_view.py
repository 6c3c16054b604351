"""A view of a fused model while it writes: for each token which tokens were on the card, what the program answered, and how
many loops that took. As a table for the terminal, and as a page that needs neither a server nor a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from punchcard.language_models.fusion.generation import WrittenToken

BAR = 120
"""Pixels of the longest run's bar."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
.text, code {{ font-family: ui-monospace, monospace; white-space: pre-wrap; }}
.text {{ border: 1px solid #8888; border-radius: 6px; padding: .8rem; }}
.says {{ background: #2a7f3f33; outline: 1px solid #2a7f3f; }}
.forbids {{ outline: 1px dashed #b06000; }}
table {{ border-collapse: collapse; width: 100%; margin-top: 1.5rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .7rem; border-bottom: 1px solid #8884; }}
td.count {{ text-align: right; font-variant-numeric: tabular-nums; }}
.bar {{ display: inline-block; height: .7em; background: #3b6ea8; margin-left: .5rem; }}
.token {{ border: 1px solid #8886; border-radius: 3px; padding: 0 .15rem; margin: 0 .1rem; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Before every token the last {window} tokens are brought onto the card, and the program runs until it halts. A token with a
frame was <span class="says">said</span> by a program, or is one where a program <span class="forbids">forbids</span> others;
the rest is the base's.</p>
<div class="text">{text}</div>
<table>
<thead><tr><th>token</th><th>answer of the card</th><th>loops</th><th>tokens on the card, the newest last</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""


def answer(token: WrittenToken) -> str:
    """What the program answered for a token, in words."""
    if not token.skill:
        return "no opinion"
    return f"{token.skill} {token.opinion} {(token.said or token.forbidden)!r}"


def loops(token: WrittenToken) -> str:
    """How many loops each program took."""
    return ", ".join(f"{name} {count:,} loops" for name, count in token.loops.items())


def token_table(tokens: Sequence[WrittenToken]) -> str:
    """One line for each token, under a headline."""
    cells = [("token", "answer of the card", "loops", "read"),
             *((repr(each.text), answer(each), loops(each), repr("".join(each.read))) for each in tokens)]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
                     for row in cells)


def token_page(title: str, prompt: str, tokens: Sequence[WrittenToken], window: int) -> str:
    """The same as a page."""
    most = max((sum(each.loops.values()) for each in tokens), default=1) or 1
    text = escape(prompt) + "".join(f'<span class="{each.opinion}">{escape(each.text)}</span>' for each in tokens)
    return PAGE.format(title=escape(title), window=window, text=text, rows="\n".join(_row(each, most) for each in tokens))


def _row(token: WrittenToken, most: int) -> str:
    width = max(1, round(BAR * sum(token.loops.values()) / most))
    chips = [f'<code class="token">{escape(each)}</code>' for each in token.read]
    shown, rest = "".join(chips[-12:]), "".join(chips[:-12])
    earlier = f"<details><summary>{len(chips) - 12} before these</summary>{rest}</details>" if rest else ""
    return (f'<tr><td><code>{escape(repr(token.text))}</code></td><td class="{token.opinion}">{escape(answer(token))}</td>'
            f'<td class="count">{escape(loops(token))}<span class="bar" style="width:{width}px"></span></td>'
            f"<td>{earlier}{shown}</td></tr>")
