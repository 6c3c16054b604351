/* Numbers between the binary and the decimal system, exactly: by doubling and halving a number with many decimal places. */

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "decimal.h"

enum { BILLION = 1000000000, DOUBLED = 29, HALVED = 9 /* 10^9 is a multiple of 2^9 */ };

static const uint32_t powers[PLACES] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Times 2^count, up to 2^29 at once: a word and its carry are then below 2^60. */
RARE static void doubled(Decimal *number, int count)
{
    uint32_t carry = 0;
    for (int i = number->last; i >= number->first; i--) {
        uint64_t value = ((uint64_t)number->words[i] << count) + carry;
        carry = (uint32_t)(value / BILLION);
        number->words[i] = (uint32_t)(value - (uint64_t)carry * BILLION);
    }
    if (carry != 0)
        number->words[--number->first] = carry;
    while (number->last >= number->first && number->words[number->last] == 0)
        number->last--;
}

/* Divided by 2^count, up to 2^9 at once. What is beyond the last place is rounded to odd: it still counts as something. */
RARE static void halved(Decimal *number, int count)
{
    uint32_t carry = 0, part = (uint32_t)BILLION >> count, mask = ((uint32_t)1 << count) - 1;
    for (int i = number->first; i <= number->last; i++) {
        uint32_t word = number->words[i];
        number->words[i] = (word >> count) + carry;
        carry = (word & mask) * part;
    }
    if (carry != 0 && number->last < BEFORE + BEHIND - 1)
        number->words[++number->last] = carry;
    else if (carry != 0)
        number->words[number->last] |= 1;
    while (number->first <= number->last && number->words[number->first] == 0)
        number->first++;
}

RARE static void scaled(Decimal *number, int exponent)
{
    for (int step; exponent > 0; exponent -= step)
        doubled(number, step = exponent < DOUBLED ? exponent : DOUBLED);
    for (int step; exponent < 0; exponent += step)
        halved(number, step = -exponent < HALVED ? -exponent : HALVED);
}

void __decimal_from(Decimal *number, uint64_t value, int exponent)
{
    memset(number, 0, sizeof *number);
    number->last = BEFORE - 1;
    for (number->first = BEFORE; value != 0; value /= BILLION)
        number->words[--number->first] = (uint32_t)(value % BILLION);
    scaled(number, exponent);
}

int __decimal_digit(const Decimal *number, int place)
{
    if (place > HIGHEST || place <= LOWEST)
        return 0;
    int from_top = HIGHEST - place, word = from_top / PLACES;
    return (int)(number->words[word] / powers[PLACES - 1 - from_top % PLACES] % 10);
}

int __decimal_exponent(const Decimal *number)
{
    if (number->first > number->last)
        return 0;
    int place = HIGHEST - PLACES * number->first;
    while (__decimal_digit(number, place) == 0)
        place--;
    return place;
}

/* Whether there is something below 10^place. */
RARE static int has_more(const Decimal *number, int place)
{
    int from_top = HIGHEST - place, word = from_top / PLACES;
    if (number->words[word] % powers[PLACES - 1 - from_top % PLACES] != 0)
        return 1;
    return number->last > word;
}

void __decimal_round(Decimal *number, int place)
{
    if (place <= LOWEST + 1 || place > HIGHEST || number->first > number->last)
        return;
    int next = __decimal_digit(number, place - 1), odd = __decimal_digit(number, place) & 1;
    if (next < 5 || (next == 5 && !odd && !has_more(number, place - 1)))
        return;
    int from_top = HIGHEST - place, word = from_top / PLACES;
    uint32_t more = powers[PLACES - 1 - from_top % PLACES];
    if (word > number->last)
        number->last = word;
    for (;; word--, more = 1) {
        if (word < number->first)
            number->first = word;
        number->words[word] += more;
        if (number->words[word] < BILLION)
            return;
        number->words[word] -= BILLION;
    }
}

/* The end of digits with a point among them; NULL where there is none. `before` counts those before the point. */
static const char *end_of_digits(const char *text, int (*is_digit)(int), int *before)
{
    int digits = 0, point = 0;
    for (*before = 0;; text++) {
        if (*text == '.' && !point)
            point = 1;
        else if (!is_digit((unsigned char)*text))
            return digits > 0 ? text : NULL;
        else
            digits++, *before += !point;
    }
}

/* An exponent after its letter; nothing, where no digit follows. */
static const char *read_exponent(const char *text, char letter, int *exponent)
{
    const char *end = text + 1;
    *exponent = 0;
    if (tolower((unsigned char)*text) != letter)
        return text;
    if (*end == '-' || *end == '+')
        end++;
    if (!isdigit((unsigned char)*end))
        return text;
    for (; isdigit((unsigned char)*end); end++)
        if (*exponent < INT_MAX / 20)
            *exponent = 10 * *exponent + *end - '0';
    if (text[1] == '-')
        *exponent = -*exponent;
    return end;
}

