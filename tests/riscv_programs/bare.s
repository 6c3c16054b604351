# The frame of a test for a bare machine: it ends by a call with the number of the failed case in gp, or with 1 there.
# Cases leave what they expect in t6, and what they found in a0. A trap goes to `handler`, but for calls.
start:
    j begin
    .align 2
trap:
    csrr t5, mcause
    li t6, 8
    beq t5, t6, write
    li t6, 11
    beq t5, t6, write
    j handler
write:
    la t5, tohost
again:
    sw gp, 0(t5)
    sw zero, 4(t5)
    j again
wrong:
    slli gp, gp, 1
    ori gp, gp, 1
    ecall
right:
    fence
    li gp, 1
    ecall
    .align 6
tohost:
    .word 0, 0
begin:
    csrr a0, mhartid
    bnez a0, wrong
    la t0, next1        # registers of other machines: each may trap
    csrw mtvec, t0
    csrwi 0x744, 8
    .align 2
next1:
    la t0, next2
    csrw mtvec, t0
    csrwi 0x180, 0
    .align 2
next2:
    la t0, next3
    csrw mtvec, t0
    li t0, 0x7fffffff
    csrw pmpaddr0, t0
    li t0, 31
    csrw pmpcfg0, t0
    .align 2
next3:
    csrwi mie, 0
    la t0, next4
    csrw mtvec, t0
    csrwi 0x302, 0
    csrwi 0x303, 0
    .align 2
next4:
    la t0, trap
    csrw mtvec, t0
    csrwi mstatus, 0
    li a0, MODE
    csrs mstatus, a0
    la t0, cases
    csrw mepc, t0
    mret
cases:
