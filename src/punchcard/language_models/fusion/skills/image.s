# A skill that was compiled to an image of SUBLEQ, and the program that executes it on the card. `python_skill.py` puts the
# image behind it: `image` is its first cell, `cells` how many it has, `text` the cell of the text's first character (its
# length is in the cell before), `room` how many characters it may have, and `result` the cell of what the function returns.
#
# The end of the context is written to the text, the image is executed, and what it wrote is said or forbidden.

        .globl card_context, card_next, card_never, card_opinion
        .equ TOKENS, 256
        .equ BYTES, 16
        .equ MOST, 256                  # bytes of output that are kept

_start: la   s0, image
        li   s1, cells
        la   s3, output                 # where the next byte goes
        addi s4, s3, MOST
        la   s5, card_context

# The tokens from the newest to the left, as long as they can be read and there is room: a2 characters.
        li   a1, TOKENS*BYTES
        add  a1, a1, s5                 # the end of the context
        mv   a0, a1                     # the first token that is taken
        li   a2, 0
older:  beq  a0, s5, taken
        addi t0, a0, -BYTES
        lbu  t1, 0(t0)
        beqz t1, taken                  # before the text
        li   t2, 2
        beq  t1, t2, taken              # a token that cannot be read
        li   t3, 0
count:  add  t4, t0, t3
        lbu  t5, 0(t4)
        beqz t5, counted
        addi t3, t3, 1
        li   t4, BYTES
        bne  t3, t4, count
counted: add t3, a2, t3
        li   t4, room
        blt  t4, t3, taken
        mv   a2, t3
        mv   a0, t0
        j    older

# Their bytes, one in each cell.
taken:  li   t0, text*4
        add  t0, t0, s0
        sw   a2, -4(t0)
token:  beq  a0, a1, begin
        li   t1, 0
byte:   add  t2, a0, t1
        lbu  t3, 0(t2)
        beqz t3, filled
        sw   t3, 0(t0)
        addi t0, t0, 4
        addi t1, t1, 1
        li   t4, BYTES
        bne  t1, t4, byte
filled: addi a0, a0, BYTES
        j    token

# SUBLEQ: an instruction is fetched whole before it is executed.
begin:  mv   s2, s0
next:   lw   t0, 0(s2)
        lw   t1, 4(s2)
        lw   t2, 8(s2)
        bgeu t0, s1, port
        bgeu t1, s1, port
        slli t0, t0, 2
        slli t1, t1, 2
        add  t0, t0, s0
        add  t1, t1, s0
        lw   t0, 0(t0)
        lw   t3, 0(t1)
        addi s2, s2, 12
        sub  t3, t3, t0
        sw   t3, 0(t1)
        bgtz t3, next
        li   t4, cells-2
        bgeu t2, t4, ended
        slli t2, t2, 2
        add  s2, t2, s0
        j    next

# Address -1 as the destination writes a byte. Whatever else is beyond the memory ends the run, without an opinion.
port:   li   t2, -1
        bne  t1, t2, stop
        bgeu t0, s1, stop
        slli t0, t0, 2
        add  t0, t0, s0
        lw   t0, 0(t0)
        addi s2, s2, 12
        beq  s3, s4, next
        sb   t0, 0(s3)
        addi s3, s3, 1
        j    next

# A negative address is the end: what was written is said, or forbidden.
ended:  bgez t2, stop
        li   t0, result*4
        add  t0, t0, s0
        lw   t0, 0(t0)
        la   a0, output
        li   t1, 1
        beq  t0, t1, say
        li   t1, 2
        bne  t0, t1, stop
        la   a1, card_never
forbid: beq  a0, s3, done
        lbu  t1, 0(a0)
        srli t2, t1, 5
        slli t2, t2, 2
        add  t2, t2, a1
        li   t3, 1
        sll  t3, t3, t1                 # by the low five bits
        lw   t4, 0(t2)
        or   t4, t4, t3
        sw   t4, 0(t2)
        addi a0, a0, 1
        j    forbid

say:    beq  a0, s3, stop               # nothing was written
        la   a1, card_next
        addi a2, a1, BYTES
more:   beq  a0, s3, done
        beq  a1, a2, done
        lbu  t1, 0(a0)
        sb   t1, 0(a1)
        addi a0, a0, 1
        addi a1, a1, 1
        j    more

done:   la   t1, card_opinion
        sw   t0, 0(t1)
stop:   ecall

        .data
        .balign 4
card_context: .space TOKENS*BYTES
card_next: .space BYTES
card_never: .space 32
card_opinion: .space 4
output: .space MOST
