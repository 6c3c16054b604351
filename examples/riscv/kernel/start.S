# Where the machine begins, and where every trap arrives.
#
# A frame holds a task's program counter and its registers x1 to x31. While a task runs, mscratch points to its frame; while
# the kernel runs, traps are off.

    .section .init
    .globl _start
_start:
    la      sp, kernel_stack_end
    la      t0, enter
    csrw    mtvec, t0
    call    kernel_start            # gives the frame of the first task
    j       leave

    .text
    .balign 4
enter:
    csrrw   sp, mscratch, sp
    sw      x1, 4(sp)
    .irp    n, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    sw      x\n, 4 * \n(sp)
    .endr
    csrr    t0, mscratch
    sw      t0, 8(sp)
    csrr    t0, mepc
    sw      t0, 0(sp)
    mv      a0, sp
    la      sp, kernel_stack_end
    call    trap                    # gives the frame of the task that goes on

leave:
    csrw    mscratch, a0
    lw      t0, 0(a0)
    csrw    mepc, t0
    .irp    n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    lw      x\n, 4 * \n(a0)
    .endr
    lw      x10, 40(a0)
    mret

    .bss
    .balign 16
    .space  2048
kernel_stack_end:
