"""The kinds of machines that there are: what everything above the machines knows of them.

A registry is a value. `built_in()` is made of the kinds in this package, `including` gives a larger one, so that nothing
is registered on import and no test has anything to reset.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.errors import ProgramError, PunchcardError, did_you_mean, shortened
from punchcard.files import read_limited
from punchcard.machines.fleq.kind import FLEQ
from punchcard.machines.kind import Kind, Language, Option
from punchcard.machines.riscv.kind import RISCV
from punchcard.machines.source import read_text
from punchcard.machines.subleq.kind import SUBLEQ
from punchcard.machines.von_neumann.kind import VON_NEUMANN

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine

ENTRY_POINTS = "punchcard.machines"
"""A package that brings a machine names the machine's class, or its `Kind`, in this group of entry points."""


class Registry:
    """The known kinds of machines. A kind is found by its name, by the type of a program, or by a file extension.

        machines = punchcard.kinds().including(MyMachine)
        punchcard.load("program.mine", machines=machines)

    A registry is immutable: `including` returns a larger one.
    """

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[str, Kind] = {}
        self._languages: dict[str, list[tuple[Kind, Language]]] = {}
        """By extension. Several languages share one where a text says whose it is."""
        try:
            given = list(kinds)
        except TypeError:
            raise PunchcardError(f"Registry: {kinds!r} is not a list of kinds of machines") from None
        for kind in given:
            if not isinstance(kind, Kind):
                raise PunchcardError(f"Registry: {kind!r} is not a `Kind`: give the kinds of machines as a list")
            if kind.name in self._kinds:
                raise PunchcardError(f"there are two kinds of machines called {kind.name!r}")
            self._kinds[kind.name] = kind
            for language in kind.languages:
                for extension in map(str.lower, language.extensions):
                    sharing = self._languages.setdefault(extension, [])
                    sharing.append((kind, language))
                    if len(sharing) > 1 and any(each.owns is None for _, each in sharing):
                        other = sharing[0][0].name
                        raise PunchcardError(f"the extension {extension!r} is claimed by {other!r} and by {kind.name!r}")
        self._check_options()

    def _check_options(self) -> None:
        """Two options of one name must mean the same, since they share a flag."""
        found: dict[str, tuple[str, object]] = {}
        self._spellings: dict[str, str] = {}
        for kind in self:
            own = [(kind.name, "a machine's", option) for option in kind.options]
            own += [(language.about, "a language's", option) for language in kind.languages for option in language.options]
            for owner, whose, option in own:
                meaning = whose, option.type, option.spelling, option.choices, option.many
                first, other = found.setdefault(option.name, (owner, meaning))
                self._spellings[option.name] = option.spelling
                if meaning != other:
                    raise PunchcardError(f"the option {option.name!r} has another meaning in {owner!r} than in {first!r}: "
                                         "rename it")

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def __repr__(self) -> str:
        return f"<Registry of the machines {', '.join(self._kinds)}>"

    def including(self, *machines: type[AnyMachine] | Kind) -> Registry:
        """A registry with more kinds: give `Machine` classes that have a `kind`, or `Kind` values that name their class."""
        for machine in machines:
            if not isinstance(machine, Kind) and not isinstance(getattr(machine, "kind", None), Kind):
                raise PunchcardError(f"{machine!r} is not a machine class: it has no `kind`")
        return Registry([*self, *(m if isinstance(m, Kind) else replace(m.kind, machine=m) for m in machines)])

    def kind(self, name: str) -> Kind:
        """The kind with this name. Raises `PunchcardError` if there is none."""
        if name not in self._kinds:
            raise PunchcardError(f"unknown machine {name!r}{did_you_mean(name, self._kinds)}: there are "
                                 f"{', '.join(self._kinds)}; one of your own is known to the file that defines it")
        return self._kinds[name]

    def kind_of(self, program: object) -> Kind:
        """The kind of machine that runs this program. Raises `PunchcardError` if there is none."""
        for kind in self:
            if kind.is_for(program):
                return kind
        hint = f"; a file is read by punchcard.load({shortened(str(program))})" if isinstance(program, str | Path) else ""
        raise PunchcardError(f"an object of type {type(program).__name__} is not a program of a known machine: there are "
                             f"{', '.join(self._kinds)}{hint}")

    def language_of(self, path: str | Path, options: Mapping[str, object] | None = None) -> tuple[Kind, Language]:
        """The kind of machine and the language of a file.

        The extension decides. If several languages share it, the file's text decides; `options` are those for reading it.
        """
        suffix = Path(path).suffix.lower()
        sharing = self._languages.get(suffix)
        if sharing is None:
            data = read_limited(path, "program", error=ProgramError)  # a file that is not there, or a folder, says so first
            for kind in self:
                for language in kind.languages:
                    if language.magic and data.startswith(language.magic):
                        return kind, language
            for kind in self:
                if suffix in kind.refused:
                    raise ProgramError(f"{str(path)!r}: {kind.refused[suffix]}")
            read_text(path)
            raise ProgramError(f"{str(path)!r} has the extension {suffix!r}, which is not a known language: there are "
                               f"{', '.join(self._languages)}")
        return sharing[0] if len(sharing) == 1 else self._choose(suffix, read_text(path), str(path), options or {})

    def _choose(self, extension: str, text: str, source: str, options: Mapping[str, object]) -> tuple[Kind, Language]:
        """Of the languages that share an extension, the one that a text is of."""
        for kind, language in self._languages[extension]:
            own = {option.name for option in language.options}
            given = {name: value for name, value in options.items() if name in own}
            _check_values(language.options, given)
            if language.owns is None or language.owns(text, source, **given):
                return kind, language
        return self._languages[extension][0]

    def machine_options(self, kind: Kind, given: Mapping[str, Any], language: Language | None = None) -> dict[str, Any]:
        """The given options that a machine of one kind is built with. One of another kind or language is refused."""
        own = {option.name for option in kind.options} | {"design", "precision"}
        reading = {option.name for option in language.options} if language is not None else set()
        what = f"{kind.name} machines" if language is None else f"{language.extensions[0]} programs"
        for name in given:
            if name not in own | reading:
                raise PunchcardError(f"{self._spellings.get(name, name)} is not for {what}")
        design = given.get("design")
        if design is not None and kind.designs and design not in kind.designs:
            raise PunchcardError(f"--design {design} is not for {kind.name} machines: choose {', '.join(kind.designs)}")
        return {name: value for name, value in given.items() if name in own}

    def load_with(self, path: str | Path, given: Mapping[str, Any]) -> tuple[Any, Kind, Language, dict[str, Any]]:
        """The program in a file, which must fit what is given; its kind and language, and options of a machine for it."""
        kind, language = self.language_of(path, given)
        options = self.machine_options(kind, given, language)
        sizes = kind.resolve(options) if kind.resolve is not None and not language.sizes_itself else options
        plugged = {option.name for option in kind.options if option.many}  # plugged into a machine; no text must fit them
        reading = {option.name: given[option.name] for option in language.options if option.name in given}
        wanted = {name: value for name, value in sizes.items() if name not in plugged} | reading
        return self._read(kind, language, path, wanted), kind, language, options

    def load(self, path: str | Path, **options: Any) -> Any:
        """Load a program from a file: see `punchcard.load`."""
        return self._read(*self.language_of(path, options), path, options)

    def _read(self, kind: Kind, language: Language, path: str | Path, options: Mapping[str, Any]) -> Any:
        given = _arguments(kind, language, Path(path).suffix, options)
        if "folder" in language.takes:
            given["folder"] = Path(path).parent
        content = read_limited(path, "program", error=ProgramError) if language.binary else read_text(path)
        return language.assemble(content, str(path), **given)

    def assemble(self, text: str, language: str, source: str = "", **options: Any) -> Any:
        """Assemble a program from text: see `punchcard.assemble`."""
        if language in self._kinds:
            kind, found = self._kinds[language], self._kinds[language].languages[0]
        elif language.lower() in self._languages:
            kind, found = self._choose(language.lower(), text, source, options)
        else:
            known = (*self._kinds, *self._languages)
            raise ProgramError(f"unknown language {language!r}{did_you_mean(language, known)}: there are {', '.join(known)}")
        if found.binary:
            raise ProgramError(f"{found.about} ({language}) is not text: load it from a file")
        return found.assemble(text, source, **_arguments(kind, found, language, options))

    def disassemble(self, program: object) -> str:
        """Return a program as assembly text: see `punchcard.disassemble`."""
        return self.kind_of(program).disassemble(program)

    def build(self, program: object, **options: Any) -> AnyMachine:
        """Build a machine that is large enough for a program: see `punchcard.build`."""
        return self.kind_of(program).machine_class().for_program(program, **options)


