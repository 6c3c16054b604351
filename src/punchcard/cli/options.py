"""The options of machines and languages on the command line: declared once by each kind, put together here."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click
from click.core import ParameterSource

from punchcard.budget import DEFAULT, OPTION, max_memory
from punchcard.export.targets import TARGETS
from punchcard.folders import OVERWRITE
from punchcard.machines.kind import Kind, Language, Option
from punchcard.machines.registry import Registry

DTYPES = ("float64", "float32", "float16", "bfloat16")
TRACES = ("loops", "story")
MOST_DIGITS = 18
"""Of a size; Python would not convert more than some thousand."""
WORDS = "punchcard.words"
"""Where a context keeps the words of its command line."""
Added: TypeAlias = Callable[[click.Command], object]
"""What adds an option to a command: click's decorators do, to a command that is there already."""


def _allow(context: click.Context, option: click.Parameter, text: str | None) -> None:
    """The budget holds until the command ends."""
    if text is not None:
        context.with_resource(max_memory(text))


memory_option = click.option(OPTION, metavar="SIZE", expose_value=False, callback=_allow,
                             help=f"Memory limit, such as 512M or 16G.  [default: {DEFAULT >> 30}G]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
set_option = click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                          help="Initial value of a cell, variable or label; may be repeated.")

checkpoint_option = click.option("--checkpoint", metavar="FILE", help="Save the run to this file, for --resume.")
resume_option = click.option("--resume", metavar="FILE", help="Continue the run in this checkpoint, and save it there.")
stats_option = click.option("--stats", metavar="FILE", help="Write the JSON object of --json to a file.")
stock_option = click.option("--on", type=click.Choice(["stock"]), help="stock: FILE is the folder of a stock checkpoint.")
overwrite_option = click.option(OVERWRITE, is_flag=True,
                                help="Replace files in a folder that has others than those of an export.")
arguments_option = click.option("--argument", "arguments", multiple=True, metavar="TEXT",
                                help="An argument of the program; may be repeated. Words after -- are arguments too.")


def program_command(
    *options: Callable[[Registry], Sequence[Added]], required: bool = False
) -> Callable[[Callable[..., Any]], Callable[[Registry], click.Command]]:
    """Make a function of a registry, FILE and options into one that gives the command for a registry of machines.

    options    each gives options for a registry; default: those of machines and of languages
    required   whether FILE is

    In the docstring {extensions} are those of all programs.
    """
    def decorate(function: Callable[..., Any]) -> Callable[[Registry], click.Command]:
        own = list(getattr(function, "__click_params__", ()))

        def make(registry: Registry) -> click.Command:
            extensions = ", ".join(dict.fromkeys(
                extension for kind in registry for language in kind.languages for extension in language.extensions))
            about = inspect.cleandoc(function.__doc__ or "").replace("{extensions}", extensions)
            command = ProgramCommand(function.__name__, callback=partial(function, registry), help=about)
            click.argument("file", type=click.Path(path_type=Path), required=required)(command)
            for add in (add for some in options or (machine_options, language_options) for add in some(registry)):
                add(command)
            command.params += own[::-1]
            return command

        return make

    return decorate


def kind_option(registry: Registry, about: str = "") -> Sequence[Added]:
    """The kind of a machine that is built without a program, or for one."""
    usual = f"The kind of machine.  [default: that of FILE, or {next(iter(registry)).name}]"
    return [click.option("--machine", "kind_name", type=click.Choice([kind.name for kind in registry]),
                         help=about or usual)]


