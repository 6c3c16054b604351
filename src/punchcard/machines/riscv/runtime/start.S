# Where a C program begins. The machine has set sp to the end of its memory; memory that the file does not fill is zero.

        .section .init, "ax"
        .globl  _start
        .type   _start, @function
_start:
        .option push
        .option norelax
        la      gp, __global_pointer$
        .option pop
        la      tp, __tls_base          # variables of a thread; there is one thread
        la      s0, __init_array_start  # constructors run before main
        la      s1, __init_array_end
1:      beq     s0, s1, 2f
        lw      t0, 0(s0)
        jalr    t0
        addi    s0, s0, 4
        j       1b
2:      li      a0, 0                   # argc
        li      a1, 0                   # argv
        call    main
        call    exit
        .size   _start, . - _start

# long __system_call(long a, long b, long c, long number): the result, or a negative error number.

        .section .text.__system_call, "ax"
        .globl  __system_call
        .type   __system_call, @function
__system_call:
        mv      a7, a3
        ecall
        ret
        .size   __system_call, . - __system_call
