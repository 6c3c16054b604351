"""The routines that a compiled program shares: each is in a program only if it is used.

A routine is called with `@go name name_back` and ends with a jump to what its cell `name_back` holds. What it is given and
what it gives are scratch cells: `$p` and `$q` in, `$r` out, and `$u` for a remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from punchcard.machines.von_neumann.languages.asq.items import AsqText, Item
from punchcard.machines.von_neumann.languages.asq.parser import parse
from punchcard.python.integers.division import divide, divide_by

GENERAL = {"no_room": "MemoryError: the memory is full", "no_input": "EOFError: the input has ended",
           "too_deep": "RecursionError: the stack is full",
           "not_ascii": "UnicodeError: the input has a character that is not ASCII"}
"""Errors of routines that serve many places."""
WHOLE = {
    "go": """
@def go routine back    # call a routine that ends with a jump to what `back` holds
    back; =-here back; $z $z routine
here:
@end
""",
    "stack": """
@def push x             # stack_top is minus the address of the next free cell, and the stack holds minus the values
    a; b; c; stack_top a; stack_top b; stack_top c
    a:0 b:0; x c:0
    =1 stack_top
@end

@def pop x
    =-1 stack_top
    a; stack_top a
    x; a:0 x
@end
""",
    "order": """
@def order a b t        # t has the sign of a - b, which may not fit the word itself
    @mov a t
    $z a low
    $z b done           # a > 0 >= b: t is a
    b t done
    $z $z done
low: $z b both
    t; =1 t done        # a <= 0 < b
both: b t least         # wrong for 0 less the least number alone
    $z $z done
least: =-1 t below
    =1 t done           # equal
below: =1 t
    =-1 a negative
    =1 a
    t; =-1 t; $z $z done
negative: =1 a
done:
@end
""",
    "checked": """
@def sum_checked a b t error       # t = a + b; error where that does not fit
    a $z; b $z; t; $z t; $z
    $z a low
    $z b done
    $z t error
    $z $z done
low: $z b both
    $z $z done
both: $z t sign
    $z $z error
sign: =-1 t below
    =1 t
    @jltz a error       # twice the least number is 0
    $z $z done
below: =1 t
done:
@end

@def difference_checked a b t error     # t = a - b; error where that does not fit
    @mov a t
    b t
    $z a low
    $z b mixed
    $z $z done
mixed: $z t error
    $z $z done
low: $z b both
    @jgtz t error
    $z $z done
both: @jnz a done
    @jltz t error
done:
@end
""",
    "failed": """
# An error: write the text at $error and stop, with an access that the machine reports
failed: @mov $error error
    @mov $error $p; @go write_cells write_cells_back
    (-2) (-2)
    @halt
. error:0
""",
    "parse": """
# r = the number that the text at p is; on the way it is minus that, and y counts a minus sign
@def parse_next         # v = the next character, -1 behind the last
    $v; =1 $v
    $z $q end
    @load $w $v
    =-1 $w; =1 $q
end:
@end
@def parse_code
    @mov $p $w; =1 $p; @load $p $q
    $r; $y; $x1
skip: @parse_next
    @jeq $v =32 skip
    @jeq $v =43 first
    @jne $v =45 digit
    =-1 $y
first: @parse_next
digit: @mov $v $t1; =47 $t1 behind; =10 $t1 good
    $z $z behind
good: $x1; =-1 $x1
    @mov $r $t2; =-{tenth} $t2; @jltz $t2 wrong
    @mov $r $t2; @add $r $r; @add $r $r; @add $t2 $r; @add $r $r
    $t1 $r; =9 $r more          # t1 is the digit less 9
    $z $z wrong
more: @parse_next
    $z $z digit
behind: $z $x1 wrong
rest: @jltz $v ready
    @jne $v =32 wrong
    @parse_next
    $z $z rest
wrong: $z $z failed
ready: @jgtz $y done
    @mov $r $t1; $r; $t1 $r
    @jgez $r done
    $z $z failed          # the least number has no positive counterpart
done:
@end
parse: @parse_code
    $z $z parse_back:0
""",
}
"""Macros, and routines with labels of their own."""

BODIES = {
    "allocate": """
# r = the address of a new list of p items, all 0; its length is in the cell before it
    $z $p none
    $z $z sized
none: $p
sized: @mov heap_free $r
    @mov heap_limit $t1; heap_free $t1 full; $p $t1 full
    @store $p heap_free
    =-1 $r
    @add $p heap_free; =-1 heap_free
    $z $z done
full: $z $z no_room
done:
""",
    "fill": """
# the list at p, of q items, is filled with v
    $w; $v $w; a; b; c; $p $z; $z a; $z b; $z c; $z
    $z $q done
each: a:0 b:0; $w c:0
    =-1 a; =-1 b; =-1 c
    =1 $q done
    $z $z each
done:
""",
    "shift_left": """
# r = p << q, for q >= 0
    @mov $p $r
    @mov $q $t1; ={bits} $t1 few
    $r; $z $z done
