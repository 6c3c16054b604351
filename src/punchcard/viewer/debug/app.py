"""The debugger's screen, with Textual (the extra `debug`): source, values, card, attention and output of one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, cast

from rich.markup import escape
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer, Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

from punchcard.errors import PunchcardError
from punchcard.viewer.debug.debugger import Aim, Debugger
from punchcard.viewer.debug.panes import attention_text, boxed, card_text, output_text

HERE, STOP = "▶", "●"
LEGEND = "1 is +1, 0 is -1, · is 0"
MOST_VALUES = 512
"""Values that are listed, the watched ones first."""
FOUND_NONE = {"halt": "the run does not end within its limit", "port": "nothing more is read or written",
              "branch": "no more branches", "breakpoint": "no breakpoint is reached any more",
              "change": "what is watched does not change any more"}


KEYS = """\
s  b      make a loop, go back a loop
l         to the next layer
.  ,      half a layer on, half a layer back
t         breakpoint on the line of the cursor
r         run to a breakpoint, or to the end
e         run to the end
j  p      run to the next branch, to the next input or output
w         watch a value
c         run until a watched value changes
g         go to a loop
h  H      the next head, the next layer's heads
tab       from pane to pane; arrow keys move inside one
Escape    stop looking ahead, or asking
q         quit