def _arguments(kind: Kind, language: Language, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a language takes; those of its machine are ignored, and others refused."""
    taken = {*(option.name for option in language.options), *language.takes}
    known = {*taken, *(option.name for option in kind.options), "design", "precision"}
    for option in options:
        if option not in known:
            raise ProgramError(f"{option} is not an option for {language.about} ({name}){did_you_mean(option, known)}")
    given = {option: value for option, value in options.items() if option in taken and value is not None}
    _check_values(language.options, given)
    _check_values([each for each in kind.options if not each.many and not each.choices], given)  # those may be objects
    return given


def _check_values(options: Iterable[Option], given: Mapping[str, Any]) -> None:
    """Refuse a value that its option does not have."""
    for option in options:
        if given.get(option.name) is not None:
            option.check(given[option.name])


@cache
def built_in() -> Registry:
    """The machines of this package."""
    return Registry([SUBLEQ, FLEQ, VON_NEUMANN, RISCV])


def installed(*machines: type[AnyMachine] | Kind) -> Registry:
    """A `Registry` of all kinds of machines: those of this package, of other installed packages, and of the arguments.

    An argument replaces an installed kind that has the same name.

        punchcard.kinds(MyMachine)
    """
    own = built_in().including(*machines)  # refuses what is not a machine
    given = {m.name if isinstance(m, Kind) else m.kind.name for m in machines}
    found = [_brought(point) for point in points(tuple(sys.path)) if point.name not in given]
    return own.including(*found)


@lru_cache(maxsize=1)
def points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The machines of other installed packages, looked for once on a path: each of its packages is opened for that."""
    return tuple(entry_points(group=ENTRY_POINTS))


def _brought(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise PunchcardError(f"cannot load the machine {point.name!r} of an installed package, {point.value!r}: "
                             f"{type(error).__name__}: {error}") from None
