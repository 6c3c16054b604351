"""Text from outside (names in programs, paths) reaches terminals, pages and plots as text, never as control characters."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result

from punchcard import cli
from punchcard.errors import printable
from punchcard.machines.von_neumann.isa import Image
from punchcard.viewer.debug.panes import boxed
from punchcard.viewer.html import html_of
from punchcard.viewer.session import Session
from punchcard.viewer.tables import result_html
from tests import hostile
from tests.command_line import invoke as command
from tests.fuzzing import samples
from tests.fuzzing.judging import controls

BAD = (".bad.py", ".bad.s", ".bad.asq", ".bad.fleq", ".bad.subleq", ".bad.tm", ".bad.json", ".bad.hex", ".none.s")
FEW = ("--memory", "512", "--bits", "16")
SMALL = ("--memory", "64")
FOLDER = ("--to", "safetensors", "-o", "folder")
LINES = {
    "run": ((".elf", "--trace", *SMALL), (".bad.elf", *SMALL), (".elf", *SMALL, "--max-steps", "1"),
            (".s", "--trace", *SMALL, "--max-steps", "2"), (".bf", "--max-steps", "1", *FEW),
            (".py", "--max-steps", "1", *FEW), (".asq", "--trace", "--max-steps", "1", "--checkpoint", "kept", *FEW),
            (".subleq", "--trace", "--max-steps", "2"),
            (".fleq", "--trace"), (".fleq", "--set", hostile.NAME), (".fleq", "--engine", hostile.NAME),
            (".fleq", "--stats", "none/" + hostile.NAME), ("--resume", ".bad.safetensors"), (hostile.NAME,)),
    "boot": ((".bad.elf",), (hostile.NAME,), ("--resume", ".bad.safetensors")),
    "view": ((".fleq", "--html", "page.html"), (".fleq", "--record", hostile.NAME), (".fleq", "--port", hostile.NAME)),
    "debug": ((".fleq", "--input", hostile.NAME),),
    "info": ((".fleq",), (".elf",), (".subleq", "--machine", hostile.NAME)),
    "prove": (("--verify", ".certificate"), ("--verify", ".bad.safetensors"), (".fleq", "-o", "none/" + hostile.NAME)),
    "export": ((".fleq", *FOLDER), (".bad.safetensors", *FOLDER)),
    "asm": ((".fleq",), (".elf",), (".py",), (".bf",), (".fleq", "-o", "none/" + hostile.NAME)),
    "disasm": ((".elf",), (".fleq",), (".subleq",), (".asq",)),
    "bench": ((".elf", "--memory", "64", "--engine", "dense", "--quick"), (".fleq", "--design", hostile.NAME)),
    "calc": (("1+2", "--program"), (hostile.NAME,), (f"1 +\t2\n+{hostile.CONTROLS}", "--program"),
             ("a", f"{hostile.NAME}=1"), ("a", "a=1", "--range", f"a={hostile.NAME}")),
    "learn": ((".csv", "--target", ".target", "--epochs", "1", "--save", "kept.model"),
              (".csv", "--target", hostile.NAME + "x"), (".csv", "--target", ".target", "--program")),
    "fuse": ((".bad.s", "--base", ".none", "-o", "folder"), ("sums", "--base", hostile.NAME, "-o", "folder"),
             (hostile.NAME, "--base", ".none", "-o", "folder")),
    "chat": ((".none",), (hostile.NAME,)),
    "sweep": (("run", ".bad.toml", "-o", "folder"), ("run", hostile.NAME, "-o", "folder"), ("report", ".none")),
    "ground-truth": (("make", "folder", "--set", hostile.NAME), ("score", ".none", "--answers", ".bad.json")),
    "playground": (("--html", "none/" + hostile.NAME), (hostile.NAME,)),
    "predict": (("kept.model", ".csv"), (".bad.safetensors", ".csv"), ("kept.model", ".bad.fleq")),
}
"""What each command is given. A word that begins with a dot is the file of that extension, or the table's target."""
OTHERWISE = ("calc", "learn", "predict", "bench", "fuse", "chat", "sweep", "ground-truth", "playground")
"""Commands that do not read a program."""
WRONG = (".bad", ".none", ".certificate", "--input")
WRITTEN = ("kept", "page.html", "folder", "kept.model")
"""Files that commands write; their names are as hostile as the others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outside")
    hostile.write_files(made)
    return made


def invoke(folder: Path, name: str, *words: str) -> Result:
    """A command, in this process. Paths among its words lead to the folder."""
    given = [f"y{hostile.NAME}" if word == ".target" else str(folder / f"{hostile.FILE_NAME}{word}")
             if word.startswith(".") or word in WRITTEN else word for word in words]
    return command(name, *given, of=samples.command_line())


def assert_plain(result: Result) -> None:
    assert result.exit_code in (0, 1, 2)
    assert result.output
    assert not controls(result.stdout)
    assert not controls(result.stderr)
    assert "😄" not in result.output  # rich has words for these


@pytest.mark.parametrize("name", sorted(cli.main.commands))
def test_no_command_prints_control_characters(name: str, folder: Path) -> None:
    reads = () if name in OTHERWISE else BAD
    target = FOLDER if name == "export" else ()
    for words in (*LINES[name], *((each, *target) for each in reads)):
        result = invoke(folder, name, *words)
        assert_plain(result)
        wrong = [word for word in words if hostile.CONTROLS in word or word.startswith(WRONG)]
        assert wrong or result.exit_code in (0, 1), result.output  # the name was used, not refused


def test_names_are_shown_with_their_codes(folder: Path) -> None:
    traced = invoke(folder, "run", ".elf", "--trace", "--memory", "64")
    assert f"[{printable(hostile.NAME)}] addi" in traced.stderr  # a symbol
    assert f"({printable(hostile.NAME)}:1)" in traced.stderr     # a file, from DWARF
    assert traced.stderr.count("\n") == 3
    assert "\\x1b]0;owned\\x07" in traced.stderr
    assert printable(hostile.NAME) in invoke(folder, "run", ".bad.elf", "--memory", "64").stderr
    kept = invoke(folder, "run", ".asq", "--max-steps", "1", "--checkpoint", "kept", *FEW).stderr
    assert kept.count("\n") == 2  # a newline in a path does not begin a line


@pytest.mark.parametrize("debug", [False, True])
def test_a_traceback_is_plain_too(debug: bool, folder: Path) -> None:
    words = ("--debug",) * debug
    shown = command(*words, "run", folder / f"{hostile.FILE_NAME}.bad.py", of=samples.command_line())
    assert ("Traceback" in shown.stderr) == debug
    assert_plain(shown)


def test_every_kind_of_character() -> None:
    """C0, DEL, C1, bidi controls, separators and lone surrogates are escaped; letters of any language are not."""
    codes = [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x61C,
             0x2028, 0x2029, 0xFEFF, 0xD800, 0xDCE9, 0xDFFF, 0xE0001]
    for code in codes:
        shown = printable(chr(code))
        assert shown.isprintable(), hex(code)
        assert shown.startswith("\\")
        assert boxed(chr(code)) in ("\ufffd", "\n", " " * 8)
    assert printable("grüße, Ελλάδα, 漢字 😀 é") == "grüße, Ελλάδα, 漢字 😀 é"
    assert printable("a\tb\n\x1b", keep="\t\n") == "a\tb\n\\x1b"


class Elements(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text = set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_pages_and_plots_show_names_as_text() -> None:
    machine, named = samples.machine("von-neumann"), Image((3, 4, 0, 1, 1), hostile.NAME, {hostile.NAME: 0})
    result = machine.run(named, max_steps=2)
    assert not controls(f"{named!r} {result!r}")
    assert machine.column_name(machine.layout.region("memory").start, named) == hostile.NAME
    seen = Elements(result_html(result))
    assert "b" not in seen.tags
    assert printable(hostile.NAME)[:10] in seen.text
    page = html_of(Session(machine, named, name=hostile.FILE_NAME), last=1)
    assert not controls(page)
    assert "b" not in Elements(page).tags
    pytest.importorskip("matplotlib")
    figure = machine.plot(named, columns=8, title=hostile.NAME)
    figure.savefig("/dev/null", format="svg")
    shown = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert printable(hostile.NAME) in shown
