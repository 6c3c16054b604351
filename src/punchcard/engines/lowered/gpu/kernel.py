"""The code of one thread, which runs one machine of a batch: states in registers, arrays in shared or global memory.

    machine(group, thread, shared, data, states, tables, made, status, loops, piece, machines)

makes up to `piece` loops more for a machine, and no more than `loops` in all. `made` counts them. `status` of a machine is
0 as long as it continues, 1 where the checks of its next loop fail (that loop has not happened), and 2 + k where pattern k
is on its card. The patterns are part of the code, and so are the cases that the loops have met. Where the next loop is of
another case, that loop has not happened, the status is -3, and the case is behind the states of the machine.

Threads of a warp may be in different cases. All of them meet again behind the cases: a loop that fails continues to its end
without storing anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import Field, StateWord
from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.analysis.plan import LoopParts, LoopPlan
from punchcard.engines.lowered.codegen.emit import CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.floats import I1, I8, I32, I64, bits_of, i32, i64, is_near, resized
from punchcard.engines.lowered.codegen.loop import compute, counted_loop
from punchcard.engines.lowered.gpu.device import LaunchShape
from punchcard.engines.lowered.gpu.memory_layout import MemoryLayout
from punchcard.engines.lowered.pattern_table import PatternTerm

GLOBAL, SHARED = 1, 3
"""Address spaces."""
GOES_ON, FAILED, MATCHED, UNKNOWN_CASE = 0, 1, 2, -3
WORD = 32
"""Bits of a register: a state of no more bits has one."""


class Registers:
    """The memory of a thread: states in registers, and the arrays of its machine from `base` on."""

    together = 1  # threads lie between them

    def __init__(self, b: ir.IRBuilder, code: CodeKind, strips: MemoryLayout, shape: LaunchShape) -> None:
        self.strips, self.shape = strips, shape
        self.base: ir.Value | None = None
        self.words, self.passing = ({word: b.alloca(ir.IntType(WORD if word[0].rows <= WORD else 64)) for word in words}
                                    for words in (code.places.words, code.places.passing))
        self.slots = {slot: b.alloca(ir.ArrayType(code.real, slot.width)) for slot in code.places.slots}

    def state(self, b: ir.IRBuilder, word: StateWord) -> ir.Value:
        return resized(b, b.load(self._state(word)), I64)

    def put_state(self, b: ir.IRBuilder, word: StateWord, value: ir.Value) -> None:
        b.store(resized(b, value, self._state(word).allocated_type), self._state(word))

    def _state(self, word: StateWord) -> ir.AllocaInstr:
        return self.words[word] if word in self.words else self.passing[word]

    def all_states(self, b: ir.IRBuilder, real: ir.Type) -> list[ir.Value]:
        """Pointers to all states as integers: words, then numbers, entry by entry."""
        kind = ir.IntType(bits_of(real)).as_pointer()
        return [*self.words.values(), *(b.bitcast(_lane(b, room, lane), kind) for slot, room in self.slots.items()
                                        for lane in range(slot.width))]

    def numbers(self, b: ir.IRBuilder, slot: StateSlot, kind: ir.Type) -> ir.Value:
        return b.bitcast(self.slots[slot], kind.as_pointer())

    def entry(self, b: ir.IRBuilder, field: Field, column: ir.Value, row: int, kind: ir.Type) -> ir.Value:
        """A column that is not there is the last one, which holds nothing and is never used."""
        strip, granule, threads = self.strips.by_block[field.block], self.strips.granule, self.shape.threads
        place = b.sub(b.trunc(column, I32), i32(strip.first))
        place = b.select(b.icmp_unsigned("<", place, i32(strip.count)), place, i32(strip.count))
        inner = field.offset + (0 if field.bits else row * field.item)
        if strip.stride % granule == 0:
            fixed = (strip.at + inner) // granule * granule * threads + inner % granule
            offset = b.mul(place, i32(strip.stride * threads))
        else:
            fixed = strip.at * threads
            within = b.add(b.mul(place, i32(strip.stride)), i32(inner))
            whole = b.and_(within, i32(-granule))
            offset = b.add(b.mul(whole, i32(threads)), b.sub(within, whole))
        assert self.base is not None
        at = b.gep(b.gep(self.base, [b.zext(offset, I64)]), [i64(fixed)])
        return b.bitcast(at, ir.PointerType(kind, self.base.type.addrspace))


def emit_machine(module: ir.Module, parts: LoopParts, code: CodeKind, strips: MemoryLayout, shape: LaunchShape,
                 patterns: Sequence[Sequence[PatternTerm]]) -> ir.Function:
    """The function of a thread."""
    real = code.real
    bytes_, words, status_kind = ir.PointerType(I8, GLOBAL), ir.PointerType(I64, GLOBAL), ir.PointerType(I32, GLOBAL)
    tables_kind = I32.as_pointer().as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [I32, I32, ir.PointerType(I8, SHARED), bytes_, words, tables_kind, words,
                                           status_kind, I64, I32, I32])
    function = ir.Function(module, kind, "machine")
    group, thread, shared, data, states, tables, made, status, loops, piece, machines = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    memory = Registers(b, code, strips, shape)
    ended, how, end = b.alloca(I32), b.alloca(I32), function.append_basic_block("end")
    key = b.alloca(I64)
    b.store(i64(0), key)
    number = b.add(b.mul(group, i32(shape.threads)), thread)
    at = b.zext(number, I64)
    with b.if_then(b.icmp_unsigned(">=", number, machines)):
        b.ret_void()
    my_status, my_made = b.gep(status, [at]), b.gep(made, [at])
    before = b.load(my_made)
    goes_on = b.and_(b.icmp_unsigned("==", b.load(my_status), i32(GOES_ON)), b.icmp_signed("<", before, loops))
    with b.if_then(b.not_(goes_on)):
        b.ret_void()
    left = b.sub(loops, before)
    limit = b.trunc(b.select(b.icmp_unsigned("<", left, b.zext(piece, I64)), left, b.zext(piece, I64)), I32)
    mine = b.zext(b.mul(thread, i32(strips.granule)), I64)
    own = b.gep(b.gep(data, [b.mul(b.zext(group, I64), i64(strips.size * shape.threads))]), [mine])
    memory.base = own
    if shape.shared:
        memory.base = b.gep(shared, [mine])
        _copy(b, own, memory.base, strips.size // strips.granule, strips.granule, shape.threads)
    registers = memory.all_states(b, real)
    state_at = [b.gep(states, [b.add(b.mul(b.zext(machines, I64), i64(k)), at)]) for k in range(len(registers))]
    for register, state in zip(registers, state_at, strict=True):
        b.store(resized(b, b.load(state), register.type.pointee), register)

    def end_if(condition: ir.Value, count: ir.Value, reason: int) -> None:
        with b.if_then(condition, likely=False):
            b.store(count, ended)
            b.store(i32(reason), how)
            b.branch(end)

    with counted_loop(b, limit) as count:
        b.store(i32(GOES_ON), how)
        _Loop(b, code, memory, tables, how, key).make(parts)
        with b.if_then(b.icmp_unsigned("!=", b.load(how), i32(GOES_ON)), likely=False):
            b.store(count, ended)
            b.branch(end)
        for k, pattern in enumerate(patterns):
            matches = reduce(b.and_, [_matches(b, memory, real, seen) for seen in pattern], ir.Constant(I1, 1))
            end_if(matches, b.add(count, i32(1)), MATCHED + k)
    b.store(limit, ended)
    b.store(i32(GOES_ON), how)
    b.branch(end)
    b.position_at_end(end)
    if shape.shared:
        _copy(b, memory.base, own, strips.kept // strips.granule, strips.granule, shape.threads)
    for register, state in zip(registers, state_at, strict=True):
        b.store(resized(b, b.load(register), I64), state)
    if parts.choose is not None:
        b.store(b.load(key), b.gep(states, [b.add(b.mul(b.zext(machines, I64), i64(len(registers))), at)]))
    b.store(b.add(before, b.zext(b.load(ended), I64)), my_made)
    b.store(b.load(how), my_status)
    b.ret_void()
    return function


class _Loop:
    """The code of one loop. `how` is no longer GOES_ON where it fails; `key` is its case."""

    def __init__(self, b: ir.IRBuilder, code: CodeKind, memory: Registers, tables: ir.Value, how: ir.Value,
                 key: ir.Value) -> None:
        self.b, self.how, self.key = b, how, key
        self._code, self._memory, self._tables = code, memory, tables

    def _emitter(self) -> LoopEmitter:
        return LoopEmitter(self.b, self._code, self._memory, self._tables)

    def make(self, parts: LoopParts) -> None:
        b = self.b
        if parts.choose is None:
            self._part(parts.cases[0], last=True)
            return
        b.store(self._number(parts.choose), self.key)
        if parts.first is not None:
            self._part(parts.first)
        self._choose(b.load(self.key), parts.cases, last=not parts.rest)
        if parts.turn is not None and len(parts.rest) > 1:
            self._choose(self._number(parts.turn), dict(enumerate(parts.rest)), last=True)
        elif parts.rest:
            self._part(parts.rest[0], last=True)

    def _number(self, plan: LoopPlan) -> ir.Value:
        """The selectors of a plan as a number."""
        emitter = self._emitter()
        emitter.lift(plan.forms())
        number = emitter.packed_bits({i: emitter.bit(linear) for i, linear in enumerate(plan.selectors)})
        self._fail_unless(emitter.all_ok(), FAILED)
        return number

    def _choose(self, number: ir.Value, plans: Mapping[int, LoopPlan], *, last: bool) -> None:
        """One of several parts; all paths meet behind them."""
        b = self.b
        other, after = (b.function.append_basic_block(name) for name in ("unknown_case", "after_cases"))
        switch = b.switch(number, other)
        for key, plan in plans.items():
            block = b.function.append_basic_block("case")
            switch.add_case(i64(key), block)
            b.position_at_end(block)
            self._part(plan, last=last)
            b.branch(after)
        b.position_at_end(other)
        self._fail_unless(ir.Constant(I1, 0), UNKNOWN_CASE)
        b.branch(after)
        b.position_at_end(after)

    def _part(self, plan: LoopPlan, *, last: bool = False) -> None:
        """A part of a loop. The last one stores, if nothing has failed; what others leave counts within the loop only."""
        b, emitter = self.b, self._emitter()
        new = compute(emitter, plan)
        self._fail_unless(new.ok, FAILED)
        if last:
            with b.if_then(b.icmp_unsigned("==", b.load(self.how), i32(GOES_ON))):
                new.put(emitter)
        else:
            new.put(emitter)

    def _fail_unless(self, ok: ir.Value, reason: int) -> None:
        """The first failure of a loop counts."""
        b = self.b
        before = b.load(self.how)
        fails = b.and_(b.not_(ok), b.icmp_unsigned("==", before, i32(GOES_ON)))
        b.store(b.select(fails, i32(reason), before), self.how)


def emit_kernel(module: ir.Module, machine: ir.Function) -> None:
    """run(live, data, states, tables, made, status, loops, piece, machines): a block of threads for each group of `live`."""
    machine.linkage = "internal"
    machine.attributes.add("alwaysinline")
    given = machine.args[3:]
    kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(I32, GLOBAL), *(argument.type for argument in given)])
    function = ir.Function(module, kind, "run")
    function.calling_convention = "ptx_kernel"
    array = ir.GlobalVariable(module, ir.ArrayType(I8, 0), "arrays", addrspace=SHARED)
    array.linkage, array.align = "external", 16
    b = ir.IRBuilder(function.append_basic_block("begin"))
    block, thread = (b.call(ir.Function(module, ir.FunctionType(I32, []), f"llvm.nvvm.read.ptx.sreg.{name}.x"), [])
                     for name in ("ctaid", "tid"))
    group = b.load(b.gep(function.args[0], [b.zext(block, I64)]))
    b.call(machine, [group, thread, b.bitcast(array, ir.PointerType(I8, SHARED)), *function.args[1:]])
    b.ret_void()


def _copy(b: ir.IRBuilder, source: ir.Value, target: ir.Value, granules: int, granule: int, threads: int) -> None:
    """A machine's own granules, which lie apart by those of the others."""
    kind = ir.IntType(8 * granule)
    with counted_loop(b, i64(granules)) as k:
        offset = b.mul(k, i64(granule * threads))
        value = b.load(b.bitcast(b.gep(source, [offset]), ir.PointerType(kind, source.type.addrspace)))
        b.store(value, b.bitcast(b.gep(target, [offset]), ir.PointerType(kind, target.type.addrspace)))


def _lane(b: ir.IRBuilder, room: ir.Value, lane: int) -> ir.Value:
    return b.gep(room, [i32(0), i32(lane)])


def _matches(b: ir.IRBuilder, memory: Registers, real: ir.Type, seen: PatternTerm) -> ir.Value:
    """Whether something that a pattern looks at is as it should be."""
    column = i64(seen.column)
    if seen.mask:
        if seen.state is not None:
            word = memory.state(b, seen.state)
        else:
            assert seen.field is not None
            word = resized(b, b.load(memory.entry(b, seen.field, column, 0, ir.IntType(8 * seen.field.item))), I64)
        return b.icmp_unsigned("==", b.and_(word, i64(seen.mask)), i64(seen.wanted))
    if seen.slot is not None:
        number = b.load(_lane(b, memory.slots[seen.slot[0]], seen.slot[1]))
    elif seen.field is not None:
        number = b.load(memory.entry(b, seen.field, column, seen.row, real))
    else:
        return ir.Constant(I1, 0)  # it holds 0, always
    return is_near(b, number, ir.Constant(real, float(seen.wanted)))
