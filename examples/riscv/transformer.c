/* The forward pass of a small transformer, in fixed point. A transformer runs this program, which runs a transformer.

   It has two layers of attention with weights set by formula, and continues a text by what followed before: an "induction
   head". Columns are tokens; a column has three blocks of rows:

       token      which letter stands here, one of LETTERS
       before     which letter stood one place before; layer 1 fills it in
       place      which place this is, one of PLACES

   Layer 1: a column looks at the column one place before, and copies its token to `before`.
   Layer 2: a column looks for a column whose `before` is its own token, and copies that column's token to the output.

   Each layer is X + V X softmax(K X, Q X), computed with 12 bits after the point. */

#include <stdint.h>
#include <stdio.h>

#define LETTERS 8
#define PLACES 24
#define ROWS (3 * LETTERS + PLACES) /* token, before, output, place */
#define TOKEN 0
#define BEFORE LETTERS
#define OUTPUT (2 * LETTERS)
#define PLACE (3 * LETTERS)
#define BITS 12
#define ONE (1 << BITS)
#define SHARP (12 * ONE) /* the inverse temperature */

typedef int32_t Number;
typedef struct {
    Number query[ROWS][ROWS], key[ROWS][ROWS], value[ROWS][ROWS];
} Layer;

static Layer layers[2];
static Number x[PLACES][ROWS], queries[PLACES][ROWS], keys[PLACES][ROWS], values[PLACES][ROWS];

static Number product(Number a, Number b) { return (Number)(((int64_t)a * b) >> BITS); }

/* 2^x of x <= 0: a shift for the whole part, and a polynomial of degree 2 for the rest, exact at 0 and 1. */
static Number power_of_two(Number x)
{
    int whole = (int)(x >> BITS);
    Number rest = x - whole * ONE;
    Number value = ONE + product(rest, ONE * 2 / 3 + product(ONE / 3, rest));
    return whole < -30 ? 0 : value >> -whole;
}

static void multiply(Number matrix[ROWS][ROWS], Number from[PLACES][ROWS], Number to[PLACES][ROWS], int count)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < count; column++)
            to[column][row] = 0;
    for (int row = 0; row < ROWS; row++)
        for (int inner = 0; inner < ROWS; inner++)
            if (matrix[row][inner] != 0) /* most weights are zero */
                for (int column = 0; column < count; column++)
                    if (from[column][inner] != 0)
                        to[column][row] += product(matrix[row][inner], from[column][inner]);
}

static void apply(Layer *layer, int count)
{
    multiply(layer->query, x, queries, count);
    multiply(layer->key, x, keys, count);
    multiply(layer->value, x, values, count);
    for (int here = 0; here < count; here++) {
        Number scores[PLACES], best = INT32_MIN, total = 0;
        for (int there = 0; there <= here; there++) { /* a column sees itself and those before */
            Number score = 0;
            for (int row = 0; row < ROWS; row++)
                if (queries[here][row] != 0 && keys[there][row] != 0)
                    score += product(queries[here][row], keys[there][row]);
            scores[there] = score;
            best = score > best ? score : best;
        }
        for (int there = 0; there <= here; there++) {
            scores[there] = power_of_two(scores[there] - best);
            total += scores[there];
        }
        for (int there = 0; there <= here; there++) {
            Number weight = (scores[there] << BITS) / total;
            if (weight != 0)
                for (int row = 0; row < ROWS; row++)
                    if (values[there][row] != 0)
                        x[here][row] += product(weight, values[there][row]);
        }
    }
}

static void set_weights(void)
{
    for (int i = 1; i < PLACES; i++) { /* layer 1: place i looks for place i - 1 */
        layers[0].query[i - 1][PLACE + i] = SHARP;
        layers[0].key[i - 1][PLACE + i - 1] = ONE;
    }
    for (int i = 0; i < LETTERS; i++) {
        layers[0].value[BEFORE + i][TOKEN + i] = ONE;
        layers[1].query[i][TOKEN + i] = SHARP; /* layer 2: a token looks for where it stood before */
        layers[1].key[i][BEFORE + i] = ONE;
        layers[1].value[OUTPUT + i][TOKEN + i] = ONE;
    }
}

/* The letter that the last column predicts. */
static int predict(const int *tokens, int count)
{
    for (int column = 0; column < count; column++)
        for (int row = 0; row < ROWS; row++)
            x[column][row] = row == TOKEN + tokens[column] || row == PLACE + column ? ONE : 0;
    apply(&layers[0], count);
    apply(&layers[1], count);
    int best = 0;
    for (int i = 0; i < LETTERS; i++)
        if (x[count - 1][OUTPUT + i] > x[count - 1][OUTPUT + best])
            best = i;
    printf("%c with %ld of %d\n", 'a' + best, (long)x[count - 1][OUTPUT + best], ONE);
    return best;
}

int main(void)
{
    int tokens[PLACES], count = 0;
    for (int c = getchar(); c != EOF && c != '\n' && count < PLACES - 4; c = getchar())
        if (c >= 'a' && c < 'a' + LETTERS)
            tokens[count++] = c - 'a';
    if (count == 0) {
        printf("write letters from a to %c\n", 'a' + LETTERS - 1);
        return 1;
    }
    set_weights();
    for (int more = 0; more < 4; more++, count++)
        tokens[count] = predict(tokens, count);
    for (int i = 0; i < count; i++)
        putchar('a' + tokens[i]);
    putchar('\n');
    return 0;
}
