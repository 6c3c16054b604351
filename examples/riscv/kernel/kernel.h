/* What the kernel and its tasks share: the system calls. */

#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned int word;

enum call {
    CALL_PRINT, /* writes the text at a0, all of it at once */
    CALL_GET,   /* gives the next byte of the input, and waits for it */
    CALL_SLEEP, /* lets others run until a0 ticks are over */
    CALL_TICKS, /* gives how often the timer has interrupted task a0, or -1 if there is no such task */
    CALL_OFF,   /* powers off, or with a0 = 1 starts again */
};

enum { SHELL, WORKER, TASKS };

void shell(void);
void worker(void);

#endif
