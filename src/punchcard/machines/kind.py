"""The description of a kind of machine: name, programs, languages, options. It needs no tensors and no machine.

    Kind("turing", "a Turing machine", TuringProgram, [Language("Turing machine", (".tm",), assemble)], disassemble,
         options=(Option("squares", "squares of the tape"),))

A kind that is declared apart from its machine names the class as `machine`, to be imported when one is built. A class
that has its kind as an attribute needs no `machine`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from punchcard.errors import PunchcardError, SizeError
from punchcard.lazy import import_name

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine
    from punchcard.machines.variation import Variation


@dataclass(frozen=True)
class Option:
    """An option of a machine or of a language: a keyword in Python, a flag on the command line.

    name          the keyword;  about   its help text
    type          int, float, str or bool
    flag          the flag, default: `--name`
    least, most   bounds of a number, default: none
    choices       the allowed texts, default: any
    many          True: a list of values, separated by commas on the command line
    positional    True, of one with many values: they have no flag on the command line, and come after FILE
    """

    name: str
    about: str
    type: type = int
    flag: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    positional: bool = False

    @property
    def spelling(self) -> str:
        return self.flag or "--" + self.name.replace("_", "-")

    def check(self, value: Any) -> None:
        """Raise `SizeError` if a value has the wrong type, is not one of the choices, or is out of bounds."""
        if self.many:
            good = isinstance(value, list | tuple) and all(isinstance(item, self.type) for item in value)
        elif self.choices:
            good = isinstance(value, str) and value in self.choices
        elif self.type in (int, float):
            kind = int if self.type is int else (int, float)
            good = isinstance(value, kind) and not isinstance(value, bool) and abs(value) < math.inf and (
                (self.least is None or value >= self.least) and (self.most is None or value <= self.most))
        else:
            good = isinstance(value, self.type)
        if not good:
            raise SizeError(f"{self.name}={value!r}: it must be {self._rule()}")

    def _rule(self) -> str:
        """What a value must be, for a message."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        limits = {"at least": self.least, "at most": self.most}
        bounds = "".join(f", {word} {limit}" for word, limit in limits.items() if limit is not None)
        words = {int: "an integer", float: "a number", bool: "True or False", str: "a text"}
        what = words.get(self.type, f"a {self.type.__name__}")
        return f"a list, each item {what}" if self.many else what + bounds


def refuse_options(names: Iterable[str]) -> None:
    """Refuse options of a machine where the machine itself is given."""
    if given := ", ".join(names):
        raise PunchcardError(f"{given}: options are for building a machine, but a machine is given")


@dataclass(frozen=True)
class Language:
    """A language, or file format, of programs. `assemble(text, source, **options)` returns the program.

    about        name of the language, for messages
    extensions   extensions of its files, such as ".subleq"
    options      options of the language
    takes        further keywords of `assemble`: sizes of the machine, so that an error can name the line that does not fit,
                 or "folder", the folder of the file
    """

    about: str
    extensions: tuple[str, ...]
    assemble: Callable[..., Any]
    options: tuple[Option, ...] = ()
    takes: tuple[str, ...] = ()
    check_value: Callable[[str, Any], None] | None = None
    """Called with name and value of each `--set`; raises an error for a value that the language does not have."""
    binary: bool = False
    """Whether files are binary. Then `assemble` gets bytes instead of text."""
    magic: bytes = b""
    """The first bytes of each file. A file with an unknown extension is recognised by them. Default: none."""
    owns: Callable[..., bool] | None = None
    """For languages that share an extension: called with text, source and options; whether the text is of this language."""
    sizes_itself: bool = False
    """Whether the program sets the sizes of its machine. Then `assemble` gets only the sizes that the user gave."""


@dataclass(frozen=True)
class Workload:
    """A program that never ends, and the options of a machine for it: something to time.

    `about` tells it from others of its name; `sparse`: the equation with sparse weights is timed as well.
    """

    name: str
    program: Any
    options: Mapping[str, Any]
    about: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = False


@dataclass(frozen=True)
class Timing:
    """What `punchcard bench` times of a kind by itself.

    `workloads(design, columns)` of "module:function" gives workloads, or text that says why there is none; `columns`,
    `designs` and `quick`, one of the designs, are the defaults of what is timed. `rival` is what the interpreter is
    written in.
    """

    about: str
    workloads: str
    columns: tuple[int, ...]
    designs: tuple[str, ...]
    quick: str
    rival: str = "python"

    def each(self, design: str, columns: int) -> Iterator[Workload | str]:
        yield from import_name(self.workloads)(design, columns)


@dataclass(frozen=True)
class Kind:
    """A kind of machine: its name, programs, languages and options.

    name, about   its name, and a description for messages
    program       the class of its programs, or "module:Class"
    languages     the languages of its programs
    disassemble   function from a program to text in the first language
    options       options of its machines, beside `design` and `precision`
    designs       names of its designs; the first is the default
    view_design   the design of a view, default: the first
    write         function from a program to the output of `punchcard asm`, default: `disassemble`
    writers       such functions by extension of the output file; they return text or bytes
    resolve       function from the given sizes to all sizes, so that a program's text can be checked against them
    parse_value   function from the text of `--set NAME=VALUE` to a value, or None if programs have no named values
    timing        what `punchcard bench` measures without a FILE, or None
    refused       extensions of files that look like programs of this kind, with the reason why they are not
    arguments     whether programs are called with arguments, by `with_arguments`
    machine       the class of its machines, or "module:Class"
    stock         the class of its programs' texts for stock checkpoints, or "module:Class"; "": none of its own
    variation     how its programs are changed in one way, or "module:Class" of that: see `machines/variation.py`
    """

    name: str
    about: str
    program: str | type
    languages: Sequence[Language]
    disassemble: Callable[[Any], str]
    options: tuple[Option, ...] = ()
    designs: tuple[str, ...] = ()
    view_design: str = ""
    write: Callable[[Any], str] | None = None
    writers: Mapping[str, Callable[[Any], str | bytes]] = field(default_factory=dict)
    resolve: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    parse_value: Callable[[str], Any] | None = None
    timing: Timing | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    arguments: bool = False
    machine: str | type[AnyMachine] = field(default="", repr=False)
    stock: str | type = field(default="", repr=False)
    variation: str | type[Variation] = field(default="", repr=False)

    def __repr__(self) -> str:
        files = " ".join(extension for language in self.languages for extension in language.extensions)
        return f"<Kind {self.name!r}: {self.about} ({files})>"

    def machine_class(self) -> type[AnyMachine]:
        """The class of its machines, imported on first use."""
        if not self.machine:
            raise PunchcardError(f"the kind {self.name!r} has no machine class: give it as `machine`")
        found: type[AnyMachine] = import_name(self.machine) if isinstance(self.machine, str) else self.machine
        return found

    def program_class(self) -> type:
        """The class of its programs, imported on first use."""
        found: type = import_name(self.program) if isinstance(self.program, str) else self.program
        return found

    def is_for(self, program: object) -> bool:
        """Whether a program is for this kind of machine. The class of programs is not imported."""
        if not isinstance(self.program, str):
            return isinstance(program, self.program)
        return any(f"{kind.__module__}:{kind.__qualname__}" == self.program for kind in type(program).__mro__)

    def assembled(self, program: object, suffix: str = "") -> str | bytes:
        """A program as `punchcard asm` writes it to a file with this extension."""
        return self.writers.get(suffix.lower(), self.write or self.disassemble)(program)
