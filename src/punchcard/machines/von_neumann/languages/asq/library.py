"""The standard macros of `.asq` text, written in the language itself.

`$z` is 0 before and after each of them. Sources never change, not even for a moment, unless the macro tests them in place
(jlez and its like, which leave them as they were). What a macro needs beside it are scratch cells, shared by all.
"""

from __future__ import annotations

LIBRARY = """
# Copying and adding. Two negations copy, by way of $z.

@def clear x
    x
@end

@def mov a b            # b = a, also where they are one cell
    a $z; b; $z b; $z
@end

@def add a b            # b = b + a
    a $z; $z b; $z
@end

@def sub a b            # b = b - a
    a b
@end

@def neg x              # x = -x
    x $z; $t; $z $t; x; $t x; $z
@end

@def inc x
    =-1 x
@end

@def dec x
    =1 x
@end

# Jumps on one cell. Right for every word, also for the least, whose negation is itself: x <= 0 is what the machine
# tests, and where that holds, x + 1 tells 0 from a negative number and cannot wrap.

@def jump c
    $z $z c
@end

@def halt
    $z $z (-1)
@end

@def jlez x c
    $z x c
@end

@def jgtz x c
    $z x skip
    $z $z c
skip:
@end

@def jsign x below zero above
    $z x low
    $z $z above
low: =-1 x less
    =1 x zero
less: =1 x below
@end

@def jz x c
    @jsign x skip c skip
skip:
@end

@def jnz x c
    @jsign x c skip c
skip:
@end

@def jltz x c
    @jsign x c skip skip
skip:
@end

@def jgez x c
    @jsign x skip c c
skip:
@end

# Jumps on two cells, by their difference. Equality is exact; an order needs a difference that fits the word.

@def jeq a b c
    @mov a $t
    b $t low
    $z $z skip
low: =-1 $t skip
    $z $z c
skip:
@end

@def jne a b c
    @mov a $t
    b $t low
    $z $z c
low: =-1 $t c
@end

@def jle a b c
    @mov a $t
    b $t c
@end

@def jge a b c
    @jle b a c
@end

@def jlt a b c
    @mov b $t
    a $t skip
    $z $z c
skip:
@end

@def jgt a b c
    @jlt b a c
@end

# b = a * b, modulo 2^N for whatever N: the bits of a from the top, doubling and adding. A 1 behind the last of them
# marks the end: when only that is left, x is the least number, the only negative one where x - 1 is positive.

@def mul a b
    @mov a $x
    $n; b $n; b             # n = -b, and b is the product
    $z $x low
    $z $z first
low: =-1 $x negative
    $z $z done              # a = 0
negative: =1 $x
    $n b                    # the top bit
    $x $z; $z $x; $z
    =-1 $x
    $z $z loop
first: $x $z; $z $x; $z
    =-1 $x
leading: $z $x one          # zeros at the top: there is nothing to double yet
    $x $z; $z $x; $z $z leading
loop: $z $x one
    b $z; $z b; $z
    $x $z; $z $x; $z $z loop
one: =1 $x more
    $z $z done
more: =-1 $x
    b $z; $z b; $z
    $n b
    $x $z; $z $x; $z $z loop
done:
@end

# Memory through a pointer: the macro writes the address into its own instructions.

@def load p x           # x = mem[mem[p]]
    here; p $z; $z here; $z
    here:0 $z; x; $z x; $z
@end

@def store x p          # mem[mem[p]] = x
    a; b; c; p $z; $z a; $z b; $z c; $z
    x $z; a:0 b:0; $z c:0; $z
@end

# Routines. One begins with a cell, `. f:0`, which @call sets to minus the return address: that is negative, so
# the same instruction jumps.

@def call f
    f; =back f f+1
back:
@end

@def return f
    to; f to; $z $z to:0
@end

# Input and output.

@def in x               # a character; -1 at the end of the input
    (-1) x
@end

@def out x
    x (-1)
@end

@def puts text          # the cells from the label on, up to the first that is 0 or less
    a; b; =-text a; =-text b
loop: $z a:0 done
    b:0 (-1)
    =-1 a; =-1 b
    $z $z loop
done:
@end

# x in decimal, -99999 to 99999. It counts with minus the absolute value, since the least word has no positive counterpart.

@def outdec x
    $m; x $m                    # m = -x
    $z x low
    $z $z digits
low: @mov x $m
    @jz $m digits
    =45 (-1)                    # a minus
digits: $s; $k; =-4 $k
    a; b; =-powers a; =-powers b
digit: $d
count: a:0 $m larger            # m = m + power
    b:0 $z; $z $m; $z           # once too often
    @jgtz $d show
    @jlez $s next               # a leading zero
show: $s; =-1 $s
    =-48 $d; $d (-1)
next: =-1 a; =-1 b
    =1 $k last
    $z $z digit
larger: =-1 $d; $z $z count
powers: . (-10000) (-1000) (-100) (-10)
last: $d; =-48 $d; $m $d; $d (-1)
@end

# x = the next decimal number of the input, with an optional minus; everything else before it is passed over, and
# the character after it is read as well. At the end of the input, jump to c.

@def indec x c
    $d
between: @mov $d $s             # the character before the number
    (-1) $d
    @jltz $d c
    @mov $d $t
    =47 $t between
    =10 $t first                # $t is the digit minus 9
    $z $z between
first: x
digit: x $z; $z x; $z x; $z x; $z x; $z
    x $z; $z x; $z              # 5 x, then 10 x
    $t $z; $z x; $z
    =-9 x
    (-1) $t
    =47 $t done
    =10 $t digit
done: =45 $s                    # a minus
    @jnz $s end
    @neg x
end:
@end
"""
