/* A skill: arithmetic. Numbers of up to 40 digits, with + - * / % ^, parentheses, decimal fractions, comparisons, and words.
 *
 *   12 + 30 =                     what is written before "=", "equals" or "is equal to"
 *   What is 12 plus 30?           where an answer is due (skill.h)
 *   Is 9.11 > 9.9?                also in words; Which is larger, 9.11 or 9.9?
 *
 * Values are fractions of integers, so every step is exact. A quotient whose decimals end is written in full, up to 40 of
 * them; any other is rounded to ten decimals, or to ten digits that are not zero at its beginning. The program has no
 * opinion where the text may be something else: a date, a telephone number, a version, code, a quotation. */

#include "skill.h"

#define MOST_DIGITS 40
#define ROOM 196
#define MOST_VALUES 9
#define DECIMALS 40
#define ROUNDED 10

typedef struct { int length; unsigned char digit[ROOM]; } integer;      /* the lowest digit first; 0 has no digits */
typedef struct { int negative; integer top, bottom; } fraction;

static fraction values[MOST_VALUES];
static int used, bad, operators, has_mod;            /* has_mod: "mod" was read, outside parentheses */

/* Integers */

static int compared(const integer *a, const integer *b)
{
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    for (int i = a->length - 1; i >= 0; i--)
        if (a->digit[i] != b->digit[i]) return a->digit[i] < b->digit[i] ? -1 : 1;
    return 0;
}

static void add_to(integer *a, const integer *b)
{
    int carry = 0, i;
    if (b->length >= ROOM || a->length >= ROOM) { bad = 1; return; }
    for (i = 0; i < b->length || carry; i++) {
        int s = (i < a->length ? a->digit[i] : 0) + (i < b->length ? b->digit[i] : 0) + carry;
        carry = s > 9;
        a->digit[i] = (unsigned char)(carry ? s - 10 : s);
        if (i >= a->length) a->length = i + 1;
    }
}

static void subtract(integer *a, const integer *b)                       /* a >= b */
{
    int borrow = 0;
    for (int i = 0; i < b->length || borrow; i++) {
        int s = a->digit[i] - (i < b->length ? b->digit[i] : 0) - borrow;
        borrow = s < 0;
        a->digit[i] = (unsigned char)(borrow ? s + 10 : s);
    }
    while (a->length && !a->digit[a->length - 1]) a->length--;
}

static int is_one(const integer *a) { return a->length == 1 && a->digit[0] == 1; }

static void multiply(integer *a, const integer *b)
{
    static integer times[10];                                            /* b, twice b, ... */
    static integer product;
    if (is_one(b)) return;
    if (a->length + b->length >= ROOM) { bad = 1; return; }
    times[0].length = 0;
    int most = 0;
    for (int i = 0; i < a->length; i++) if (a->digit[i] > most) most = a->digit[i];
    for (int k = 1; k <= most; k++) { times[k] = times[k - 1]; add_to(&times[k], b); }
    product.length = a->length && b->length ? a->length + b->length : 0;
    for (int i = 0; i < product.length; i++) product.digit[i] = 0;
    for (int i = 0; i < a->length; i++) {
        const integer *row = &times[a->digit[i]];
        int carry = 0;
        for (int j = 0; j < row->length || carry; j++) {
            int s = product.digit[i + j] + (j < row->length ? row->digit[j] : 0) + carry;
            carry = s > 9;
            product.digit[i + j] = (unsigned char)(carry ? s - 10 : s);
        }
    }
    while (product.length && !product.digit[product.length - 1]) product.length--;
    *a = product;
}

/* Append a digit below the others. */
static void shift_in(integer *a, int digit)
{
    if (a->length >= ROOM) { bad = 1; return; }
    if (!a->length && !digit) return;
    for (int i = a->length; i > 0; i--) a->digit[i] = a->digit[i - 1];
    a->digit[0] = (unsigned char)digit;
    a->length++;
}

static int quotient_digit(integer *rest, const integer *b)
{
    int digit = 0;
    while (compared(rest, b) >= 0) { subtract(rest, b); digit++; }
    return digit;
}

/* a becomes the quotient, `rest` the remainder. */
static void divide(integer *a, const integer *b, integer *rest)
{
    rest->length = 0;
    for (int i = a->length - 1; i >= 0; i--) {
        shift_in(rest, a->digit[i]);
        a->digit[i] = (unsigned char)quotient_digit(rest, b);
    }
    while (a->length && !a->digit[a->length - 1]) a->length--;
}

