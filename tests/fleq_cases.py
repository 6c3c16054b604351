"""FLEQ cases: one call as a program, random programs that terminate, and a comparison loop by loop."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from punchcard.card.encoding import decode_bits
from punchcard.errors import ProgramError
from punchcard.machines.checkpoint import begin, resume
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.functions import BUILT_IN, Function, Shape, ShapeMismatch
from punchcard.machines.fleq.isa import Array, Call, FleqProgram, FleqState, Instruction, PointerUpdate, Step, pointers
from punchcard.machines.fleq.machine import FleqMachine, pointer_constants
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.result import Report
from tests.cases import soaked
from tests.thin_model import ThinModel

DESIGNS = ("compact", "three-layer", "paper")
MANY = ("compact", soaked("three-layer"), "paper")
"""For tests of many functions: the design in three layers computes them with the compact one's formulas."""
POINTER_FUNCTIONS = ("incr_pointer", "reset_pointer")
RANGE = 64.0


def operand_shapes(function: Function, rng: np.random.Generator, d: int) -> tuple[Shape, ...]:
    """Random shapes up to d that fit a function; those of a user's own have one shape."""
    rows, left, right = (int(n) for n in rng.integers(1, d + 1, 3))
    shapes: Mapping[str, tuple[Shape, ...]] = {
        "mul": (Shape(rows, left), Shape(rows, right)),
        "hadamard": (Shape(rows, 1),) * 2,
        "inverse": (Shape(1, 1),),
        "sqrt": (Shape(1, 1),),
    }
    return shapes.get(function.name, (Shape(rows, left),) * function.arity)


def draw_operand(function: Function, shape: Shape, rng: np.random.Generator, size: float = 1.0) -> Array:
    """Entries uniform in [-size, size], or in the function's domain."""
    low, high = function.domain or (-size, size)
    return rng.uniform(low, high, (shape.rows, shape.columns))


def one_call(function: Function, *operands: Array, limit: float, around: int = 0) -> FleqProgram:
    """c = f(a, b) as a program, with `around` columns of zeros before, between and after the variables."""
    p = Builder()

    def junk(number: int) -> None:
        if around:
            p.matrix(f"junk{number}", shape=(1, around))

    for number, (name, value) in enumerate(zip("ab", operands, strict=False)):
        junk(number)
        p.matrix(name, value)
    junk(len(operands))
    p.call(function, *"ab"[: len(operands)], into="c")
    junk(len(operands) + 1)
    return p.program(limit)


def results(machine: FleqMachine, programs: Sequence[FleqProgram]) -> list[Array]:
    """The variable c after one loop, for programs of one call, all at once."""
    after = machine.model(torch.stack([machine.punch(program) for program in programs]))
    return [program.named(machine.read(card).memory)["c"] for program, card in zip(programs, after, strict=True)]


def audited_run(machine: FleqMachine, program: FleqProgram, *, max_steps: int | None = None) -> Report[FleqState]:
    """A run on the dense engine with every instruction compared."""
    return resume(begin(program, machine, engine="dense", max_steps=max_steps))


def contents(machine: FleqMachine, card: torch.Tensor, region: str) -> torch.Tensor:
    """The columns of a region, with what has just been written."""
    return machine.layout.get(card, "data", region) + machine.layout.get(card, "incoming", region)


def with_junk(machine: FleqMachine, program: FleqProgram, rng: np.random.Generator) -> torch.Tensor:
    """A card with numbers up to 1,000 in every column that is not the program's, and in its variables `junk`."""
    card = machine.punch(program)
    used = {c for v in program.variables if not v.name.startswith("junk") for c in v.columns}
    used |= set(range(program.columns, program.columns + len(pointer_constants(program))))
    spare = sorted(set(range(machine.sizes.memory)) - used)
    junk = rng.uniform(-1e3, 1e3, (machine.sizes.data_rows, len(spare)))
    machine.layout.get(card, "data", "memory")[:, spare] = torch.from_numpy(junk)
    return card


