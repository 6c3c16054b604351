# The Fibonacci numbers below 1000, by system calls alone: write is 64, exit is 93.

        .equ    LIMIT, 1000

        .text
        .globl  _start
_start:
        li      s0, 0                   # this number
        li      s1, 1                   # the next one
        li      s2, LIMIT
next:
        mv      a0, s0
        jal     print
        add     t0, s0, s1
        mv      s0, s1
        mv      s1, t0
        bltu    s0, s2, next
        li      a0, 0
        li      a7, 93
        ecall

# Write a0 in decimal, and a newline. Digits are made from the last to the first; division is repeated subtraction.
print:
        la      t0, line_end
        li      t1, '\n'
        addi    t0, t0, -1
        sb      t1, 0(t0)
digit:
        li      t2, 0                   # quotient
        li      t3, 10
subtract:
        bltu    a0, t3, rest
        sub     a0, a0, t3
        addi    t2, t2, 1
        j       subtract
rest:
        addi    a0, a0, '0'
        addi    t0, t0, -1
        sb      a0, 0(t0)
        mv      a0, t2
        bnez    a0, digit
        li      a0, 1
        mv      a1, t0
        la      a2, line_end
        sub     a2, a2, t0
        li      a7, 64
        ecall
        ret

        .bss
line:   .space  16
line_end:
