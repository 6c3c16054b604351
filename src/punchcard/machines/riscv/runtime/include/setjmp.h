/* Jumps out of functions, of the small library. */

#ifndef PUNCHCARD_SETJMP_H
#define PUNCHCARD_SETJMP_H

typedef unsigned long jmp_buf[14]; /* ra, sp, s0 to s11 */

int setjmp(jmp_buf place) __attribute__((returns_twice));
_Noreturn void longjmp(jmp_buf place, int value);
#define setjmp setjmp

#endif