def check_result(
    machine: FleqMachine, function: Function, program: FleqProgram, old: torch.Tensor, new: torch.Tensor, about: str,
) -> None:
    """c = f(a, b) within the bound, exactly 0 below; every other cell, and every instruction, is bit-identical."""
    expected = function.reference(*(program.values[x] for x in "ab"[: function.arity]))
    columns = list(next(v for v in program.variables if v.name == "c").columns)
    written = contents(machine, new, "memory")[:, columns].numpy()
    assert np.abs(written[: len(expected)] - expected).max() <= machine.bound(function.name), about
    assert not written[len(expected) :].any(), f"{about}: rows beyond the result are exactly 0"
    kept = [c for c in range(machine.sizes.memory) if c not in columns]
    assert torch.equal(contents(machine, old, "memory")[:, kept], contents(machine, new, "memory")[:, kept]), about
    assert torch.equal(*(contents(machine, card, "instructions") for card in (old, new))), about


# Random programs


@dataclass
class _Draft:
    """A program being drawn: places by shape, and statements whose pointer functions come last."""

    rng: random.Random
    places: dict[str, Shape]
    targets: list[str]
    flags: list[str]
    statements: list[str] = field(default_factory=list)

    def pick(self, names: Sequence[str]) -> str:
        return self.rng.choice(names)