few: $z $q done
loop: $r $z; $z $r; $z
    =1 $q done
    $z $z loop
done:
""",
    "power_of_two": """
# q = 2 to the power of q, for q >= 0; where that does not fit, p becomes 0 or -1, which is p >> q
    $r; =-1 $r
    @mov $q $t1; ={top} $t1 few
    @jltz $p below
    $p; $z $z ready
below: $p; =1 $p; $z $z ready
few: $z $q ready
loop: $r $z; $z $r; $z
    =1 $q ready
    $z $z loop
ready: @mov $r $q
""",
    "power": """
# r = p to the power of q, for q >= 0
    @mov $p $base; @mov $q $exponent
    $power; =-1 $power
loop: $z $exponent done
    @mov $exponent $p; @go divide_by_2_plain divide_by_2_back
    @mov $r $exponent
    $z $u even
    @mov $base $p; @mov $power $q; @go multiply multiply_back
    @mov $r $power
even: $z $exponent done
    @mov $base $p; @mov $base $q; @go multiply multiply_back
    @mov $r $base
    $z $z loop
done: @mov $power $r
""",
    "multiply_checked": """
# r = p * q; if that does not fit, the text at $error is written
    @mov $p $one; @mov $q $other
    @go multiply multiply_back
    @jz $one done
    @mov $r $product
    @mov $r $p; @mov $one $q; @go divide divide_back
    @jne $r $other wrong
    @jnz $u wrong
    @jgez $one right            # the least number times -1 divides back to itself
    @jgez $other right
    @jgez $product right
wrong: $z $z failed
right: @mov $product $r
done:
""",
    "contains": """
# r = 1 where v is among the items of the list at p, else 0
    $r; at; $p $z; $z at; $z
    @mov $p $t1; =1 $t1; @load $t1 $q
loop: $z $q done
    $t1; at:0 $t1; $v $z; $z $t1; $z
    @jz $t1 found
    =-1 at; =1 $q; $z $z loop
found: =-1 $r
done:
""",
    "same_text": """
# r = 0 where the texts at p and q are equal, their lengths first
    a; b; =1 $p; =1 $q; $p $z; $z a; $z; $q $z; $z b; $z
    @load $p $w; =-1 $w
    $r; =-1 $r
loop: $t1; a:0 $t1; $y; b:0 $y; $y $t1
    @jnz $t1 done
    =-1 a; =-1 b
    =1 $w equal
    $z $z loop
equal: $r
done:
""",
    "reversed": """
# r = the text at p, the other way round
    @mov $p $w; @mov $p $t1; =1 $t1; @load $t1 $v
    @mov $v $p; @go allocate allocate_back
    @mov $r $y; @add $v $y; =1 $y
loop: $z $v done
    @load $w $t1; @store $t1 $y
    =-1 $w; =1 $y; =1 $v
    $z $z loop
done:
""",
    "write_text": """
# write the text at p
    at; $p $z; $z at; $z
    =1 $p; @load $p $q
loop: $z $q done
    at:0 (-1)
    =-1 at; =1 $q; $z $z loop
done:
""",
    "write_cells": """
# write the cells from p on, up to the first that is 0
    a; b; $p $z; $z a; $z b; $z
loop: $z a:0 done
    b:0 (-1)
    =-1 a; =-1 b
    $z $z loop
done:
""",
    "read_line": """
# r = the next line of the input, a new text; its length is in the cell before it
    @mov heap_free $w; =-1 $w
    @mov $w $r; $q
next: @mov heap_limit $t2; $w $t2 full
    (-1) $t1
    @jltz $t1 ended
    @jeq $t1 =10 line
    @mov $t1 $t2; =127 $t2 ascii
    $z $z not_ascii
full: $z $z no_room
ascii: @store $t1 $w
    =-1 $w; =-1 $q
    $z $z next
ended: $z $q nothing
    $z $z line
nothing: $z $z no_input
line: @store $q heap_free
    @mov $w heap_free
