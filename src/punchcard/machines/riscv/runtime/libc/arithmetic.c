/* What a compiler calls for arithmetic that the processor lacks. Linked where the compiler's own library is not there.

   Nothing here may use the operators that it stands for. */

#include <stdint.h>

/* As many rounds as the first factor has bits; a small negative one has few, once both signs are changed. */
uint32_t __mulsi3(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    if ((int32_t)a < 0) {
        a = 0 - a;
        b = 0 - b;
    }
    for (; a != 0; a >>= 1, b <<= 1)
        if (a & 1)
            product += b;
    return product;
}

/* Division of one size of words: shift and subtract. By zero it gives all ones, as the processor's own instruction does. */
#define DIVISION(Signed, Unsigned, mode)                                                                        \
    static Unsigned divide_##mode(Unsigned a, Unsigned b, Unsigned *rest)                                       \
    {                                                                                                           \
        Unsigned quotient = 0, place = 1;                                                                       \
        if (b == 0) {                                                                                           \
            *rest = a;                                                                                          \
            return (Unsigned)-1;                                                                                \
        }                                                                                                       \
        while (b < a && (Signed)b >= 0)                                                                         \
            b <<= 1, place <<= 1;                                                                               \
        for (; place != 0; place >>= 1, b >>= 1)                                                                \
            if (a >= b) {                                                                                       \
                a -= b;                                                                                         \
                quotient |= place;                                                                              \
            }                                                                                                   \
        *rest = a;                                                                                              \
        return quotient;                                                                                        \
    }                                                                                                           \
    static Unsigned magnitude_##mode(Signed a) { return a < 0 ? 0 - (Unsigned)a : (Unsigned)a; }                \
    Unsigned __udiv##mode##3(Unsigned a, Unsigned b)                                                            \
    {                                                                                                           \
        Unsigned rest;                                                                                          \
        return divide_##mode(a, b, &rest);                                                                      \
    }                                                                                                           \
    Unsigned __umod##mode##3(Unsigned a, Unsigned b)                                                            \
    {                                                                                                           \
        Unsigned rest;                                                                                          \
        divide_##mode(a, b, &rest);                                                                             \
        return rest;                                                                                            \
    }                                                                                                           \
    Signed __div##mode##3(Signed a, Signed b)                                                                   \
    {                                                                                                           \
        Unsigned quotient = __udiv##mode##3(magnitude_##mode(a), magnitude_##mode(b));                          \
        return b != 0 && (a ^ b) < 0 ? (Signed)(0 - quotient) : (Signed)quotient;                               \
    }                                                                                                           \
    Signed __mod##mode##3(Signed a, Signed b)                                                                   \
    {                                                                                                           \
        Unsigned rest = __umod##mode##3(magnitude_##mode(a), magnitude_##mode(b));                              \
        return a < 0 ? (Signed)(0 - rest) : (Signed)rest;                                                       \
    }

DIVISION(int32_t, uint32_t, si)

/* 64 bits, as two words: shifts by a variable amount would be calls of the functions below. */
typedef union {
    uint64_t whole;
    struct {
        uint32_t low, high;
    } part;
} Wide;

uint64_t __ashldi3(uint64_t a, int amount)
{
    Wide from = {a}, to;
    if (amount == 0)
        return a;
    to.part.high = amount >= 32 ? from.part.low << (amount - 32) : from.part.high << amount | from.part.low >> (32 - amount);
    to.part.low = amount >= 32 ? 0 : from.part.low << amount;
    return to.whole;
}

uint64_t __lshrdi3(uint64_t a, int amount)
{
    Wide from = {a}, to;
    if (amount == 0)
        return a;
    to.part.low = amount >= 32 ? from.part.high >> (amount - 32) : from.part.low >> amount | from.part.high << (32 - amount);
    to.part.high = amount >= 32 ? 0 : from.part.high >> amount;
    return to.whole;
}

int64_t __ashrdi3(int64_t a, int amount)
{
    Wide from = {(uint64_t)a}, to;
    int32_t high = (int32_t)from.part.high;
    if (amount == 0)
        return a;
    to.part.low = amount >= 32 ? (uint32_t)(high >> (amount - 32)) : from.part.low >> amount | from.part.high << (32 - amount);
    to.part.high = (uint32_t)(high >> (amount >= 32 ? 31 : amount));
    return (int64_t)to.whole;
}

uint64_t __muldi3(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (; a != 0; a >>= 1, b <<= 1)
        if (a & 1)
            product += b;
    return product;
}

DIVISION(int64_t, uint64_t, di)

int __clzsi2(uint32_t a)
{
    int count = 32;
    for (; a != 0; a >>= 1)
        count--;
    return count;
}

int __ctzsi2(uint32_t a)
{
    int count = 0;
    for (; (a & 1) == 0 && count < 32; a >>= 1)
        count++;
    return count;
}

int __popcountsi2(uint32_t a)
{
    int count = 0;
    for (; a != 0; a &= a - 1)
        count++;
    return count;
}

int __clzdi2(uint64_t a) { return a >> 32 ? __clzsi2((uint32_t)(a >> 32)) : 32 + __clzsi2((uint32_t)a); }
int __ctzdi2(uint64_t a) { return (uint32_t)a ? __ctzsi2((uint32_t)a) : 32 + __ctzsi2((uint32_t)(a >> 32)); }
int __popcountdi2(uint64_t a) { return __popcountsi2((uint32_t)a) + __popcountsi2((uint32_t)(a >> 32)); }
