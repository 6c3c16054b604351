/* The two tasks. Both run in user mode and share the memory; the timer may switch between them anywhere. */

#include "kernel.h"

static word lock;
static volatile word limit, with_lock, without_lock, rounds;

#define ADD (-1u) /* a limit of this kind: the worker adds */
#define EACH 500  /* additions of each task */

static word ask(enum call number, word argument)
{
    register word a0 __asm__("a0") = argument;
    register word a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return a0;
}

static void take(word *which)
{
    for (;;) {
        word before;
        __asm__ volatile("amoswap.w.aq %0, %2, (%1)" : "=r"(before) : "r"(which), "r"(1) : "memory");
        if (!before)
            return;
        ask(CALL_SLEEP, 1);
    }
}

static void give(word *which)
{
    __asm__ volatile("amoswap.w.rl zero, zero, (%0)" ::"r"(which) : "memory");
}

/* Adds without a lock: between lr and sc nothing may have happened. */
static void add_one(volatile word *to)
{
    word failed;
    do {
        word value;
        __asm__ volatile("lr.w %0, (%2)\n\taddi %0, %0, 1\n\tsc.w %1, %0, (%2)"
                         : "=&r"(value), "=&r"(failed) : "r"(to) : "memory");
    } while (failed);
}

static void print(const char *text)
{
    ask(CALL_PRINT, (word)text);
}

/* A text and a number, as one text: another task's does not come in between. */
static void print_line(const char *text, word number)
{
    char line[64], digits[10], *at = line;
    int count = 0;
    while (*text)
        *at++ = *text++;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *at++ = digits[--count];
    *at++ = '\r', *at++ = '\n', *at = 0;
    print(line);
}

static word count_primes(word end)
{
    word found = 0;
    for (word n = 2; n < end; n++) {
        word d = 2;
        while (d * d <= n && n % d)
            d++;
        found += d * d > n;
    }
    return found;
}

/* Adds to two numbers: where the timer made an addition go lost, one of them would be too small. */
static void add_in_turn(word times)
{
    while (times--) {
        take(&lock);
        with_lock = with_lock + 1;
        give(&lock);
        add_one(&without_lock);
    }
    add_one(&rounds);
}

void worker(void)
{
    for (;;) {
        word end = limit;
        if (end) {
            limit = 0;
            if (end == ADD)
                add_in_turn(EACH);
            else
                print_line("\r\nworker: primes found: ", count_primes(end));
        }
        ask(CALL_SLEEP, 1);
    }
}

/* The shell */

static int is(const char *line, const char *name)
{
    while (*name && *line == *name)
        line++, name++;
    return !*name && (!*line || *line == ' ');
}

static word number_after(const char *line)
{
    word number = 0;
    while (*line && *line != ' ')
        line++;
    while (*line == ' ')
        line++;
    for (; *line >= '0' && *line <= '9'; line++)
        number = 10 * number + (word)(*line - '0');
    return number;
}

static void read_line(char *line, word size)
{
    for (word length = 0;;) {
        char byte = (char)ask(CALL_GET, 0);
        if (byte == '\r' || byte == '\n') {
            line[length] = 0;
            print("\r\n");
            return;
        }
        if ((byte == 8 || byte == 127) && length) {
            length--;
            print("\b \b");
        } else if (byte >= ' ' && byte < 127 && length < size - 1) {
            line[length++] = byte;
            print((char[]){byte, 0});
        }
    }
}

static void help(void)
{
    print("primes N  the other task counts the primes below N\r\n"
          "add       both tasks add to one number, with a lock and with lr and sc\r\n"
          "tasks     how often the timer has interrupted each task\r\n"
          "fault N   1 an illegal instruction, 2 a load from nowhere, 3 a misaligned jump, 4 a breakpoint\r\n"
          "restart   starts the machine again\r\n"
          "off       powers off\r\n");
}

static void add(void)
{
    word done = rounds;
    with_lock = without_lock = 0;
    limit = ADD;
    add_in_turn(EACH);
    while (rounds < done + TASKS)
        ask(CALL_SLEEP, 1);
    print_line("with a lock: ", with_lock);
    print_line("with lr and sc: ", without_lock);
}

static void fault(word number)
{
    if (number == 1)
        __asm__ volatile(".word 0xffffffff");
    else if (number == 2)
        __asm__ volatile("lw zero, 0(%0)" ::"r"(4));
    else if (number == 3)
        __asm__ volatile("jr %0" ::"r"((word)fault + 2));
    else if (number == 4)
        __asm__ volatile("ebreak");
    else
        print("1, 2, 3 or 4\r\n");
}

void shell(void)
{
    char line[64];
    for (;;) {
        print("> ");
        read_line(line, sizeof line);
        if (is(line, "help"))
            help();
        else if (is(line, "primes"))
            limit = number_after(line);
        else if (is(line, "add"))
            add();
        else if (is(line, "tasks")) {
            print_line("shell ", ask(CALL_TICKS, SHELL));
            print_line("worker ", ask(CALL_TICKS, WORKER));
        } else if (is(line, "fault"))
            fault(number_after(line));
        else if (is(line, "restart"))
            ask(CALL_OFF, 1);
        else if (is(line, "off"))
            ask(CALL_OFF, 0);
        else if (*line)
            print("what? Type help.\r\n");
    }
}