def names(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Names separated by commas."""
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise click.BadParameter(f"{text!r}: write names separated by commas.")
    return found


def numbers(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Positive integers separated by commas."""
    if text is None:
        return None
    found = parse_integers(text)
    if min(found, default=0) < 1:
        raise click.BadParameter(f"{text!r}: write positive integers separated by commas, of at most {MOST_DIGITS} digits.")
    return found


def parse_integers(text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas; none when the text is something else, or a number is too long to be a size."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(f"[0-9]{{1,{MOST_DIGITS}}}", part) for part in parts):
        return ()
    return tuple(map(int, parts))


def machine_options(registry: Registry, *, is_viewed: bool = False) -> Sequence[Added]:
    """The options that machines of all kinds are built with, for a view or not, and the memory that may be used."""
    return [click.option("--design", cls=DesignOption, registry=registry, is_viewed=is_viewed),
            click.option("--dtype", type=click.Choice(DTYPES), help="Number format."), *size_options(registry),
            memory_option]


def size_options(registry: Registry) -> Sequence[Added]:
    """Those of them that each kind declares by itself."""
    return _options(_Owner(kind.name, kind.options, _marks(kind, *kind.languages)) for kind in registry)


def language_options(registry: Registry) -> Sequence[Added]:
    """The options that texts are read with."""
    return _options(_Owner(language.about, language.options, _marks(kind, language))
                    for kind in registry for language in kind.languages)


def target_options(registry: Registry) -> Sequence[Added]:
    """The options of exports, by the names of their targets."""
    return _options((_Owner(name, target.options, frozenset([name])) for name, target in TARGETS.items()), "target")


class _Owner(NamedTuple):
    """Whose options these are: its name, and what on a command line asks for it: a machine, or the extension of a file."""

    name: str
    options: tuple[Option, ...]
    marks: frozenset[str]


def _marks(kind: Kind, *languages: Language) -> frozenset[str]:
    return frozenset([kind.name, *(extension for language in languages for extension in language.extensions)])


def _options(owners: Iterable[_Owner], prefix: str = "given") -> Sequence[Added]:
    """The options of all owners; those of the same name are one."""
    merged: dict[str, tuple[Option, list[_Owner]]] = {}
    for owner in owners:
        for option in owner.options:
            first, sharing = merged.setdefault(option.name, (option, []))
            sharing.append(owner)
            merged[option.name] = replace(first, least=_widest(min, first.least, option.least),
                                          most=_widest(max, first.most, option.most)), sharing
    return [_click_option(option, sharing, prefix) for option, sharing in merged.values()]


def _widest(choose: Callable[..., float], *bounds: float | None) -> float | None:
    """The bound that all owners can live with; each refuses what is beyond its own."""
    return None if None in bounds else choose(bounds)


def _click_option(option: Option, owners: list[_Owner], prefix: str) -> Added:
    flags = [option.spelling, f"{prefix}_{option.name}"]
    if option.positional:
        return click.argument(flags[1], nargs=-1, metavar=f"[{option.name.upper()}]...")
    shared: dict[str, Any] = {
        "cls": OwnedOption, "help": f"{', '.join(owner.name for owner in owners)}: {option.about}.",
        "marks": frozenset[str]().union(*(owner.marks for owner in owners))}
    if option.many:
        return click.option(*flags, callback=names, metavar="NAME,NAME,...", **shared)
    if option.type is bool:
        return click.option(*flags, is_flag=True, default=None, **shared)
    kind: Any = option.type
    if option.choices:
        kind = click.Choice(list(option.choices))
    elif option.type is int and (option.least, option.most) != (None, None):
        kind = _BoundedNumber(option.least, option.most)  # type: ignore[arg-type]
    elif option.type is int:
        kind = _Number()
    return click.option(*flags, type=kind, **shared)


class _Number(click.types.IntParamType):
    """An integer, decimal or, as addresses are written, hexadecimal."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return int(super().convert(_decimal(value), param, ctx))


class _BoundedNumber(click.IntRange):
    """The same within bounds."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return int(super().convert(_decimal(value), param, ctx))


def _decimal(value: object) -> Any:
    return int(value, 16) if isinstance(value, str) and re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", value) else value


class OwnedOption(click.Option):
    """An option of some machines or languages, by what asks for them."""

    def __init__(self, *given: Any, marks: frozenset[str], **named: Any) -> None:
        super().__init__(*given, **named)
        self.marks = marks


class DesignOption(click.Option):
    """The design, of whatever machine; the help for a FILE has those of its machine."""

    def __init__(self, *given: Any, registry: Iterable[Kind], is_viewed: bool, **named: Any) -> None:
        self.kinds = [kind for kind in registry if kind.designs]
        self.is_viewed = is_viewed
        designs = dict.fromkeys(design for kind in self.kinds for design in kind.designs)
        several = len(self.kinds) > 1
        usual = ", ".join(f"{f'{kind.name} ' * several}{(is_viewed and kind.view_design) or kind.designs[0]}"
                          for kind in self.kinds)
        named |= {"type": click.Choice(list(designs)), "help": f"The machine's design.  [default: {usual}]"}
        super().__init__(*given, **named)

    def asked(self, words: set[str]) -> DesignOption:
        """The option of the machines that these words ask for; without any, of all."""
        kinds = [kind for kind in self.kinds if _marks(kind, *kind.languages) & words]
        return DesignOption(self.opts, registry=kinds, is_viewed=self.is_viewed) if kinds else self


def _with_trace(args: Sequence[str]) -> list[str]:
    """`--trace` may have no value, and its value may be the next word, unless there is a file of that name."""
    found: list[str] = []
    for at, word in enumerate(args):
        if word in TRACES and at and args[at - 1] == "--trace" and not Path(word).exists():
            found[-1] = f"--trace={word}"
        else:
            found.append("--trace=loops" if word == "--trace" else word)
    return found


class ProgramCommand(click.Command):
    """A command that is given a program. Its help groups options by the machines that have them.

    Its option --call takes a name and all arguments that follow, up to the next option. What comes after FILE and -- are
    arguments of the program, where the command takes some.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--call" in args:
            first = args.index("--call") + 1
            last = next((at for at in range(first, len(args)) if re.match("--|-[a-zA-Z]", args[at])), len(args))
            if first < last:
                args = [*args[:first], shlex.join(args[first:last]) if last - first > 1 else args[first], *args[last:]]
        ctx.meta[WORDS] = list(args)
        if {"--help", "-h"} & set(args):
            args = [word for word in args if word != ALL]
        own = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, self._with_arguments(ctx, [*_with_trace(args[:own]), *args[own:]]))

    def _with_arguments(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words with what comes after -- as values of --argument; the first is FILE where there is none before."""
        if "--" not in args or not any(parameter.name == "arguments" for parameter in self.params):
            return args
        at = args.index("--")
        before, after = args[:at], args[at + 1 :]
        has_file = isinstance(self.make_parser(ctx).parse_args(list(before))[0].get("file"), str)
        file = [] if has_file else after[:1]
        return [*before, *(f"--argument={word}" for word in after[len(file) :]), "--", *file]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options in groups; then those of the FILE or the --machine on the command line; with --all, the rest."""
        given = ctx.meta.get(WORDS, [])
        words = {mark for word in given for mark in (word, Path(word).suffix.lower())}
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in (*GROUPS, RUN, ASKED, OTHERS)}
        for parameter in self.get_params(ctx):
            shown = parameter.asked(words) if isinstance(parameter, DesignOption) else parameter
            if isinstance(parameter, click.Option) and (record := shown.get_help_record(ctx)) is not None:
                groups[_group_of(parameter, words)].append(record)
        more = bool(groups[OTHERS]) and ALL not in given
        if more:
            del groups[OTHERS]
        runs = any(parameter.name == "max_steps" for parameter in self.params)
        for title in (PROGRAM, MACHINE, ASKED, RUN, OUTPUT, OTHERS):
            if groups.get(title):
                with formatter.section(title if title != RUN or runs else "Options"):
                    formatter.write_dl(groups[title])
        if more:
            what = "other machines and languages" if groups[ASKED] else "some machines and languages"
            formatter.write_paragraph()
            formatter.write_text(f"There are more options, for {what}: {ctx.command_path} FILE --help shows those of a "
                                 f"FILE, and {ctx.command_path} --help {ALL} shows all.")


PROGRAM, MACHINE, RUN, OUTPUT = "The program", "The machine", "The run", "Output"
ASKED, OTHERS = "For this FILE or --machine", "For other machines and languages"
ALL = "--all"
"""Beside --help: options of every machine and language."""
GROUPS: Mapping[str, frozenset[str]] = {
    PROGRAM: frozenset(["settings", "arguments", "input_"]),
    MACHINE: frozenset(["design", "dtype", "kind_name", OPTION.removeprefix("--").replace("-", "_")]),
    OUTPUT: frozenset(["trace", "as_json", "stats", "html", "loops", "record", "model", "port", "no_open", "target",
                       "output", "overwrite"]),
}
"""Which options belong together, by the names of their parameters; any other is about the run, but for --help, the last."""


def _group_of(parameter: click.Option, words: set[str]) -> str:
    if isinstance(parameter, OwnedOption):
        return ASKED if parameter.marks & words else OTHERS
    usual = OUTPUT if "--help" in parameter.opts else RUN  # what click calls the parameter differs from version to version
    return next((title for title, names in GROUPS.items() if parameter.name in names), usual)


def given_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What was given on the command line for machines and languages, by the names of their options."""
    values = {name.removeprefix("given_"): value for name, value in parameters.items() if value not in (None, ())}
    return {"precision" if name == "dtype" else name: value for name, value in values.items()}


def given_flags(*names: str) -> list[str]:
    """How what is given on the command line is spelled there: options of machines and languages, and these parameters."""
    context = click.get_current_context()
    return ["FILE" if isinstance(parameter, click.Argument) else parameter.opts[0]
            for parameter in context.command.params
            if parameter.name and (parameter.name in names or parameter.name.startswith("given_"))
            and context.params.get(parameter.name) != ()
            and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE]
