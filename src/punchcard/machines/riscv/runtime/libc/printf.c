/* printf and its relatives, for integers, characters and texts. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Where characters go: a stream, or a text of limited size. */
typedef struct {
    FILE *file;
    char *text;
    size_t size;
    int count;
} Sink;

typedef struct {
    char left, zero, sign, alternate; /* `sign` is the character that stands for plus, or 0 */
    int width, precision;             /* -1: none is given */
} Format;

static void put(Sink *sink, char c)
{
    if (sink->file != NULL)
        fputc(c, sink->file);
    else if ((size_t)sink->count + 1 < sink->size)
        sink->text[sink->count] = c;
    sink->count++;
}

static void pad(Sink *sink, char c, int count)
{
    while (count-- > 0)
        put(sink, c);
}

/* A prefix such as a sign, zeros up to the width where they are wanted, and the characters. */
static void field(Sink *sink, const Format *format, const char *prefix, const char *text, int size, int zeros)
{
    int used = (int)strlen(prefix) + zeros + size;
    if (!format->left && !format->zero)
        pad(sink, ' ', format->width - used);
    while (*prefix != 0)
        put(sink, *prefix++);
    if (!format->left && format->zero)
        pad(sink, '0', format->width - used);
    pad(sink, '0', zeros);
    for (int i = 0; i < size; i++)
        put(sink, text[i]);
    if (format->left)
        pad(sink, ' ', format->width - used);
}

static void number(Sink *sink, Format *format, uint64_t value, unsigned base, const char *digits, const char *prefix)
{
    char text[24];
    int place = sizeof text;
    while (value > UINT32_MAX) {
        text[--place] = digits[value % base];
        value /= base;
    }
    for (uint32_t rest = (uint32_t)value; rest != 0; rest /= base)
        text[--place] = digits[rest % base];
    int size = (int)sizeof text - place, least = format->precision < 0 ? 1 : format->precision;
    if (format->precision >= 0)
        format->zero = 0;
    field(sink, format, prefix, text + place, size, size < least ? least - size : 0);
}

static int64_t signed_argument(va_list *arguments, int longs)
{
    return longs >= 2 ? va_arg(*arguments, long long) : va_arg(*arguments, int);
}

static uint64_t unsigned_argument(va_list *arguments, int longs)
{
    uint64_t value = longs >= 2 ? va_arg(*arguments, unsigned long long) : va_arg(*arguments, unsigned);
    return longs == -1 ? (uint16_t)value : longs == -2 ? (uint8_t)value : value;
}

static int print(Sink *sink, const char *format, va_list *arguments)
{
    for (; *format != 0; format++) {
        if (*format != '%') {
            put(sink, *format);
            continue;
        }
        const char *begin = format++;
        Format how = {0, 0, 0, 0, 0, -1};
        for (;; format++) {
            if (*format == '-')
                how.left = 1;
            else if (*format == '0')
                how.zero = 1;
            else if (*format == '+')
                how.sign = '+';
            else if (*format == ' ')
                how.sign = how.sign != 0 ? how.sign : ' ';
            else if (*format == '#')
                how.alternate = 1;
            else
                break;
        }
        if (*format == '*') {
            how.width = va_arg(*arguments, int);
            if (how.width < 0) {
                how.left = 1;
                how.width = -how.width;
            }
            format++;
        }
        while (*format >= '0' && *format <= '9')
            how.width = 10 * how.width + *format++ - '0';
        if (*format == '.') {
            how.precision = 0;
            if (*++format == '*') {
                how.precision = va_arg(*arguments, int);
                format++;
            }
            while (*format >= '0' && *format <= '9')
                how.precision = 10 * how.precision + *format++ - '0';
        }
        int longs = 0; /* 2: 64 bits; 0 and 1: 32; -1: 16; -2: 8 */
        for (;; format++) {
            if (*format == 'l')
                longs++;
            else if (*format == 'h')
                longs--;
            else if (*format == 'j')
                longs = 2;
            else if (*format != 'z' && *format != 't')
                break;
        }
        char plus[2] = {how.sign, 0};
        switch (*format) {
        case 'd':
        case 'i': {
            int64_t value = signed_argument(arguments, longs);
            value = longs == -1 ? (int16_t)value : longs == -2 ? (int8_t)value : value;
            number(sink, &how, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, "0123456789", value < 0 ? "-" : plus);
            break;
        }
        case 'u':
            number(sink, &how, unsigned_argument(arguments, longs), 10, "0123456789", "");
            break;
        case 'o':
            number(sink, &how, unsigned_argument(arguments, longs), 8, "01234567", how.alternate ? "0" : "");
            break;
        case 'x':
        case 'X': {
            uint64_t value = unsigned_argument(arguments, longs);
            const char *prefix = !how.alternate || value == 0 ? "" : *format == 'x' ? "0x" : "0X";
            number(sink, &how, value, 16, *format == 'x' ? "0123456789abcdef" : "0123456789ABCDEF", prefix);
            break;
        }
        case 'p':
            number(sink, &how, (uintptr_t)va_arg(*arguments, void *), 16, "0123456789abcdef", "0x");
            break;
        case 'c': {
            char c = (char)va_arg(*arguments, int);
            how.zero = 0;
            field(sink, &how, "", &c, 1, 0);
            break;
        }
        case 's': {
            const char *text = va_arg(*arguments, const char *);
            if (text == NULL)
                text = "(null)";
            const char *end = how.precision < 0 ? NULL : memchr(text, 0, (size_t)how.precision);
            int size = how.precision < 0 ? (int)strlen(text) : end == NULL ? how.precision : (int)(end - text);
            how.zero = 0;
            field(sink, &how, "", text, size, 0);
            break;
        }
        case '%':
            put(sink, '%');
            break;
        default: /* not known here: the text itself shows that */
            while (begin < format)
                put(sink, *begin++);
            if (*format == 0)
                return sink->count;
            put(sink, *format);
        }
    }
    return sink->count;
}

int vfprintf(FILE *file, const char *format, va_list arguments)
{
    Sink sink = {file, NULL, 0, 0};
    va_list rest;
    va_copy(rest, arguments);
    int count = print(&sink, format, &rest);
    va_end(rest);
    return count;
}

int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    Sink sink = {NULL, text, size, 0};
    va_list rest;
    va_copy(rest, arguments);
    int count = print(&sink, format, &rest);
    va_end(rest);
    if (size > 0)
        text[(size_t)count < size ? (size_t)count : size - 1] = 0;
    return count;
}

int vprintf(const char *format, va_list arguments) { return vfprintf(stdout, format, arguments); }

#define WITH_ARGUMENTS(call)            \
    va_list arguments;                  \
    va_start(arguments, format);        \
    int count = call;                   \
    va_end(arguments);                  \
    return count

int printf(const char *format, ...) { WITH_ARGUMENTS(vfprintf(stdout, format, arguments)); }
int fprintf(FILE *file, const char *format, ...) { WITH_ARGUMENTS(vfprintf(file, format, arguments)); }
int sprintf(char *text, const char *format, ...) { WITH_ARGUMENTS(vsnprintf(text, (size_t)1 << 30, format, arguments)); }
int snprintf(char *text, size_t size, const char *format, ...) { WITH_ARGUMENTS(vsnprintf(text, size, format, arguments)); }
