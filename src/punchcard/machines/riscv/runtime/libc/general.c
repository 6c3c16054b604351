/* <stdlib.h> without the heap, and <assert.h>. */

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

enum { SIGABRT = 6, MOST_FUNCTIONS = 32 };

static void (*at_exit[MOST_FUNCTIONS])(void);
static int functions;

int atexit(void (*function)(void))
{
    if (functions == MOST_FUNCTIONS)
        return -1;
    at_exit[functions++] = function;
    return 0;
}

_Noreturn void _Exit(int status)
{
    for (;;)
        __system_call(status, 0, 0, EXIT);
}

_Noreturn void exit(int status)
{
    while (functions > 0)
        at_exit[--functions]();
    fflush(stdout);
    _Exit(status);
}

_Noreturn void abort(void)
{
    fflush(stdout);
    __system_call(ITSELF, SIGABRT, 0, KILL);
    _Exit(128 + SIGABRT);
}

_Noreturn void __assertion_failed(const char *text, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, text);
    abort();
}

/* The environment is empty. */
char *getenv(const char *name)
{
    (void)name;
    return NULL;
}

int abs(int number) { return number < 0 ? -number : number; }
long labs(long number) { return number < 0 ? -number : number; }

/* The digits of a number in a base; the most that fits, where it does not fit. */
static unsigned long digits(const char **text, unsigned base, int *too_large, int *found)
{
    unsigned long value = 0;
    for (*found = 0;; (*text)++) {
        int c = (unsigned char)**text;
        unsigned digit = isdigit(c) ? (unsigned)c - '0' : isalpha(c) ? (unsigned)tolower(c) - 'a' + 10 : 36;
        if (digit >= base)
            return *too_large ? ULONG_MAX : value;
        if (value > (ULONG_MAX - digit) / base)
            *too_large = 1;
        value = value * base + digit;
        *found = 1;
    }
}

static unsigned long parse(const char *text, char **end, int base, int *negative, int *too_large)
{
    const char *begin = text;
    while (isspace((unsigned char)*text))
        text++;
    *negative = *text == '-';
    *too_large = 0;
    if (*text == '-' || *text == '+')
        text++;
    int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isxdigit((unsigned char)text[2]);
    if ((base == 0 || base == 16) && hexadecimal) {
        base = 16;
        text += 2;
    } else if (base == 0) {
        base = *text == '0' ? 8 : 10;
    }
    int found;
    unsigned long value = digits(&text, (unsigned)base, too_large, &found);
    if (end != NULL)
        *end = (char *)(found ? text : begin);
    return value;
}

long strtol(const char *text, char **end, int base)
{
    int negative, too_large;
    unsigned long value = parse(text, end, base, &negative, &too_large);
    if (negative)
        return too_large || value > (unsigned long)LONG_MAX + 1 ? LONG_MIN : (long)(0 - value);
    return too_large || value > LONG_MAX ? LONG_MAX : (long)value;
}

unsigned long strtoul(const char *text, char **end, int base)
{
    int negative, too_large;
    unsigned long value = parse(text, end, base, &negative, &too_large);
    return too_large ? ULONG_MAX : negative ? 0 - value : value;
}

int atoi(const char *text) { return (int)strtol(text, NULL, 10); }
long atol(const char *text) { return strtol(text, NULL, 10); }

/* A generator of xorshift kind: three shifts, and no product, which a machine without multiplication would have to add up. */
static uint32_t state = 2463534242;

void srand(unsigned seed) { state = seed != 0 ? seed : 2463534242; }

int rand(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (int)(state & RAND_MAX);
}

static void swap(char *one, char *other, size_t size)
{
    for (; size > 0; size--, one++, other++) {
        char c = *one;
        *one = *other;
        *other = c;
    }
}

/* Heapsort: no stack to speak of, and no bad case. */
static void sift(char *items, size_t root, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && compare(items + child * size, items + (child + 1) * size) < 0)
            child++;
        if (compare(items + root * size, items + child * size) >= 0)
            return;
        swap(items + root * size, items + child * size, size);
    }
}

void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    for (size_t root = count / 2; root-- > 0;)
        sift(items, root, count, size, compare);
    for (size_t end = count; end-- > 1;) {
        swap(items, (char *)items + end * size, size);
        sift(items, 0, end, size, compare);
    }
}

void *bsearch(const void *key, const void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    const char *low = items;
    while (count > 0) {
        const char *middle = low + count / 2 * size;
        int order = compare(key, middle);
        if (order == 0)
            return (void *)middle;
        if (order > 0) {
            low = middle + size;
            count--;
        }
        count /= 2;
    }
    return NULL;
}
