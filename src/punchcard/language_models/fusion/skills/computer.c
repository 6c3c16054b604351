/* A skill: a computer. A SUBLEQ program in the question is executed, and what it writes is the answer (skill.h):
 *
 *   Run this SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105
 *   Output: Hi
 *
 * The numbers are the memory. An instruction is three of them, a b c: mem[b] -= mem[a], and if that is not above 0 the next
 * instruction is at c, else behind this one. With b = -1, mem[a] is written as a character. A negative address ends the
 * program. One that does not end, reads, or goes outside the memory, has no answer. */

#include "skill.h"

#define WORDS 512
#define STEPS 20000
#define LONGEST 200

static int memory[WORDS];
static char output[LONGEST + 1];
static int has_large;

static int eat_word(void)
{
    int sign = at < stop && *at == '-';
    at += sign;
    int value = eat_number();
    if (value < 0) has_large = 1;                                        /* more digits than are read */
    return sign ? -value : value;
}

/* The numbers up to the end of the question; how many. 0 where there is something else. */
static int read_program(void)
{
    int count = 0;
    if (at < stop && *at == ':') at++;
    for (;;) {
        while (at < stop && (is_space(*at) || *at == ',')) at++;
        if (at == stop) return count;
        if (count == WORDS || !(is_digit(*at) || (*at == '-' && at + 1 < stop && is_digit(at[1])))) return 0;
        memory[count++] = eat_word();
        if (has_large || (at < stop && !is_space(*at) && *at != ',')) return 0;
    }
}

/* How much is written until the program ends; -1 where it has no answer. */
static int execute(void)
{
    int counter = 0, written = 0;
    for (int step = 0; counter >= 0; step++) {
        if (step == STEPS || counter + 2 >= WORDS) return -1;
        int a = memory[counter], b = memory[counter + 1];
        if (a < 0 || a >= WORDS || b < -1 || b >= WORDS) return -1;
        if (b == -1) {
            if (written == LONGEST || memory[a] < ' ' || memory[a] > '~') return -1;
            output[written++] = (char)memory[a];
            counter += 3;
        } else {
            memory[b] -= memory[a];
            counter = memory[b] <= 0 ? memory[counter + 2] : counter + 3;
        }
    }
    return written;
}

static int eat_one_of(const char *const *words)
{
    for (; *words; words++) if (eat(*words)) return 1;
    return 0;
}

/* Whether the question asks for what a SUBLEQ program writes; then its numbers come next. */
static int is_asked_to_run(void)
{
    static const char *const ASKED[] = {"run", "execute", "what does", "what is the output of", "what's the output of", 0};
    static const char *const WHICH[] = {"this", "the", "following", "a", "my", "short", "small", "little", 0};
    eat("please");
    eat_one_of(ASKED);
    while (eat_one_of(WHICH)) {}
    return eat("subleq program") || eat("subleq");
}

int main(void)
{
    turn now;
    if (!asked(&now)) return 0;
    read_question(&now);
    if (is_asked_to_run() && read_program() >= 3 && execute() > 0) reply(output, now.written, now.spaced, "");
    return 0;
}
