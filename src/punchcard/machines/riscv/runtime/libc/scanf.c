/* scanf and its relatives, and numbers from texts with a point. */

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"

enum { LONGEST = 350 /* characters of a real number that count */ };

/* Where characters come from: a stream, or a text. `left` is how many more belong to the item at hand. */
typedef struct {
    FILE *file;
    const char *text;
    int count, left;
} Source;

typedef struct {
    int skipped, width, longs; /* `longs` as in printf.c */
    char letter;
} Item;

static int next(Source *source)
{
    int c = source->left == 0 ? EOF : source->file != NULL ? fgetc(source->file) : *source->text != 0 ? *source->text++ : EOF;
    if (c == EOF)
        return EOF;
    source->count++;
    source->left--;
    return (unsigned char)c;
}

static void back(Source *source, int c)
{
    if (c == EOF)
        return;
    source->count--;
    source->left++;
    if (source->file != NULL)
        ungetc(c, source->file);
    else
        source->text--;
}

/* The next character that is not a space, which stays there; EOF where there is none. */
static int after_spaces(Source *source)
{
    int c;
    source->left = INT_MAX;
    do
        c = next(source);
    while (c != EOF && isspace(c));
    back(source, c);
    return c;
}

static void store(void *to, uint64_t value, int longs)
{
    if (longs >= 2)
        *(uint64_t *)to = value;
    else if (longs >= 0)
        *(uint32_t *)to = (uint32_t)value;
    else if (longs == -1)
        *(uint16_t *)to = (uint16_t)value;
    else
        *(uint8_t *)to = (uint8_t)value;
}

static unsigned digit_of(int c)
{
    return isdigit(c) ? (unsigned)c - '0' : isalpha(c) ? (unsigned)tolower(c) - 'a' + 10 : 36;
}

/* An integer; whether there is one. */
static int integer(Source *source, const Item *item, void *to)
{
    unsigned base = item->letter == 'o' ? 8 : item->letter == 'x' ? 16 : item->letter == 'i' ? 0 : 10;
    uint64_t value = 0;
    int found = 0, c = next(source), negative = c == '-';
    if (c == '-' || c == '+')
        c = next(source);
    if (c == '0' && (base == 0 || base == 16)) {
        found = 1;
        c = next(source);
        if (c == 'x' || c == 'X') {
            base = 16;
            found = 0;
            c = next(source);
        } else if (base == 0) {
            base = 8;
        }
    }
    for (base = base == 0 ? 10 : base; c != EOF && digit_of(c) < base; c = next(source)) {
        value = value * base + digit_of(c);
        found = 1;
    }
    back(source, c);
    if (found && !item->skipped)
        store(to, negative ? 0 - value : value, item->longs);
    return found;
}

/* Whether a character may follow what was read of a real number. */
static int goes_on(const char *text, int size, int c)
{
    static const char *const names[] = {"infinity", "nan"};
    int first = tolower((unsigned char)text[0]), letter = tolower(c);
    for (int i = 0; i < 2; i++)
        if ((size == 0 ? letter : first) == names[i][0])
            return size < (int)strlen(names[i]) && letter == names[i][size];
    int hexadecimal = size > 1 && tolower((unsigned char)text[1]) == 'x';
    char exponent = hexadecimal ? 'p' : 'e';
    const char *digits = hexadecimal ? text + 2 : text, *point = memchr(text, '.', (size_t)size), *after = NULL;
    for (const char *each = digits; each < text + size; each++)
        if (tolower((unsigned char)*each) == exponent)
            after = each;
    if (after != NULL)
        return isdigit(c) || ((c == '-' || c == '+') && after == text + size - 1);
    if (letter == 'x' && size == 1 && first == '0')
        return 1;
    if (letter == exponent)
        return text + size > digits + (point != NULL);
    return c == '.' ? point == NULL : hexadecimal ? isxdigit(c) : isdigit(c);
}

/* The characters of a real number, as far as they can begin one. */
static void real_text(Source *source, char *text)
{
    int c = next(source);
    if (c == '-' || c == '+') {
        *text++ = (char)c;
        c = next(source);
    }
    int size = 0;
    for (; c != EOF && size < LONGEST && goes_on(text, size, c); c = next(source))
        text[size++] = (char)c;
    back(source, c);
    text[size] = 0;
}

static uint64_t signed_bits(const char *text, char **end, Precision precision)
{
    const char *begin = text, *after;
    while (isspace((unsigned char)*text))
        text++;
    int negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    uint64_t bits = __real_bits(text, &after, precision);
    if (end != NULL)
        *end = (char *)(after == text ? begin : after);
    return after == text ? 0 : bits | (uint64_t)negative << (precision.bits == 53 ? 63 : 31);
}

static int real(Source *source, const Item *item, void *to)
{
    char text[LONGEST + 2], *end;
    real_text(source, text);
    uint64_t bits = signed_bits(text, &end, item->longs > 0 ? DOUBLE : FLOAT);
    if (end == text || *end != 0)
        return 0;
    if (!item->skipped)
        store(to, bits, item->longs > 0 ? 2 : 0);
    return 1;
}

/* Whether a set such as [^a-z], from behind its bracket to its end, has a character. */
static int has(const char *set, const char *end, int c)
{
    int others = *set == '^', found = 0;
    for (set += others; set < end; set++) {
        if (set[1] == '-' && set + 2 < end) {
            found |= c >= (unsigned char)set[0] && c <= (unsigned char)set[2];
            set += 2;
        } else {
            found |= c == (unsigned char)*set;
        }
    }
    return found != others;
}

/* Characters: %c as many as its width, %s up to a space, %[ those of a set. */
static int characters(Source *source, const Item *item, const char *set, const char *end, char *to)
{
    int count = 0, c = EOF;
    while (source->left > 0 && (c = next(source)) != EOF) {
        if (item->letter == 's' ? isspace(c) : item->letter == '[' && !has(set, end, c)) {
            back(source, c);
            break;
        }
        if (!item->skipped)
            to[count] = (char)c;
        count++;
    }
    if (!item->skipped && item->letter != 'c' && count > 0)
        to[count] = 0;
    return item->letter == 'c' ? count == item->width : count > 0;
}

static const char *read_item(const char *format, Item *item)
{
    item->skipped = *format == '*';
    format += item->skipped;
    for (; isdigit((unsigned char)*format); format++)
        item->width = 10 * item->width + *format - '0';
    for (;; format++) {
        if (*format == 'l')
            item->longs++;
        else if (*format == 'h')
            item->longs--;
        else if (*format == 'j')
            item->longs = 2;
        else if (*format != 'z' && *format != 't')
            break;
    }
    item->letter = *format;
    return format;
}

static int scan(Source *source, const char *format, va_list *arguments)
{
    int stored = 0;
    for (; *format != 0; format++) {
        if (isspace((unsigned char)*format)) {
            after_spaces(source);
            continue;
        }
        Item item = {0, 0, 0, 0};
        int literal = *format != '%';
        if (!literal)
            format = read_item(format + 1, &item);
        if (literal || item.letter == '%') {
            int c = literal ? (source->left = INT_MAX, next(source)) : (after_spaces(source), next(source));
            if (c != (unsigned char)*format) {
                back(source, c);
                return c == EOF && stored == 0 ? EOF : stored;
            }
            continue;
        }
        const char *set = format + 1;
        if (item.letter == '[') {
            format = set + (*set == '^');
            for (format += *format == ']'; *format != ']'; format++) /* a bracket that comes first belongs to the set */
                if (*format == 0)
                    return stored;
        }
        void *to = item.skipped ? NULL : va_arg(*arguments, void *);
        if (item.letter == 'n') {
            if (!item.skipped)
                store(to, (uint64_t)source->count, item.longs);
            continue;
        }
        int spaced = item.letter == 'c' || item.letter == '[', first;
        source->left = INT_MAX;
        if (spaced)
            back(source, first = next(source));
        else
            first = after_spaces(source);
        if (first == EOF)
            return stored == 0 ? EOF : stored;
        if (item.letter == 'c' && item.width == 0)
            item.width = 1;
        source->left = item.width > 0 ? item.width : INT_MAX;
        int good;
        if (strchr("diuoxXp", item.letter) != NULL) {
            item.letter = item.letter == 'X' || item.letter == 'p' ? 'x' : item.letter;
            good = integer(source, &item, to);
        } else if (strchr("aefgAEFG", item.letter) != NULL) {
            good = real(source, &item, to);
        } else if (strchr("cs[", item.letter) != NULL) {
            good = characters(source, &item, set, format, to);
        } else { /* not known here */
            return stored;
        }
        if (!good)
            return stored;
        stored += !item.skipped;
    }
    return stored;
}

static int scan_from(Source source, const char *format, va_list arguments)
{
    va_list rest;
    va_copy(rest, arguments);
    int stored = scan(&source, format, &rest);
    va_end(rest);
    return stored;
}

int vfscanf(FILE *file, const char *format, va_list arguments)
{
    return scan_from((Source){file, NULL, 0, INT_MAX}, format, arguments);
}

int vsscanf(const char *text, const char *format, va_list arguments)
{
    return scan_from((Source){NULL, text, 0, INT_MAX}, format, arguments);
}

int vscanf(const char *format, va_list arguments) { return vfscanf(stdin, format, arguments); }

#define WITH_ARGUMENTS(call)            \
    va_list arguments;                  \
    va_start(arguments, format);        \
    int stored = call;                  \
    va_end(arguments);                  \
    return stored

int scanf(const char *format, ...) { WITH_ARGUMENTS(vfscanf(stdin, format, arguments)); }
int fscanf(FILE *file, const char *format, ...) { WITH_ARGUMENTS(vfscanf(file, format, arguments)); }
int sscanf(const char *text, const char *format, ...) { WITH_ARGUMENTS(vsscanf(text, format, arguments)); }

double strtod(const char *text, char **end)
{
    union {
        uint64_t bits;
        double number;
    } same = {signed_bits(text, end, DOUBLE)};
    return same.number;
}

float strtof(const char *text, char **end)
{
    union {
        uint32_t bits;
        float number;
    } same = {(uint32_t)signed_bits(text, end, FLOAT)};
    return same.number;
}

double atof(const char *text) { return strtod(text, NULL); }