/* Fractions */

static void set_one(integer *a) { a->length = 1; a->digit[0] = 1; }

static int is_integer(fraction *a)
{
    static integer rest;
    if (is_one(&a->bottom)) return 1;
    static integer whole;
    whole = a->top;
    divide(&whole, &a->bottom, &rest);
    if (rest.length) return 0;
    a->top = whole;
    set_one(&a->bottom);
    return 1;
}

static void to_same_bottom(fraction *a, fraction *b)
{
    static integer bottom;
    if (!compared(&a->bottom, &b->bottom)) return;
    bottom = a->bottom;
    multiply(&a->top, &b->bottom);
    multiply(&a->bottom, &b->bottom);
    multiply(&b->top, &bottom);
    b->bottom = a->bottom;
}

static void sum_of(fraction *a, fraction *b, int turned)
{
    int sign = b->negative ^ turned;
    to_same_bottom(a, b);
    if (bad) return;
    if (a->negative == sign) { add_to(&a->top, &b->top); return; }
    if (compared(&a->top, &b->top) >= 0) subtract(&a->top, &b->top);
    else { subtract(&b->top, &a->top); a->top = b->top; a->negative = sign; }
    if (!a->top.length) a->negative = 0;
}

static void product_of(fraction *a, const fraction *b)
{
    multiply(&a->top, &b->top);
    multiply(&a->bottom, &b->bottom);
    a->negative = a->top.length ? a->negative ^ b->negative : 0;
}

static void invert(fraction *a)
{
    static integer kept;
    if (!a->top.length) { bad = 1; return; }
    kept = a->top;
    a->top = a->bottom;
    a->bottom = kept;
}

static void remainder_of(fraction *a, fraction *b)
{
    static integer rest;
    if (a->negative || b->negative || !b->top.length || !is_integer(a) || !is_integer(b)) { bad = 1; return; }
    divide(&a->top, &b->top, &rest);
    a->top = rest;
}

static void power_of(fraction *a, fraction *b)
{
    static fraction base;
    int exponent = 0, negative = b->negative;
    if (!is_integer(b) || b->top.length > 3 || (!a->top.length && (negative || !b->top.length))) { bad = 1; return; }
    for (int i = b->top.length - 1; i >= 0; i--) exponent = exponent * 10 + b->top.digit[i];
    base = *a;
    a->negative = 0;
    set_one(&a->top);
    set_one(&a->bottom);
    for (int bit = 512; bit && !bad; bit >>= 1) {
        if (!is_one(&a->top) || !is_one(&a->bottom) || a->negative) {
            *b = *a;
            product_of(a, b);
        }
        if (exponent & bit) product_of(a, &base);
    }
    if (negative && !bad) invert(a);
}

static int order_of(fraction *a, fraction *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    to_same_bottom(a, b);
    return a->negative ? -compared(&a->top, &b->top) : compared(&a->top, &b->top);
}

/* Reading: an operator is a sign or a word */

typedef struct { const char *name; char kind; } named;

static const named OPERATORS[] = {
    {"**", '^'}, {"^", '^'}, {"to the power of", '^'}, {"+", '+'}, {"-", '-'}, {"\xe2\x88\x92", '-'}, {"*", '*'},
    {"\xc3\x97", '*'}, {"\xc2\xb7", '*'}, {"/", '/'}, {"\xc3\xb7", '/'}, {"%", '%'},
    {"plus", '+'}, {"minus", '-'}, {"times", '*'}, {"multiplied by", '*'}, {"x", '*'}, {"divided by", '/'},
    {"modulo", '%'}, {"mod", '%'}, {0, 0},
};

/* The operator at `at`, and how long it is. A word has spaces around it. */
static char operator_at(int *length)
{
    for (const named *each = OPERATORS; each->name; each++)
        if ((*length = begins(at, stop, each->name))) {
            if (!is_letter(each->name[0])) return each->kind;
            if (at[-1] == ' ' && at + *length < stop && is_space(at[*length])) return each->kind;
        }
    return 0;
}

static int rank(char kind) { return kind == '^' ? 3 : kind == '+' || kind == '-' ? 1 : 2; }

static fraction *expression(int least);

static fraction *read_number(void)
{
    fraction *a = &values[used];
    const char *from = at;
    int point = 0;
    if (used == MOST_VALUES) { bad = 1; return a; }
    used++;
    a->negative = a->top.length = 0;
    set_one(&a->bottom);
    for (; at < stop && (is_digit(*at) || (*at == '.' && !point && at > from && at + 1 < stop && is_digit(at[1]))); at++) {
        if (*at == '.') { point = 1; continue; }
        if (at - from - point >= MOST_DIGITS) { bad = 1; return a; }
        if (point) { a->bottom.length++; a->bottom.digit[a->bottom.length - 1] = 1; a->bottom.digit[a->bottom.length - 2] = 0; }
    }
    if (at == from || (at - from > 1 && from[0] == '0' && from[1] != '.')) bad = 1;      /* 007 is a name, not a number */
    for (const char *c = at - 1; c >= from; c--)
        if (*c != '.') a->top.digit[a->top.length++] = (unsigned char)(*c - '0');
    while (a->top.length && !a->top.digit[a->top.length - 1]) a->top.length--;
    return a;
}

static fraction *operand(void)
{
    fraction *a = &values[used];
    int length = 0, outer = has_mod;
    skip_spaces();
    if (at == stop) { bad = 1; return a; }
    if ((*at == '-' || (length = begins(at, stop, "\xe2\x88\x92"))) && at + 1 < stop && at[1] != ' ') {
        at += length ? length : 1;
        a = expression(3);
        if (!bad && a->top.length) a->negative ^= 1;
        return a;
    }
    if (*at != '(') return read_number();
    at++;
    has_mod = 0;
    a = expression(1);
    has_mod = outer;
    skip_spaces();
    if (at < stop && *at == ')') at++; else bad = 1;
    return a;
}

/* Operators of this rank or a higher one; powers are taken from the right. */
static fraction *expression(int least)
{
    static int depth;
    fraction *a = &values[used], *b;
    if (depth == 24) { bad = 1; return a; }
    depth++;
    a = operand();
    for (;;) {
        int length, is_word;
        skip_spaces();
        if (bad || at >= stop) break;
        char kind = operator_at(&length);
        if (!kind || rank(kind) < least) break;
        is_word = is_letter(*at);
        at += length;
        operators++;
        b = expression(kind == '^' ? 3 : rank(kind) + 1);
        if (has_mod) bad = 1;                                            /* 3 + 4 mod 5: 7, or 2 */
        has_mod = kind == '%' && is_word;
        if (bad) break;
        if (kind == '+' || kind == '-') sum_of(a, b, kind == '-');
        else if (kind == '*') product_of(a, b);
        else if (kind == '%') remainder_of(a, b);
        else if (kind == '^') power_of(a, b);
        else { invert(b); if (!bad) product_of(a, b); }
        used = (int)(b - values);
    }
    depth--;
    return a;
}

/* The value of a text that is an expression and nothing else; 0 if it is not. */
static fraction *value_of(const char *from, const char *to)
{
    at = from;
    stop = to;
    bad = operators = has_mod = 0;
    fraction *a = expression(1);
    skip_spaces();
    return bad || at != stop ? 0 : a;
}

/* Writing */

#define CHANGES DIGITS_ "+-*/^%!eExX"                                   /* what would change a number if it followed at once */

static char answer[ROOM + DECIMALS + 4];

/* The decimals of rest / bottom; how many there are. -1: too small to be written. */
static int decimals(integer *rest, const integer *bottom, char *digit, int whole, int *carry)
{
    int count = 0, first = -1, kept;
    while (count < DECIMALS + 1 && rest->length) {
        shift_in(rest, 0);
        digit[count] = (char)quotient_digit(rest, bottom);
        if (digit[count] && first < 0) first = count;
        count++;
    }
    *carry = 0;
    if (!rest->length && count <= DECIMALS) return count;
    if (!whole && first < 0) return -1;
    kept = ROUNDED + (whole ? 0 : first);
    if (kept > DECIMALS) return -1;
    *carry = digit[kept] >= 5;
    for (int i = kept - 1; i >= 0 && *carry; i--) {
        *carry = digit[i] == 9;
        digit[i] = *carry ? 0 : (char)(digit[i] + 1);
    }
    while (kept && !digit[kept - 1]) kept--;
    return kept;
}

static int written_out(fraction *a)
{
    static integer rest, one;
    static char digit[DECIMALS + 1];
    int n = 0, carry, count;
    divide(&a->top, &a->bottom, &rest);
    count = decimals(&rest, &a->bottom, digit, a->top.length, &carry);
    if (count < 0) return 0;
    set_one(&one);
    if (carry) add_to(&a->top, &one);
    if (a->negative) answer[n++] = '-';
    if (!a->top.length) answer[n++] = '0';
    for (int i = a->top.length - 1; i >= 0; i--) answer[n++] = (char)('0' + a->top.digit[i]);
    if (count) answer[n++] = '.';
    for (int i = 0; i < count; i++) answer[n++] = (char)('0' + digit[i]);
    answer[n] = 0;
    return !bad;
}

/* What looks like arithmetic and is not. */

static int number_at(const char *c)                                      /* its first four digits */
{
    int value = 0;
    for (int i = 0; i < 4 && is_digit(c[i]); i++) value = 10 * value + (c[i] - '0');
    return value;
}

/* Names of digits with the same sign between them: 2024-11-18, 2024-11, 11/18/2024, 555-1234, 0-306-40615-2. */
static int is_a_name(const char *from, const char *to)
{
    int group[4], first[4], count = 0, length = 0;
    char sign = 0;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    for (const char *c = from; c <= to; c++) {
        if (c < to && is_digit(*c)) { length++; continue; }
        if (c < to && ((*c != '-' && *c != '/') || (sign && *c != sign))) return 0;
        if (!length) return 0;
        if (count == 3) return 1;
        if (c < to) sign = *c;
        first[count] = number_at(c - length);
        group[count++] = length;
        length = 0;
    }
    if (count == 3 && group[1] <= 2)
        return (sign == '-' && group[0] == 3 && group[2] == 4) || (group[0] == 4 && group[2] <= 2) || (group[0] <= 2 && (group[2] == 4 || group[2] == 2));
    if (count == 2 && group[0] == 4 && first[0] >= 1900 && first[0] < 2100) {
        if (sign == '/') return first[1] == first[0] + 1 || (group[1] == 2 && first[1] == (first[0] + 1) % 100);
        if (group[1] == 2 && first[1] <= 12) return 1;
    }
    if (sign != '-') return 0;
    if (count == 2) return group[0] == 3 && group[1] == 4;
    return count == 3 && group[2] == 4 && group[1] == 3;
}

static int is_a_year_before(const char *from, const char *sign)
{
    int year = number_at(from);
    return sign - from == 4 && year >= 1000 && year < 2100 && year % 100;
}

/* Spans, scores and other pairs, which are written without spaces: 1939-1945, 10-20, 1861-65, 3-1, 24/7, 4-4-2.
 * A NAME is none of a calculator's sums, a PAIR may be one. */
enum { SUM, PAIR, NAME };

static int written_as(const char *from, const char *to)
{
    int minus = 0, over = 0, others = 0, spaces = 0, depth = 0;
    const char *sign = 0;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    if (from < to && *from == '(' && to[-1] == ')') { from++; to--; }
    for (const char *c = from; c < to; c++) {
        if (*c == '(') depth++;
        else if (*c == ')') depth--;
        if (depth || is_digit(*c) || *c == '.') continue;
        if (*c == ' ') spaces = 1;
        else if (*c == '-' && c > from && is_digit(c[-1]) && c + 1 < to && is_digit(c[1])) { minus++; sign = c; }
        else if (*c == '/' && !minus) over++;
        else if (*c != '/' && *c != '^') others++;
    }
    if (minus && spaces) return NAME;                                    /* 1-2 + 3 */
    if (others || spaces || !(minus || over)) return SUM;
    if (minus > 1 || over > 1) return NAME;
    if (!minus) return PAIR;
    if (is_a_year_before(from, sign) && to - sign == 3) return NAME;
    if (sign - from == 5 && to - sign == 5) return NAME;                 /* 90210-1234 */
    fraction *a = value_of(from, to);
    return a && (a->negative || !a->top.length) ? NAME : PAIR;
}

/* How long the word is that ends at c, if it is in the list, where each word is between spaces; else 0. */
static int ends_with(const char *start, const char *c, const char *words)
{
    const char *first = c;
    while (first > start && (is_letter(first[-1]) || first[-1] == '\'')) first--;
    for (int length = (int)(c - first), i; length && *words; words++) {
        if (*words != ' ') continue;
        for (i = 0; i < length && lower(first[i]) == words[i + 1]; i++) {}
        if (i == length && words[i + 1] == ' ') return length;
    }
    return 0;
}

static int is_one_of(char c, const char *bytes)
{
    while (*bytes && *bytes != c) bytes++;
    return *bytes;
}

/* Words that ask for another arithmetic than that of decimal numbers, or for none, as the score of a match. */
static const char OTHER[] = " nearest round rounded python division remainder quotient floor ceiling score scores odds record date "
    "range string strings average mean median sqrt root log ln sin cos tan gcd lcm sorted alphabetical ";

/* The same wherever they are in the text before: In base 8.\n7 + 1 = */
static const char ARITHMETIC[] = " base binary ternary octal hex hexadecimal modulus modular congruent roman boolean integer xor bitwise "
    "nim tropical clock lambda version versions ";

/* Words that begin what an introduction restricts a sum to: In C, 7 / 2 = */
static const char RESTRICTING[] = " in on at as to by with without within under using from for over reading assuming given ";

/* Whether a text has one of some words. */
static int has_word(const char *start, const char *end, const char *words)
{
    for (const char *c = start + 1; c <= end; c++)
        if ((c == end || !is_letter(*c)) && ends_with(start, c, words)) return 1;
    return 0;
}

/* Whether a number ends at c that is not the value of an equation: one of a list, as in 1, 2 + 3 = */
static int is_item(const char *start, const char *c)
{
    if (c == start || !is_digit(c[-1])) return 0;
    while (c > start && (is_digit(c[-1]) || c[-1] == '.' || c[-1] == '-')) c--;
    while (c > start && c[-1] == ' ') c--;
    return c == start || c[-1] != '=';
}

/* Whether a text speaks of another arithmetic: words, or "modulo" that is no operator. */
static int is_other(const char *start, const char *end)
{
    if (has_word(start, end, OTHER) || has_word(text(CARD_TOKENS * CARD_BYTES), end, ARITHMETIC)) return 1;
    for (const char *c = start + 1; c <= end; c++) {
        int length = c == end || !is_letter(*c) ? ends_with(start, c, " mod modulo ") : 0;
        if (!length) continue;
        const char *before = c - length;
        while (before > start && before[-1] == ' ') before--;
        if (before == start || !(is_digit(before[-1]) || before[-1] == ')')) return 1;
    }
    return 0;
}

/* Whether an operator was given a meaning of its own: Let a * b = a + 2b. */
static int is_redefined(const char *end)
{
    for (const char *c = card_start; c < end; c++) {
        const char *sign = c + 1;
        if (!is_letter(*c)) continue;
        while (*sign == ' ') sign++;
        if (!is_one_of(*sign, "+-*/%^")) continue;
        do sign++; while (*sign == ' ');
        if (!is_letter(*sign)) continue;
        do sign++; while (*sign == ' ');
        if (*sign == '=') return 1;
    }
    return 0;
}

/* Whether what is before a sum restricts it: In C, 7 / 2 =; To 2 places: 10 / 3 =; Let a * b = a + 2b. 3 * 4 = */
static int is_restricted(const char *start, const char *end)
{
    const char *mark = 0;
    while (end > start && is_space(end[-1])) end--;
    for (; end > start && !is_one_of(end[-1], "\n.!?\1"); end--) if (!mark && is_one_of(end[-1], ",:;")) mark = end - 1;
    return (mark && has_word(end, mark, RESTRICTING)) || is_redefined(end);
}

/* Whether the words before an expression ask for its value. */
static int is_asked_for(const char *start, const char *c)
{
    while (c > start && (c[-1] == ' ' || c[-1] == ':')) c--;
    if (ends_with(start, c, " calculate compute evaluate solve simplify find what's ")) return 1;
    return ends(start, c, "what is") || ends(start, c, "how much is");
}

/* Whether an expression stands at the beginning of a line, a sentence or a side of an equation. */
static int is_first(const char *start, const char *c)
{
    while (c > start && (c[-1] == ' ' || c[-1] == '\t')) c--;
    return c == start || c[-1] == '\n' || c[-1] == '.' || c[-1] == '!' || c[-1] == '?' || c[-1] == '=' || c[-1] == ')'
        || c[-1] == '$' || c[-1] == SPECIAL;
}

/* Whether a quotation is open on this line. */
static int is_quoted(const char *start, const char *end)
{
    static const char *const OPEN[] = {"\xe2\x80\x9e", "\xe2\x80\x9c", "\xc2\xab", "\xe2\x80\xb9", "\xe2\x80\x9a",
        "\xe3\x80\x8c", "\xe3\x80\x8e", "\xe3\x80\x8a", "<q>", 0};      /* „ “ « ‹ ‚ 「 『 《 */
    int marks = 0, closed = 0, single = 0;
    for (const char *c = end; c > start && c[-1] != '\n'; c--) {
        char last = c[-1];
        if (last == '"' || last == '`') marks ^= 1;
        int opens = c < end && !is_space(*c) && (c - 1 == start || is_space(c[-2]) || c[-2] == '(');
        if (last == '\'') {
            if (opens && !closed) return 1;
            closed = !opens && (c == end || !is_letter(*c));
        }
        if (!single && ends(start, c, "\xe2\x80\x98")) return 1;                                             /* ‘ */
        if (ends(start, c, "\xe2\x80\x99")) single = 1;                                                      /* ’ */
        if (ends(start, c, "\xc2\xbb") && c < end && !is_space(*c)) return 1;                                 /* » as in »so« */
        if (ends(start, c, "\xe2\x80\x9d") || ends(start, c, "\xc2\xbb")) break;                             /* ” » */
        for (int i = 0; OPEN[i]; i++) if (ends(start, c, OPEN[i])) return 1;
    }
    return marks;
}

/* Whether the text before an expression leaves it what it is. What is not known to do so may change it. */
static int stands_alone(const char *start, const char *from)
{
    static const char KNOWN[] = " is are what's calculate compute evaluate solve out find answer that and so then because have get simplify sum result but since "
        "thus hence therefore now also know note see means gives ";
    const char *c = from, *line;
    while (c > start && c[-1] == ' ') c--;
    if (c > start && c == from && !is_space(c[-1]) && c[-1] != '$' && c[-1] != '=') return 0;
    if (c > start && is_one_of(c[-1], "<>|&~}]@'\"")) return 0;
    if (c > start && c[-1] == '!' && (c - 2 <= start || !is_letter(c[-2]) || !is_letter(c[-3]))) return 0;         /* n! */
    if (c - 1 > start && c[-1] == '$' && (is_digit(c[-2]) || is_letter(c[-2]))) return 0;
    if (c - 1 > start && (c[-1] == '?' || c[-1] == ':') && (is_space(c[-2]) || c[-2] == '?' || c[-2] == '=')) return 0;
    for (line = c; line > start && line[-1] == '\t'; line--) {}
    if (line > start && line < c && line[-1] != '\n') return 0;              /* a table's column */
    if (c > start && (c[-1] == ',' || c[-1] == ';') && is_item(start, c - 1)) return 0;
    if (c > start && c[-1] == '=') {                                      /* 3 <= 4 + 5 =; x += 4 + 5 =; ...?page=2-1= */
        if (c - 1 > start && is_one_of(c[-2], "<>!=:+-*/%^|&~?.@#")) return 0;
        for (line = c; line > start && !is_space(line[-1]); line--)
            if (is_one_of(line[-1], "?&/#(")) return 0;
        if (line < c && *line == '-' && !is_digit(line[1])) return 0;     /* --width=100-20= */
        if (c == from && c - 2 > start && is_letter(c[-2]) && is_letter(c[-3])) return 0;
    }
    if (c > start && is_letter(c[-1])) {
        if (!ends_with(start, c, KNOWN)) return 0;
        while (c > start && (is_letter(c[-1]) || c[-1] == '\'')) c--;
        while (c > start && is_space(c[-1])) c--;
        if (c > start && (is_digit(c[-1]) || c[-1] == ')')) return 0;     /* 5 and 3 + 1 = */
    } else {
        while (c > start && is_space(c[-1])) c--;                         /* a sum that began on the line before */
        if (c > start && ((unsigned char)c[-1] >= 128 || c[-1] == '+' || c[-1] == '-' || c[-1] == '*' || c[-1] == '/'
                          || c[-1] == '%' || c[-1] == '^' || c[-1] == '(' || c[-1] == '\\')) return 0;
        if (c > start && c[-1] == ':') {                                  /* 8 : 2 + 1 = */
            while (c > start && (c[-1] == ':' || is_space(c[-1]))) c--;
            if (c > start && is_digit(c[-1])) return 0;
        }
    }
    for (line = from; line > start && line[-1] != '\n'; line--) {}
    if (is_other(line, from) || is_restricted(start, from)) return 0;
    for (c = line; c < from; c++) if (*c == '[' || *c == '{') return 0;
    return !is_quoted(start, from);
}

