/* printf and its relatives. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "decimal.h"

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

/* A prefix that is a zero counts as a digit: there is none where a zero comes first anyway. */
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
    int zeros = size < least ? least - size : 0;
    field(sink, format, zeros > 0 && *prefix == '0' && base == 8 ? "" : prefix, text + place, size, zeros);
}

/* The digits of a number from 10^place on: those before the point, the point, and `behind` places after it. */
RARE static void digits_of(Sink *sink, const Decimal *value, int place, int before, int behind, int point)
{
    for (; before > 0; before--)
        put(sink, (char)('0' + __decimal_digit(value, place--)));
    if (point)
        put(sink, '.');
    for (; behind > 0; behind--)
        put(sink, (char)('0' + __decimal_digit(value, place--)));
}

/* The exponent after a number: its letter, a sign, and at least so many digits. */
RARE static int exponent_text(char *text, char letter, int exponent, int least)
{
    char digits[8];
    int size = 0, count = 0;
    for (unsigned rest = exponent < 0 ? 0 - (unsigned)exponent : (unsigned)exponent; rest != 0 || count < least; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    text[size++] = letter;
    text[size++] = exponent < 0 ? '-' : '+';
    while (count > 0)
        text[size++] = digits[--count];
    return size;
}

/* Spaces, the prefix, and zeros before a number of this size; what it then needs behind it. */
RARE static int before_number(Sink *sink, const Format *format, const char *prefix, int size)
{
    int missing = format->width - (int)strlen(prefix) - size;
    Format none = {0, format->zero, 0, 0, format->left ? 0 : format->width - size, -1};
    field(sink, &none, prefix, "", 0, 0);
    return format->left ? missing : 0;
}

/* %e, %f and %g of a number that is finite, rounded from its exact value. */
RARE static void decimal(Sink *sink, const Format *format, uint64_t value, int exponent, char letter, const char *prefix)
{
    Decimal digits;
    char kind = letter | 0x20, text[8]; /* 0x20: a small letter */
    int precision = format->precision < 0 ? 6 : format->precision, size = 0;
    if (kind == 'g' && precision == 0)
        precision = 1;
    __decimal_from(&digits, value, exponent);
    int place = __decimal_exponent(&digits), behind = precision - (kind == 'g');
    __decimal_round(&digits, kind == 'f' ? -precision : place - behind);
    place = __decimal_exponent(&digits);
    int scientific = kind == 'e' || (kind == 'g' && (place < -4 || place >= precision));
    if (kind == 'g') {
        behind -= scientific ? 0 : place;
        int last = (scientific ? place : 0) - behind;
        for (; !format->alternate && behind > 0 && __decimal_digit(&digits, last) == 0; last++)
            behind--;
    }
    int before = scientific || place < 0 ? 1 : place + 1, point = behind > 0 || format->alternate;
    if (scientific)
        size = exponent_text(text, letter - kind + 'e', place, 2);
    int rest = before_number(sink, format, prefix, before + point + behind + size);
    digits_of(sink, &digits, scientific ? place : before - 1, before, behind, point);
    for (int i = 0; i < size; i++)
        put(sink, text[i]);
    pad(sink, ' ', rest);
}

/* %a: the significand in hexadecimal digits, 13 behind the point; fewer are rounded, halves to even. */
RARE static void hexadecimal(Sink *sink, const Format *format, uint64_t value, int exponent, char letter, const char *sign)
{
    enum { DIGITS = 13 };
    const char *digits = letter == 'a' ? "0123456789abcdef" : "0123456789ABCDEF";
    char prefix[4] = {0}, text[8], *end = prefix;
    int behind = format->precision;
    exponent = value != 0 ? exponent + 4 * DIGITS : 0;
    if (*sign != 0)
        *end++ = *sign;
    *end++ = '0';
    *end++ = letter - 'a' + 'x';
    if (behind >= 0 && behind < DIGITS) {
        int cut = 4 * (DIGITS - behind);
        uint64_t half = (uint64_t)1 << (cut - 1), odd = value >> cut & 1;
        value = (value + half - 1 + odd) >> cut << cut;
    }
    if (behind < 0)
        for (behind = DIGITS; behind > 0 && (value >> 4 * (DIGITS - behind) & 15) == 0; behind--)
            ;
    int point = behind > 0 || format->alternate;
    int size = exponent_text(text, letter - 'a' + 'p', exponent, 1);
    int rest = before_number(sink, format, prefix, 1 + point + behind + size);
    put(sink, digits[value >> 4 * DIGITS]);
    if (point)
        put(sink, '.');
    for (int i = 1; i <= behind; i++)
        put(sink, i > DIGITS ? '0' : digits[value >> 4 * (DIGITS - i) & 15]);
    for (int i = 0; i < size; i++)
        put(sink, text[i]);
    pad(sink, ' ', rest);
}

/* A double by its bits: there may be no arithmetic for it. */
RARE static void real(Sink *sink, Format *format, double given, char letter)
{
    enum { STORED = 52, INFINITE = 2047 };
    union {
        double number;
        uint64_t bits;
    } same = {given};
    int exponent = (int)(same.bits >> STORED & INFINITE), small = letter >= 'a';
    uint64_t value = same.bits & (((uint64_t)1 << STORED) - 1);
    char sign[2] = {same.bits >> 63 ? '-' : format->sign, 0};
    if (exponent == INFINITE) {
        format->zero = 0;
        field(sink, format, sign, value != 0 ? small ? "nan" : "NAN" : small ? "inf" : "INF", 3, 0);
        return;
    }
    value |= exponent != 0 ? (uint64_t)1 << STORED : 0;
    exponent = (exponent != 0 ? exponent : 1) - 1075;
    if ((letter | 0x20) == 'a')
        hexadecimal(sink, format, value, exponent, letter, sign);
    else
        decimal(sink, format, value, exponent, letter, sign);
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
        case 'n':
            if (longs >= 2)
                *va_arg(*arguments, long long *) = sink->count;
            else if (longs >= 0)
                *va_arg(*arguments, int *) = sink->count;
            else if (longs == -1)
                *va_arg(*arguments, short *) = (short)sink->count;
            else
                *va_arg(*arguments, signed char *) = (signed char)sink->count;
            break;
        case 'a':
        case 'A':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            real(sink, &how, va_arg(*arguments, double), *format);
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
int vsprintf(char *text, const char *format, va_list arguments) { return vsnprintf(text, (size_t)1 << 30, format, arguments); }

#define WITH_ARGUMENTS(call)            \
    va_list arguments;                  \
    va_start(arguments, format);        \
    int count = call;                   \
    va_end(arguments);                  \
    return count

int printf(const char *format, ...) { WITH_ARGUMENTS(vfprintf(stdout, format, arguments)); }
int fprintf(FILE *file, const char *format, ...) { WITH_ARGUMENTS(vfprintf(file, format, arguments)); }
int sprintf(char *text, const char *format, ...) { WITH_ARGUMENTS(vsprintf(text, format, arguments)); }
int snprintf(char *text, size_t size, const char *format, ...) { WITH_ARGUMENTS(vsnprintf(text, size, format, arguments)); }