def random_source(rng: random.Random, d: int, functions: Sequence[str], memory: int, instructions: int) -> str:
    """The text of a program: counters n0 and n1 bound its backward branches, `one` counts them up."""
    lines = [f".range {RANGE}", ".data", "one scalar 1"]
    draft = _Draft(rng, {"one": Shape(1, 1)}, [], [])
    for name, value in (("n0", rng.randint(-3, 0)), ("n1", rng.randint(-2, 1)), ("k", rng.randint(-1, 1))):
        lines.append(f"{name} scalar {value}")
        draft.places[name] = Shape(1, 1)
        draft.flags.append(name)
    room = memory - 4 - 4  # four for pointer constants
    number = 0
    while room > 0:
        shape = Shape(rng.randint(1, d), min(room, rng.randint(1, d)))
        name = f"v{number}"
        small = rng.random() < 0.3
        entries = [[float(rng.randint(-1, 1)) if small else rng.uniform(-2, 2) for _ in range(shape.columns)]
                   for _ in range(shape.rows)]
        lines.append(f"{name} matrix {shape} " + " ; ".join(" ".join(map(repr, row)) for row in entries))
        draft.places[name] = shape
        draft.targets.append(name)
        if shape.columns > 1:
            columns = [f"{name}[{i}]" for i in range(shape.columns)]
            draft.places.update(dict.fromkeys(columns, Shape(shape.rows, 1)))
            draft.targets += columns
        room -= shape.columns
        number += 1
    count = rng.randint(max(3, instructions // 2), instructions - 1)
    calls = [name for name in functions if name not in POINTER_FUNCTIONS]
    _draw_code(draft, count, calls, pointer_functions=len(calls) < len(functions))
    return "\n".join([*lines, ".code", *draft.statements, "halt"])


def _draw_code(draft: _Draft, count: int, functions: Sequence[str], pointer_functions: bool) -> None:
    rng = draft.rng
    for number in range(count):
        kind = rng.random()
        forward = f"goto {rng.randint(number + 1, count)}"
        if number and kind < 0.15:
            counter = rng.choice(("n0", "n1"))
            text = f"{counter} = add({counter}, one); if {counter} <= 0 goto {rng.randrange(number)}"
        elif kind < 0.22:
            text = f"if {draft.pick(draft.flags)} <= 0 {forward}"
        elif kind < 0.26:
            text = forward
        else:
            text = _draw_call(draft, functions)
            if rng.random() < 0.3:
                text += f"; if {draft.pick(draft.flags)} <= 0 {forward}" if rng.random() < 0.8 else f"; {forward}"
        draft.statements.append(text)
    if pointer_functions:
        _draw_pointer_functions(draft, count)


def _draw_call(draft: _Draft, functions: Sequence[str]) -> str:
    """A call whose shapes fit: `k` is copied where no function was found in some tries."""
    for _ in range(60):
        function = BUILT_IN[draft.pick(functions)]
        operands = [draft.pick(list(draft.places)) for _ in range(function.arity)]
        try:
            shape = function.shape(*(draft.places[name] for name in operands))
        except ShapeMismatch:
            continue
        fitting = [name for name in draft.targets if draft.places[name] == shape]
        if fitting:
            return f"{draft.pick(fitting)} = {function.name}({', '.join(operands)})"
    return "k = transpose(k)" if "transpose" in functions else "k = add(k, one)"


def _draw_pointer_functions(draft: _Draft, count: int) -> None:
    """Put some in place of other statements: on the next instruction, a branch's target, or any."""
    rng = draft.rng
    for number in rng.sample(range(count), rng.randint(0, min(3, count))):
        changed = number + 1 if rng.random() < 0.5 else rng.randrange(count)
        if changed >= count:
            continue
        text = draft.statements[changed]
        fields = [*("c" * ("=" in text.split(";")[0].replace("<=", ""))), *("flag", "p") * ("if " in text)]
        if "(" in text:
            fields += ["a", "b"] if "," in text else ["a"]
        if "pointer(" in text:
            fields = ["p"] * ("goto" in text)
        if "goto" in text and "p" not in fields:
            fields.append("p")
        if not fields:
            continue
        name = rng.choice(fields)
        if rng.random() < 0.5:
            update = f"incr_pointer({changed}.{name})"
        elif name == "p":
            update = f"reset_pointer({changed}.p, {rng.randint(min(number + 1, count), count)})"
        else:
            update = f"reset_pointer({changed}.{name}, {draft.pick(draft.flags if name == 'flag' else draft.targets)})"
        if rng.random() < 0.3:
            update += f"; if {draft.pick(draft.flags)} <= 0 goto {rng.randint(number + 1, count)}"
        draft.statements[number] = update


def random_program(rng: random.Random, machine: FleqMachine, max_steps: int) -> FleqProgram:
    """Drawn until one fits the machine and the interpreter runs it to its end without complaint."""
    while True:
        source = random_source(rng, machine.sizes.size, machine.sizes.functions, machine.sizes.memory,
                               machine.sizes.instructions)
        try:
            program = assemble(source)
        except ProgramError:
            continue  # a pointer that an earlier change took away
        if program.columns + len(pointer_constants(program)) <= machine.sizes.memory and is_sound(program, max_steps):
            return program


def is_sound(program: FleqProgram, max_steps: int) -> bool:
    """Whether a run halts within the steps, stays in the range and in the functions' domains, and has integer flags."""
    interpreter = FleqInterpreter(program, check_range=True)
    while not interpreter.halted:
        if interpreter.steps >= max_steps:
            return False
        instruction = interpreter.instructions[interpreter.program_counter]
        if isinstance(instruction, Step) and isinstance(instruction.action, Call) and not _defined(
            program, instruction.action, interpreter.memory
        ):
            return False
        try:
            interpreter.step()
        except ProgramError:
            return False
    return interpreter.steps >= 3


def _defined(program: FleqProgram, call: Call, memory: Array) -> bool:
    function = program.functions[call.function]
    low, high = function.domain or (-np.inf, np.inf)
    entries = memory[: call.a_shape.rows, call.a : call.a + call.a_shape.columns]
    return bool(np.all((low <= entries) & (entries <= high)))


# Comparison


def compare(
    machine: FleqMachine, programs: Sequence[FleqProgram], tolerance: float | None = 0.0, seed: object = None,
) -> int:
    """Run the programs side by side, each against an interpreter, after every loop; how many instructions that were.

    Compared are memory, program counter and the pointers of an instruction that was changed; all pointers at the end.
    Each instruction is judged by itself: the interpreter begins it with what is on the card, so that no function is blamed
    for the error of an operand. `tolerance` is what a result may differ by, None: the bound of its function. All other cells
    stay as they are. A program that has halted leaves.
    """
    pairs = [(number, program, FleqInterpreter(program, check_range=False)) for number, program in enumerate(programs)]
    cards = torch.stack([machine.punch(program) for program in programs])
    layout, sizes, model = machine.layout, machine.sizes, ThinModel(machine.model)
    steps, loop = 0, 0
    memory = contents(machine, cards, "memory").double().numpy()
    while pairs:
        loop += 1
        cards, before = model(cards), memory
        memory = contents(machine, cards, "memory").double().numpy()
        counters = decode_bits(layout.get(cards, "program_counter", "scratchpad"))[:, 0] - sizes.instruction_column
        for row, (number, program, interpreter) in enumerate(pairs):
            executed = interpreter.instructions[at := interpreter.program_counter]
            interpreter.memory[:, : program.columns] = before[row, : program.rows, : program.columns]
            allowed = _allowed(machine, program, executed, interpreter.memory, tolerance)
            with np.errstate(invalid="ignore"):
                interpreter.step()
            place = f"seed {seed}, program {number}, loop {loop}, instruction {at}"
            assert int(counters[row]) == interpreter.program_counter, f"{place}: program counter"
            expected = np.zeros((sizes.data_rows, program.columns))
            expected[: program.rows] = interpreter.memory[:, : program.columns]
            error = np.abs(memory[row, :, : program.columns] - expected).max(axis=0)
            wrong_cells = ~(error <= allowed) & (allowed < np.inf)
            assert not wrong_cells.any(), f"{place}: memory is off by {error[wrong_cells].max():g}"
            looked_at: Sequence[int] = ()
            if isinstance(executed, Step) and isinstance(executed.action, PointerUpdate):
                looked_at = (executed.action.instruction,)
            if interpreter.halted:
                steps += interpreter.steps
                looked_at = range(len(interpreter.instructions))
            wrong = [i for i in looked_at if not _same_pointers(machine, cards[row], interpreter, i)]
            assert not wrong, f"{place}: other pointers of instruction {wrong}"
        going = [row for row, (_, _, interpreter) in enumerate(pairs) if not interpreter.halted]
        pairs, cards, memory = [pairs[row] for row in going], cards[going], memory[going]
    return steps


def _allowed(
    machine: FleqMachine, program: FleqProgram, executed: Instruction, memory: Array, tolerance: float | None
) -> Array:
    """What each column of the memory may differ by: what a call writes by its tolerance, all others not at all.

    Of an operand that an error has carried beyond the function's domain nothing is known.
    """
    allowed = np.zeros(program.columns)
    if isinstance(executed, Step) and isinstance(executed.action, Call):
        call = executed.action
        found = machine.bound(call.function) if tolerance is None else tolerance
        allowed[call.c : call.c + call.c_shape.columns] = found if _defined(program, call, memory) else np.inf
    return allowed


def _same_pointers(machine: FleqMachine, card: torch.Tensor, interpreter: FleqInterpreter, instruction: int) -> bool:
    """Pointers that leave the card wrap modulo 2^L there; such a pointer is an error as soon as it is used."""
    found, names = machine.design.pointers(machine.design.instruction(card, instruction)), 1 << machine.sizes.pointer_bits
    return all((found[name] - value) % names == 0
               for name, value in pointers(interpreter.instructions[instruction]).items())


def check_random_programs(
    machine: FleqMachine, rng: random.Random, wanted: int, *, batch: int = 32, max_steps: int = 60,
) -> int:
    """Compare random programs in batches until `wanted` executed instructions have been checked."""
    checked = 0
    while checked < wanted:
        seed = rng.getrandbits(32)
        source = random.Random(seed)
        programs = [random_program(source, machine, max_steps) for _ in range(batch)]
        checked += compare(machine, programs, None, seed)
    return checked
