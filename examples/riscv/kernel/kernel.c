/* The kernel: traps, the timer, two tasks in user mode, and their system calls. It runs in machine mode with traps off. */

#include "kernel.h"

#define REGISTER(address) (*(volatile word *)(address))
#define BYTE(address) (*(volatile unsigned char *)(address))
#define UART 0x10000000
#define LINE_STATUS (UART + 5)
#define TIMER_COMPARE 0x11004000
#define TIMER 0x1100bff8
#define SYSCON 0x11100000

#define TICK 5000 /* loops from one timer interrupt to the next */
#define STACK_WORDS 256
#define TIMER_INTERRUPT 0x80000007u
#define USER_CALL 8

enum { SP = 2, A0 = 10, A7 = 17 };

struct frame {
    word counter;
    word x[31]; /* x1 to x31 */
};

struct task {
    struct frame frame;
    const char *name;
    void (*begin)(void);
    word ticks; /* how often the timer has interrupted it */
    word wakes; /* it sleeps until this tick */
    word waits_for_input;
    word stack[STACK_WORDS];
};

static struct task tasks[TASKS] = {
    [SHELL] = {.name = "shell", .begin = shell},
    [WORKER] = {.name = "worker", .begin = worker},
};
static word now; /* ticks since the start */
static struct task *running;

#define csr_read(name) ({ word value; __asm__ volatile("csrr %0, " #name : "=r"(value)); value; })
#define csr_set(name, bits) __asm__ volatile("csrs " #name ", %0" ::"r"(bits))
#define csr_clear(name, bits) __asm__ volatile("csrc " #name ", %0" ::"r"(bits))

static void put(char byte)
{
    while (!(BYTE(LINE_STATUS) & 0x20))
        ;
    BYTE(UART) = byte;
}

static void print(const char *text)
{
    for (; *text; text++)
        put(*text);
}

static void print_hex(word number)
{
    print("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        put("0123456789abcdef"[number >> shift & 15]);
}

static void begin(struct task *task)
{
    task->frame.counter = (word)task->begin;
    task->frame.x[SP - 1] = (word)(task->stack + STACK_WORDS);
    task->wakes = now;
    task->waits_for_input = 0;
}

/* The next interrupt is a tick after the last one was due. While both halves change, no comparison may hold. */
static void next_tick(void)
{
    unsigned long long due = REGISTER(TIMER_COMPARE) | (unsigned long long)REGISTER(TIMER_COMPARE + 4) << 32;
    due += TICK;
    REGISTER(TIMER_COMPARE + 4) = -1u;
    REGISTER(TIMER_COMPARE) = (word)due;
    REGISTER(TIMER_COMPARE + 4) = (word)(due >> 32);
}

static int can_run(struct task *task)
{
    if (task->waits_for_input && BYTE(LINE_STATUS) & 1) {
        task->waits_for_input = 0;
        task->frame.x[A0 - 1] = BYTE(UART);
    }
    return !task->waits_for_input && (int)(now - task->wakes) >= 0;
}

static void tick(void)
{
    now++;
    next_tick();
}

/* The next task in turn that can run. Where none can, the processor waits for the timer. */
static struct frame *choose(void)
{
    for (;;) {
        for (int i = 0; i < TASKS; i++) {
            running = running + 1 < tasks + TASKS ? running + 1 : tasks;
            if (can_run(running))
                return &running->frame;
        }
        __asm__ volatile("wfi");
        if (csr_read(mip) & 1 << 7)
            tick();
    }
}

static void serve(struct task *task)
{
    word *a0 = &task->frame.x[A0 - 1];
    task->frame.counter += 4;
    switch (task->frame.x[A7 - 1]) {
    case CALL_PRINT:
        print((const char *)*a0);
        break;
    case CALL_GET:
        task->waits_for_input = 1;
        break;
    case CALL_SLEEP:
        task->wakes = now + *a0;
        break;
    case CALL_TICKS:
        *a0 = *a0 < TASKS ? tasks[*a0].ticks : -1u;
        break;
    case CALL_OFF:
        REGISTER(SYSCON) = *a0 == 1 ? 0x7777 : 0x5555;
    }
}

static void report(struct task *task, word cause)
{
    static const char *const causes[] = {
        "misaligned jump", "no memory to fetch from", "illegal instruction", "breakpoint",
        "misaligned load", "no memory to load from", "misaligned store", "no memory to store to",
    };
    print("\r\nkernel: task ");
    print(task->name);
    print(": ");
    print(cause < sizeof causes / sizeof *causes ? causes[cause] : "unexpected trap");
    print(" at ");
    print_hex(task->frame.counter);
    print(", value ");
    print_hex(csr_read(mtval));
    print("; it begins again\r\n");
}

/* Called with the frame of the task that was running; gives the frame of the one that goes on. */
struct frame *trap(struct frame *frame)
{
    word cause = csr_read(mcause);
    struct task *task = (struct task *)frame;
    if (cause == USER_CALL) {
        serve(task);
        if (can_run(task))
            return frame;
    } else if (cause == TIMER_INTERRUPT) {
        task->ticks++;
        tick();
    } else {
        report(task, cause);
        begin(task);
    }
    return choose();
}

struct frame *kernel_start(void)
{
    print("A kernel on a transformer. Type help.\r\n");
    for (int i = 0; i < TASKS; i++)
        begin(&tasks[i]);
    REGISTER(TIMER_COMPARE + 4) = 0;
    REGISTER(TIMER_COMPARE) = REGISTER(TIMER);
    next_tick();
    csr_set(mie, 1 << 7);        /* the timer may interrupt, */
    csr_clear(mstatus, 3 << 11); /* and mret leads to user mode, */
    csr_set(mstatus, 1 << 7);    /* where interrupts are on */
    running = &tasks[SHELL];
    return &running->frame;
}