On the card: 1 is +1, 0 is -1, a dot is 0. What changed is underlined."""


class KeyHelp(ModalScreen[None]):
    """All keys, until one is pressed."""

    CSS = "KeyHelp { align: center middle; } #keys { width: auto; height: auto; border: round $primary; padding: 1 2; }"

    def compose(self) -> ComposeResult:
        yield Static(Text(KEYS), id="keys")

    def on_key(self, event: Key) -> None:
        event.stop()  # it is for nothing else
        self.dismiss()


MOVES: Mapping[str, Callable[[Debugger], None]] = {
    "step": Debugger.step, "back": Debugger.back, "layer": Debugger.next_layer, "half": Debugger.half,
    "half back": partial(Debugger.half, forward=False),
}
CHOICES: Mapping[str, Callable[[Debugger], None]] = {"head": Debugger.next_head, "layer": Debugger.choose_next_layer}


class DebugApp(App[None]):
    """One screen. Every key is in the footer, and nothing needs a mouse."""

    TITLE = "punchcard debug"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #place { height: 1; background: $primary; color: $text; padding: 0 1; text-style: bold; }
    #story { height: auto; max-height: 3; padding: 0 1; text-style: bold; }
    #message { height: 1; color: $warning; padding: 0 1; }
    #upper { height: 2fr; }
    #lower { height: 2fr; }
    #source { width: 3fr; height: 100%; border: round $primary; }
    #values { width: 2fr; height: 100%; border: round $primary; }
    #card-box { width: 3fr; border: round $primary; }
    #card { width: auto; }
    #side { width: 2fr; }
    #attention-box { height: 1fr; border: round $primary; }
    #output-box { height: 1fr; border: round $primary; }
    #prompt { display: none; height: 3; }
    #prompt.asked { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # How to leave, and where all keys are, come before what a narrow terminal cuts off.
        ("s", "go('step')", "step"), ("b", "go('back')", "back"), ("q", "quit", "quit"), ("question_mark", "keys", "keys"),
        ("l", "go('layer')", "layer"), ("full_stop", "go('half')", "half"),
        Binding("comma", "go('half back')", "half back", show=False), ("t", "breakpoint", "breakpoint"),
        ("r", "seek('breakpoint')", "run"),
        ("e", "seek('halt')", "to the end"), ("j", "seek('branch')", "branch"), ("p", "seek('port')", "port"),
        ("w", "ask('watch')", "watch"), ("c", "seek('change')", "change"), ("g", "ask('loop')", "go to loop"),
        ("h", "choose('head')", "head"), Binding("H", "choose('layer')", "its layer", show=False),
        Binding("escape", "stop", "stop", show=False),
    ]

    def __init__(self, debugger: Debugger) -> None:
        super().__init__()
        self.debugger = debugger
        self._asking, self._stopped, self._busy, self._marked = "", False, False, set[int]()

    def compose(self) -> ComposeResult:
        yield Static(id="place")
        yield Static(id="story")
        with Horizontal(id="upper"):
            yield DataTable(id="source", cursor_type="row", show_header=False)
            yield DataTable(id="values", cursor_type="row", show_header=False)
        with Horizontal(id="lower"):
            with ScrollableContainer(id="card-box"):
                yield Static(id="card")
            with Vertical(id="side"):
                with ScrollableContainer(id="attention-box"):
                    yield Static(id="attention")
                with ScrollableContainer(id="output-box"):
                    yield Static(id="output")
        yield Static(id="message")
        yield Input(id="prompt")
        yield Footer()

    def on_mount(self) -> None:
        """The source is written once; what else is shown belongs to a moment."""
        about = self.debugger.about
        size = f"{about['layout']['width']} rows, {about['layout']['columns']:,} columns"
        for name, title in (("#source", about["program"]["name"]), ("#values", "values"),
                            ("#attention-box", "attention"), ("#output-box", "output")):
            self.query_one(name).border_title = escape(boxed(title))
        card = self.query_one("#card-box")
        card.border_title, card.border_subtitle = f"card: {size}", LEGEND
        source = self._table("#source")
        for name, width in (("mark", 2), ("number", len(str(len(about["program"]["lines"])))), ("text", None)):
            source.add_column(name, key=name, width=width)
        for number, line in enumerate(about["program"]["lines"], start=1):
            source.add_row("", Text(str(number), "dim", justify="right"), Text(boxed(line)), key=str(number))
        self._table("#values").add_columns("mark", "name", "value", "group")
        source.focus()
        self.show()

    def _table(self, name: str) -> DataTable[Text | str]:
        return cast(DataTable[Text | str], self.query_one(name, DataTable))

    # Showing

    def show(self, message: str = "") -> None:
        """Everything as it is at this moment."""
        debugger = self.debugger
        self.query_one("#place", Static).update(Text(boxed(debugger.place())))
        self.query_one("#story", Static).update(Text(boxed(debugger.state["story"])))
        self.query_one("#message", Static).update(Text(boxed(message)))
        self.query_one("#card", Static).update(card_text(debugger))
        self.query_one("#output", Static).update(output_text(debugger))
        self.query_one("#output-box").scroll_end(animate=False)
        self._show_attention()
        self._show_source()
        values = self._table("#values")
        values.clear()
        for value in debugger.values()[:MOST_VALUES]:
            mark = ("w" if value.watched else " ") + ("*" if value.changed else " ")
            style = "bold reverse" if value.changed else "bold" if value.watched else ""
            values.add_row(mark, Text(boxed(value.name), style), Text(boxed(value.text), style),
                           Text(boxed(value.group), "dim"))

    def _show_attention(self) -> None:
        self.query_one("#attention", Static).update(attention_text(self.debugger))

    def _show_source(self) -> None:
        """A sign at the current line and at breakpoints; the cursor goes along."""
        source, line = self._table("#source"), self.debugger.state["line"]
        stops = self.debugger.lines_with_breakpoints()
        marked = stops | ({line} if line is not None else set())
        for number in (marked | self._marked) & set(range(1, source.row_count + 1)):
            mark = (HERE if number == line else "") + (STOP if number in stops else "")
            source.update_cell(str(number), "mark", mark)
        self._marked = marked
        if line is not None and 1 <= line <= source.row_count:
            source.move_cursor(row=line - 1)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a long run is looked through, only Escape and q do something."""
        return action in ("stop", "quit") or not self._busy

    def _do(self, act: Callable[[], object]) -> None:
        try:
            act()
        except PunchcardError as error:
            self.show(str(error))
        else:
            self.show()

    def action_keys(self) -> None:
        self.push_screen(KeyHelp())

    def action_go(self, move: str) -> None:
        """One of `MOVES`."""
        self._do(partial(MOVES[move], self.debugger))

    def action_choose(self, what: str) -> None:
        """Another head, without moving: one of `CHOICES`."""
        CHOICES[what](self.debugger)
        self._show_attention()

    def action_breakpoint(self) -> None:
        """A breakpoint on the line of the cursor."""
        line = self._table("#source").cursor_row + 1
        message = "" if self.debugger.toggle(line) else f"line {line}: no instruction is there"
        self.query_one("#message", Static).update(Text(message))
        here = self._table("#source").cursor_row
        self._show_source()
        self._table("#source").move_cursor(row=here)

    def action_seek(self, what: str) -> None:
        """Look ahead in a thread, so that Escape is heard."""
        self._busy, self._stopped = True, False
        self.query_one("#message", Static).update(Text("running; Escape stops"))
        self.run_worker(partial(self._seek, cast(Aim, what)), thread=True, exclusive=True)

    def _seek(self, what: Aim) -> None:
        message = ""
        try:
            if not self.debugger.seek(what, stop=lambda: self._stopped):
                message = "stopped" if self._stopped else FOUND_NONE[what]
                if what == "breakpoint" and not self._stopped and self.debugger.seek("halt", stop=lambda: self._stopped):
                    message = "the end: no breakpoint on the way"
        except PunchcardError as error:
            message = str(error)
        finally:
            self._busy = False
        self.call_from_thread(self.show, message)

    def action_stop(self) -> None:
        """Stop looking ahead, or asking."""
        self._stopped = True
        self._hide_prompt()

    # Questions

    def action_ask(self, what: str) -> None:
        """A line to type a name or a number in; in the list of values, `w` is for the value at the cursor."""
        values = self._table("#values")
        if what == "watch" and self.focused is values and values.row_count:
            self.debugger.watch_number(self.debugger.values()[values.cursor_row].number)
            self.show()
            return
        prompt = self.query_one("#prompt", Input)
        self._asking = what
        prompt.placeholder = "the name of a value to watch, or to watch no longer" if what == "watch" else "loop, from 0"
        prompt.value = ""
        prompt.add_class("asked")
        prompt.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The answer."""
        self._hide_prompt()
        act = self.debugger.watch if self._asking == "watch" else self.debugger.go_to_loop
        self._do(partial(act, event.value.strip()))

    def _hide_prompt(self) -> None:
        self.query_one("#prompt", Input).remove_class("asked")
        self._table("#source").focus()
