/* A real number that is not negative, in the decimal system, exactly. No function here uses floating-point arithmetic, so
   that none of it needs the compiler's library. */

#ifndef PUNCHCARD_DECIMAL_H
#define PUNCHCARD_DECIMAL_H

#include <stdint.h>

/* Every program that prints has this code, and few use it: it is made small, not fast. */
#define RARE __attribute__((cold, noinline))

enum {
    PLACES = 9,                      /* decimal places of a word */
    BEFORE = 35,                     /* words before the point: 315 places, and the largest double has 309 */
    BEHIND = 120,                    /* words behind it: 1080 places, and half of the least double has 1075 */
    HIGHEST = PLACES * BEFORE - 1,   /* the exponents of 10 at the first place and after the last */
    LOWEST = -PLACES * BEHIND - 1,
};

typedef struct {
    uint32_t words[BEFORE + BEHIND]; /* each below 10^9, the highest first */
    int first, last;                 /* all others are 0; there is none where `first` is after `last` */
} Decimal;

/* Kinds of real numbers: bits of the significand, and the exponent of 2 of the least number. */
typedef struct {
    int bits, least;
} Precision;

#define DOUBLE ((Precision){53, -1074})
#define FLOAT ((Precision){24, -149})

/* value * 2^exponent */
RARE void __decimal_from(Decimal *number, uint64_t value, int exponent);
/* The digit at 10^place, 0 to 9. */
RARE int __decimal_digit(const Decimal *number, int place);
/* The exponent of 10 of the first digit that is not 0; 0 where all are 0. */
RARE int __decimal_exponent(const Decimal *number);
/* Round to a multiple of 10^place, halves to even. Digits below are left as they are. */
RARE void __decimal_round(Decimal *number, int place);

/* The bits of the number that a text begins with, without its sign, as strtod reads it; `end` is where the text goes on, or
   its beginning where it does not begin with a number. */
uint64_t __real_bits(const char *text, const char **end, Precision precision);

#endif