/* Where the longest text begins that ends at `to` and may be an expression. */
static const char *run_before(const char *start, const char *to)
{
    const char *from = to;
    while (from > start) {
        char c = from[-1];
        int length = 0;
        if (is_digit(c) || c == ' ' || c == '(' || c == ')' || c == '.') { from--; continue; }
        for (const named *each = OPERATORS; each->name && !length; each++) {
            length = ends(start, from, each->name);
            if (length && is_letter(each->name[0]) && from - length > start && from[-length - 1] != ' ') length = 0;
        }
        if (!length) break;
        from -= length;
    }
    if (from > start && from[0] == '.' && from[-1] != '\n') return from;
    if (from == start || from[-1] == '\n') {                             /* the number of an item: 3. or 3) */
        const char *c = from;
        while (is_digit(*c)) c++;
        if (c > from && (*c == '.' || *c == ')') && c[1] == ' ') from = c + 2;
    }
    return from;
}

/* EXPRESSION =, and what was written after it. */
static int equation(void)
{
    static const char *const EQUAL[] = {" equals", " is equal to", 0};
    const char *start = text(1), *end = TEXT_END, *to;
    for (;;) {                                                           /* back over digits that may be an answer */
        while (end > start && (is_digit(end[-1]) || end[-1] == '-' || end[-1] == '.' || end[-1] == ',' || end[-1] == ' ')) end--;
        if (end > start || TEXT_END - start > 400 || text((int)(TEXT_END - start) + 1) == start) break;
        start = card_start;
    }
    if (end == start || !is_one_of(end[-1], "=sSoO")) return 0;                /* most of a text */
    start = text((int)(TEXT_END - end) + CARD_BYTES);
    if (end[-1] == '=') {
        to = end - 1;
        if (to > start && (to[-1] == '=' || to[-1] == '<' || to[-1] == '>' || to[-1] == '!' || to[-1] == ':')) return 0;
    } else {
        to = end;
        for (int i = 0; EQUAL[i] && to == end; i++) to -= ends(start, end, EQUAL[i]);
        if (to == end) return 0;
    }
    const char *last = to;
    while (last > start && last[-1] == ' ') last--;
    if (last > start && !is_digit(last[-1]) && last[-1] != ')') return 0;
    start = text((int)(TEXT_END - to) + 900);
    const char *from = run_before(start, to);
    if (from == start && card_read) return 0;                            /* longer than what was read */
    const char *first = from;
    while (first < to && *first == ' ') first++;
    if ((*first == '-' && first[1] == ' ') || is_a_name(from, to) || !stands_alone(start, first)) return 0;
    int kind = written_as(first, to);
    if (kind != SUM && !is_asked_for(start, first) && (kind == NAME || !is_first(start, first))) return 0;
    fraction *a = value_of(first, to);
    if (!a || !operators || !written_out(a)) return 0;
    reply(answer, end, end[-1] != '=' || (to > start && to[-1] == ' '), CHANGES);
    return 1;
}

/* The value of a side of a comparison; 0 if it is not one. */
static fraction *side(const char *from, const char *to)
{
    return is_a_name(from, to) || written_as(from, to) == NAME ? 0 : value_of(from, to);
}

/* Is A less than B?  -> 1 or 0; -1: it is not such a question. */
static int comparison(const char *from, const char *to)
{
    static const struct { const char *name; int less, same, more; } ORDERS[] = {
        {"less than or equal to", 1, 1, 0}, {"greater than or equal to", 0, 1, 1}, {"less than", 1, 0, 0},
        {"smaller than", 1, 0, 0}, {"greater than", 0, 0, 1}, {"larger than", 0, 0, 1}, {"bigger than", 0, 0, 1},
        {"more than", 0, 0, 1}, {"equal to", 0, 1, 0}, {"the same as", 0, 1, 0}, {"<=", 1, 1, 0}, {">=", 0, 1, 1},
        {"==", 0, 1, 0}, {"<", 1, 0, 0}, {">", 0, 0, 1}, {"=", 0, 1, 0}, {0, 0, 0, 0},
    };
    for (const char *c = from; c < to; c++)
        for (int i = 0; ORDERS[i].name; i++) {
            int length = begins(c, to, ORDERS[i].name), order;
            if (!length) continue;
            used = 0;
            fraction *a = side(from, c), *b;
            if (!a) return -1;
            used = (int)(a - values) + 1;
            if (!(b = side(c + length, to))) return -1;
            order = order_of(a, b);
            return bad ? -1 : order < 0 ? ORDERS[i].less : order ? ORDERS[i].more : ORDERS[i].same;
        }
    return -1;
}