/* Hexadecimal digits with a point, and an exponent of 2. What is below the first 15 is rounded to odd. */
static const char *read_hexadecimal(Decimal *number, const char *text, int *too_large)
{
    enum { COUNTED = 15, RANGE = 1200 };
    int before, exponent, counted = 0;
    uint64_t value = 0;
    const char *after = end_of_digits(text, isxdigit, &before);
    if (after == NULL)
        return NULL;
    const char *end = read_exponent(after, 'p', &exponent);
    for (const char *c = text; c < after; c++) {
        if (*c == '.')
            continue;
        unsigned digit = isdigit((unsigned char)*c) ? (unsigned)*c - '0' : (unsigned)tolower((unsigned char)*c) - 'a' + 10;
        if (counted < COUNTED)
            value = value << 4 | digit;
        else
            value |= digit != 0;
        counted += counted > 0 || digit != 0;
        before -= counted == 0;
    }
    if (value == 0)
        return end;
    exponent += 4 * (before - (counted < COUNTED ? counted : COUNTED));
    *too_large = exponent > RANGE;
    if (exponent <= RANGE)
        __decimal_from(number, value, exponent > -RANGE ? exponent : -RANGE);
    return end;
}

/* Digits with a point, and an exponent of 10. */
static const char *read_decimal(Decimal *number, const char *text, int *too_large)
{
    int before, exponent;
    const char *after = end_of_digits(text, isdigit, &before);
    if (after == NULL)
        return NULL;
    const char *end = read_exponent(after, 'e', &exponent);
    int place = before - 1 + exponent;
    for (const char *c = text; c < after; c++) {
        if (*c == '.')
            continue;
        int digit = *c - '0';
        if (digit != 0 && place > HIGHEST)
            *too_large = 1;
        if (digit != 0 && place <= HIGHEST) {
            int from_top = HIGHEST - place, word = from_top / PLACES;
            if (place <= LOWEST) { /* rounded to odd, as in `halved` */
                number->words[word = BEFORE + BEHIND - 1] |= 1;
            } else {
                number->words[word] += (uint32_t)digit * powers[PLACES - 1 - from_top % PLACES];
            }
            if (number->first > word)
                number->first = word;
            if (number->last < word)
                number->last = word;
        }
        place--;
    }
    return end;
}

static int bits_of(uint64_t value)
{
    int bits = 0;
    for (; value != 0; value >>= 1)
        bits++;
    return bits;
}

/* The number as significand * 2^exponent, rounded, halves to even. */
static uint64_t significand(Decimal *number, int *exponent, Precision precision)
{
    for (*exponent = 0; number->first < BEFORE - 2; *exponent += HALVED)
        halved(number, HALVED);
    for (;;) {
        uint64_t value = (uint64_t)number->words[BEFORE - 2] * BILLION + number->words[BEFORE - 1];
        int more = precision.bits - bits_of(value), room = *exponent - precision.least;
        int step = more > room ? room : more;
        if (step == 0 || number->first > number->last) {
            int odd = (int)(value & 1);
            uint32_t behind = number->last >= BEFORE ? number->words[BEFORE] : 0;
            int above = behind > BILLION / 2 || (behind == BILLION / 2 && (odd || number->last > BEFORE));
            return value + (uint64_t)above;
        }
        step = step > DOUBLED ? DOUBLED : step;
        scaled(number, step);
        *exponent -= step;
    }
}

static int begins(const char *text, const char *word)
{
    for (; *word != 0; text++, word++)
        if (tolower((unsigned char)*text) != *word)
            return 0;
    return 1;
}

uint64_t __real_bits(const char *text, const char **end, Precision precision)
{
    int stored = precision.bits - 1, most = 2 * (2 - precision.bits - precision.least), exponent, too_large = 0;
    uint64_t infinite = (uint64_t)(most + 1) << stored;
    if (begins(text, "inf")) {
        *end = text + (begins(text, "infinity") ? 8 : 3);
        return infinite;
    }
    if (begins(text, "nan")) {
        *end = text + 3;
        return infinite | (uint64_t)1 << (stored - 1);
    }
    Decimal number;
    memset(&number, 0, sizeof number);
    number.first = BEFORE + BEHIND;
    number.last = -1;
    const char *after = NULL;
    if (begins(text, "0x"))
        after = read_hexadecimal(&number, text + 2, &too_large);
    if (after == NULL)
        after = read_decimal(&number, text, &too_large);
    *end = after != NULL ? after : text;
    if (too_large)
        return infinite;
    if (after == NULL || number.first > number.last)
        return 0;
    uint64_t value = significand(&number, &exponent, precision);
    if (value >> precision.bits != 0) {
        value >>= 1;
        exponent++;
    }
    if (value >> stored == 0)
        return value;
    int biased = exponent - precision.least + 1;
    return biased > most ? infinite : (uint64_t)biased << stored | (value & (((uint64_t)1 << stored) - 1));
}