""",
}
"""Bodies of routines: a comment, and what is done between the label and the jump back."""

BODIES["power_checked"] = BODIES["power"].replace("multiply", "multiply_checked")
USES: Mapping[str, tuple[str, ...]] = {
    "stack": ("too_deep",), "multiply_checked": ("multiply", "divide", "failed"), "power": ("multiply", "divide_by_2"),
    "power_checked": ("multiply_checked", "divide_by_2"), "allocate": ("no_room", "heap"), "reversed": ("allocate",),
    "failed": ("write_cells",), "read_line": ("no_room", "no_input", "not_ascii", "heap"), "parse": ("failed",)}
"""The routines that a routine uses."""


def multiply(bits: int) -> str:
    """r = p * q modulo 2^N: the bits of p from the top, doubling and adding."""
    top = bits - 2
    lines = ["# r = p * q, modulo 2^N: the bits of p from the top; a 0 costs 1 step before the first 1, and 5 after it",
             "@def multiply_bit power",
             "    $r $z; $z $r; $z",
             "    =power $y zero",
             "    $n $r; $z $z next",
             "zero: =-power $y",
             "next:",
             "@end",
             "@def multiply_lead power then      # y is p + 1 less twice the power",
             "    =-power $y zero",
             "    $z $z then",
             "zero:",
             "@end",
             "multiply: $y; $n; $z $p multiply_low",
             "    $q $n; $p $z; $z $y; $z; $z $z multiply_start",
             "multiply_low: $p $y              # p <= 0: minus both",
             "    @mov $q $n",
             "    $z $y multiply_edge",
             f"multiply_start: $r; $n $r; =-1 $y; ={1 << (bits - 1)} $y"]
    lines += [f"    @multiply_lead {1 << k} multiply_{k - 1}" for k in range(top, 0, -1)]
    lines += [f"    @multiply_lead {1} multiply_end",
              "    $r; $z $z multiply_end           # p is 0",
              "multiply_edge: @jz $y multiply_none        # p is the least number: q times that",
              f"    $r; $n $r; $y; =-1 $y; $z $z multiply_{top}",
              "multiply_none: $r; $z $z multiply_end"]
    lines += [f"multiply_{k}: @multiply_bit {1 << k}" for k in range(top, -1, -1)]
    return "\n".join([*lines, "multiply_end: $z $z multiply_back:0", ""])


def both_bits(bits: int) -> str:
    """r = p & q, bit by bit from the top."""
    half = 1 << (bits - 1)
    lines = ["# r = p & q, from the top bit on",
             "@def both_bit power",
             "    =power $y no",
             "    =power $w one",
             "    =-power $r; $z $z next",
             "one: =-power $w; $z $z next",
             "no: =-power $y",
             "    =power $w other",
             "    $z $z next",
             "other: =-power $w",
             "next:",
             "@end",
             "both_bits: @mov $p $y; @mov $q $w; $r",
             f"    @jgez $p both_first; =-{half} $y",
             f"    @jgez $q both_ready; =-{half} $w; ={half} $r; $z $z both_ready",
             f"both_first: @jgez $q both_ready; =-{half} $w",
             "both_ready: =-1 $y; =-1 $w"]
    lines += [f"    @both_bit {1 << k}" for k in range(bits - 2, -1, -1)]
    return "\n".join([*lines, "    $z $z both_bits_back:0", ""])


def write_number(bits: int) -> str:
    """p in decimal, counted down from the highest power of ten that a word holds."""
    count = len(str(1 << (bits - 1))) - 1
    lines = ["# write p in decimal; m is minus its absolute value, and d the digit as a character",
             "write_number: $m; $d; =-48 $d; $z $p write_low",
             "    $p $m; $z $z digits",
             "write_low: @mov $p $m; =-1 $m write_minus",
             "    =1 $m; $z $z digits",
             "write_minus: =1 $m; =45 (-1)"]
    for k in range(count, 0, -1):
        step = f"=-{10**k}" if k == count else f"={9 * 10**k}"
        lines.append(f"{'digits: ' if k == count else '    '}{step} $m hit_{k}")
    if count:
        lines.append("    =10 $m; $z $z digit_0")
    for k in range(count, 0, -1):
        lines += [f"digit_{k}: $d; =-48 $d; =-{10**k} $m hit_{k}; $z $z out_{k}",
                  f"hit_{k}: =-1 $d; =-{10**k} $m hit_{k}",
                  f"out_{k}: ={10**k} $m; $d (-1)"]
    lines += [("digit_0" if count else "digits") + ": $d; =-48 $d; $m $d; $d (-1)", "    $z $z write_number_back:0", ""]
    return "\n".join(lines)


MAKERS: Mapping[str, Callable[[int], str]] = {
    "multiply": multiply, "divide": divide, "both_bits": both_bits, "write_number": write_number}
"""Routines that have a part for each bit of a word."""


@dataclass(frozen=True)
class Routine:
    """A routine: its text, what that is parsed to, and the names of the routines that it uses."""

    text: str
    parsed: AsqText
    uses: tuple[str, ...]


@cache
def find_routine(name: str, bits: int) -> Routine:
    """A routine for words of so many bits; its items belong to no line of a program."""
    if name.startswith("divide_by_"):
        text = divide_by(int(name.rpartition("_")[2]), bits)
    elif name in MAKERS:
        text = MAKERS[name](bits)
    elif name in WHOLE:
        text = WHOLE[name].format(tenth=(1 << (bits - 1)) // 10)
    else:
        about, _, body = BODIES[name].format(bits=bits, top=bits - 2).strip("\n").partition("\n")
        text = f"{about}\n@def {name}_code\n{body}\n@end\n{name}: @{name}_code\n    $z $z {name}_back:0\n"
    parsed = parse(text, "routines")
    items: list[Item] = [replace(item, token=item.token._replace(line=0)) for item in parsed.items]
    return Routine(text, replace(parsed, items=items), USES.get(name, ()))