/* Which is larger, A or B?  -> the one, as it was written, without spaces. */
static int choice(const char *from, const char *to)
{
    static const char *const LARGER[] = {"larger", "bigger", "greater", "higher", 0};
    static const char *const SMALLER[] = {"smaller", "less", "lower", 0};
    int sign = 0, length = 0;
    for (int i = 0; LARGER[i] && !length; i++) if ((length = begins(from, to, LARGER[i]))) sign = 1;
    for (int i = 0; SMALLER[i] && !length; i++) if ((length = begins(from, to, SMALLER[i]))) sign = -1;
    from += length;
    if (!length || from == to || (*from != ',' && *from != ':' && *from != ' ')) return 0;
    for (const char *c = ++from; c < to; c++)
        if ((length = begins(c, to, " or "))) {
            fraction *a = side(from, c), *b;
            if (!a) return 0;
            used = (int)(a - values) + 1;
            if (!(b = side(c + length, to))) return 0;
            int order = order_of(a, b) * sign;
            if (!order || bad) return 0;
            const char *first = order > 0 ? from : c + length, *last = order > 0 ? c : to;
            for (length = 0; first < last && length < ROOM; first++) {
                if (is_letter(*first)) return 0;
                if (*first != ' ') answer[length++] = *first;
            }
            answer[length] = 0;
            return 1;
        }
    return 0;
}

/* Whether the text before the words of a question is no part of it: sentences, or words of politeness. */
static int leads_in(const char *start, const char *c)
{
    static const char POLITE[] = " please can could you tell me so and now hey hi hello ok okay then ";
    for (;;) {
        while (c > start && (is_space(c[-1]) || c[-1] == ',')) c--;
        if (c == start || c[-1] == '.' || c[-1] == '!' || c[-1] == '?') return 1;
        int length = ends_with(start, c, POLITE);
        if (!length) return 0;
        c -= length;
    }
}

/* Finds the answer to a question, and what may not follow it at once; 0 where there is none. */
static const char *question(const turn *now)
{
    static const char *const ASKED[] = {"what is", "what's", "how much is", "calculate", "compute", "evaluate", "work out",
                                        "solve", "which is", "which number is", "is", 0};
    static const char *const AFTER[] = {" please", " for me", 0};
    static const char *const BEFORE[] = {"the value of", "the result of", "the answer to", 0};
    read_question(now);
    const char *to = stop, *from = at, *c;
    int is_asked = to > from && to[-1] == '=';
    for (c = from; c < to && !is_digit(*c); c++) {}
    if (c == to) return 0;                                               /* most questions */
    if (to < now->end && *to == '!' && to > from && (is_digit(to[-1]) || to[-1] == ')')) return 0;    /* 3! */
    to -= is_asked;
    while (to > from && to[-1] == ' ') to--;
    for (int i = 0; AFTER[i]; i++) to -= ends(from, to, AFTER[i]);
    for (c = now->start; c < to; c++) {
        if (c > now->start && (is_letter(c[-1]) || !leads_in(now->start, c))) continue;
        for (int i = 0; ASKED[i]; i++) {
            int length = begins(c, to, ASKED[i]);
            length += length && c + length < to && c[length] == ':';
            if (!length || c + length == to || !is_space(c[length])) continue;
            from = c + length + 1;
            is_asked = 1;
            for (int j = 0; BEFORE[j]; j++) from += begins(from, to, BEFORE[j]);
            while (from < to && *from == ' ') from++;
            used = 0;
            if (ASKED[i][0] == 'i') {
                int found = comparison(from, to);
                for (int j = 0; found >= 0 && (answer[j] = (found ? "Yes" : "No")[j]); j++) {}
                if (found >= 0) return "";
            } else if (choice(from, to)) return CHANGES;
            break;
        }
    }
    while (from < to && *from == ' ') from++;
    used = 0;
    if (from == to || is_a_name(from, to) || (!is_asked && written_as(from, to) == NAME)) return 0;
    fraction *a = value_of(from, to);
    return a && operators && written_out(a) ? CHANGES : 0;
}

int main(void)
{
    turn now;
    if (equation() || !asked_for_word(&now)) return 0;
    const char *more = question(&now);
    if (more && !is_other(now.start, now.end) && !is_redefined(now.end)) reply(answer, now.written, now.spaced, more);
    return 0;
}
