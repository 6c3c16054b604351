"""The routines of division: multiples of the divisor, doubled as long as they fit, are subtracted from the largest on.

Where a bit of the quotient is 0 the multiple stays subtracted, and the next one, half as large, is added: so a bit costs
one instruction, and two where it is 1. `$s` is minus what is left, `$n` minus the quotient. `=2^k $n` always jumps, since
the result is never positive.
"""

from __future__ import annotations

COPY = "$s; {0} $z; $z $s; $z"


def _down(name: str, top: int, larger: list[str], smaller: list[str], start: str) -> list[str]:
    """The bits of the quotient from `top` on; operands by level: minus the multiple, and the multiple."""
    lines = []
    for k in range(top, -1, -1):
        then = f"{name}_try_{k - 1}" if k else f"{name}_end"
        other = f"{name}_back_{k - 2}" if k > 1 else f"{name}_last" if k else ""
        lines.append(f"{name}_one_{k}: ={1 << k} $n {then}")
        if k:
            lines.append(f"{name}_try_{k - 1}: {larger[k - 1]} $s {name}_one_{k - 1}; $z $z {other}")
    lines = [f"{start} {larger[top]} $s {name}_one_{top}; $z $z {f'{name}_back_{top - 1}' if top else f'{name}_last'}"
             if start else "", *lines]
    for k in range(top - 1, -1, -1):
        lines.append(f"{name}_back_{k}: {smaller[k]} $s {name}_one_{k}")
    lines.append(f"{name}_last: {smaller[0]} $s")
    return [line for line in lines if line]


def divide_by(divisor: int, bits: int) -> str:
    """r = p // divisor and u = p % divisor, for a constant divisor above 0; `_plain` is the entry for p >= 0."""
    name = f"divide_by_{divisor}"
    top = ((1 << (bits - 1)) - 1).bit_length() - divisor.bit_length()
    while divisor << top > (1 << (bits - 1)) - 1:
        top -= 1
    larger, smaller = ([f"={sign * (divisor << k)}" for k in range(top + 1)] for sign in (-1, 1))
    lines = [f"# r = p // {divisor} and u = p % {divisor}. For p < 0 it divides -p - 1: p // d is -1 less that quotient",
             f"{name}: $z $p {name}_low",
             f"{name}_plain: $f; $n; $s; $p $s; $z $z {name}_go",
             f"{name}_low: $f; $n; {COPY.format('$p')}; =-1 $s {name}_flip; $s; $z $z {name}_go",
             f"{name}_flip: =-1 $f",
             *_down(name, top, larger, smaller, f"{name}_go:"),
             f"{name}_end: $r; $u; $z $f {name}_same",
             f"    @mov $n $r; =1 $r; @mov $s $u; ={1 - divisor} $u; $z $z {name}_done",
             f"{name}_same: $n $r; $s $u",
             f"{name}_done: $z $z {name}_back:0", ""]
    return "\n".join(lines)


def divide(bits: int) -> str:
    """r = p // q and u = p % q, for q other than 0; `divide_plain` is the entry for p >= 0 and q > 0."""
    top = bits - 2
    larger, smaller = ([f"${sign}{k}" for k in range(top + 1)] for sign in "ab")
    lines = ["# r = p // q and u = p % q, as Python rounds. $b0 is the divisor without its sign, $a0 minus that; $b1, $b2,",
             "# ... twice that, and so on. f is 1 where -p - 1 or p - 1 is divided: then -1 less that quotient is wanted;",
             "# f is 2 where p + 1 is divided for -p; g is 1 where the divisor is negative",
             "divide: $a0; $b0; $n; $f; $g",
             "    $z $q divide_negative",
             "    $q $a0; $a0 $b0",
             "    $z $p divide_low",
             "    $s; $p $s; $z $z divide_go",
             f"divide_low: {COPY.format('$p')}; =-1 $s divide_flip; $s; $z $z divide_end",
             "divide_negative: $q $b0; $b0 $a0; =-1 $g",
             "    $z $p divide_both",
             "    $s; $p $s; =-1 $s; =-1 $f; $z $z divide_least",
             f"divide_both: {COPY.format('$p')}; =-1 $s divide_more; $s; $z $z divide_end",
             "divide_more: =-2 $f",
             "divide_least: $z $b0 divide_end       # the divisor is the least number: the quotient is 0",
             "    $z $z divide_go",
             "divide_plain: $a0; $b0; $n; $f; $g; $q $a0; $a0 $b0; $s; $p $s; $z $z divide_go",
             "divide_flip: =-1 $f",
             "divide_go: $t1; $s $z; $z $t1; $z; $a0 $t1 divide_fits_0; $z $z divide_end",
             "@def divide_double minus next_minus next_plus take",
             "    minus $t1 more; $z $z take",
             "more: next_plus; minus next_plus; minus next_plus; next_minus; next_plus next_minus",
             "@end"]
    for k in range(top):
        lines.append(f"divide_fits_{k}: @divide_double {larger[k]} {larger[k + 1]} {smaller[k + 1]} divide_take_{k}")
    lines.append(f"divide_fits_{top}:")
    for k in range(top, -1, -1):
        lines.append(f"divide_take_{k}: {larger[k]} $s; $z $z divide_one_{k}")
    lines += _down("divide", top, larger, smaller, "")
    lines += ["divide_end: $r; $n $r; $z $f divide_sign; =1 $f divide_flipped",
              "    =1 $s; $a0 $s divide_whole; $b0 $s; $z $z divide_sign",
              "divide_whole: =-1 $r; $z $z divide_sign",
              "divide_flipped: @mov $n $r; =1 $r; $t1; $s $t1; $b0 $t1; =-1 $t1; @mov $t1 $s",
              "divide_sign: $u; $s $u; $z $g divide_done; @mov $s $u",
              "divide_done: $z $z divide_back:0", ""]
    return "\n".join(lines)
