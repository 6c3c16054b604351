# Where a C program begins. The machine has put the arguments at the end of its memory, and their address into a1; a1 is 0
# where there are none. Memory that the file does not fill is zero.

        .section .init, "ax"
        .globl  _start
        .type   _start, @function
_start:
        tail    __begin                 # over the stack, which is next to this instruction
        .size   _start, . - _start

        .section .text.__begin, "ax"
        .type   __begin, @function
__begin:
        .option push
        .option norelax
        la      gp, __global_pointer$
        .option pop
        la      sp, __stack_top
        la      tp, __tls_base          # variables of a thread; there is one thread
        mv      s2, a1
        la      s0, __init_array_start  # constructors run before main
        la      s1, __init_array_end
1:      beq     s0, s1, 2f
        lw      t0, 0(s0)
        jalr    t0
        addi    s0, s0, 4
        j       1b
2:      bnez    s2, 3f
        la      s2, no_arguments
3:      lw      a0, -4(s2)              # argc
        mv      a1, s2                  # argv
        slli    a2, a0, 2               # the environment, which is empty, comes after it
        add     a2, a2, a1
        addi    a2, a2, 4
        call    main
        call    exit
        .size   __begin, . - __begin

        .section .rodata.no_arguments, "a"
        .balign 4
        .word   0                       # argc
no_arguments:
        .word   0, 0                    # argv and the environment

# long __system_call(long a, long b, long c, long number): the result, or a negative error number.

        .section .text.__system_call, "ax"
        .globl  __system_call
        .type   __system_call, @function
__system_call:
        mv      a7, a3
        ecall
        ret
        .size   __system_call, . - __system_call
