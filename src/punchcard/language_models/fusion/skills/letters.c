/* A skill: the letters of a word, which tokens hide. Where an answer is due (skill.h):
 *
 *   How many r's are in strawberry?    How many times does the letter r appear in strawberry?    How many letters are in it?
 *   Reverse the word strawberry.       Spell strawberry.       Spell it backwards.      Sort the letters of strawberry. */

#include "skill.h"

#define LONGEST 64

static char word[LONGEST + 1], answer[2 * LONGEST + 2];
static int length;

static int is_quote(const char *c) { return c < stop && (*c == '"' || *c == '\'' || *c == '`'); }

/* "the letter r", "r's", 'r': the letter, or 0. */
static char eat_letter(void)
{
    if (!eat("the letters")) eat("the letter");
    eat("letter");
    skip_spaces();
    int quoted = is_quote(at);
    at += quoted;
    char found = at < stop && is_letter(*at) ? lower(*at++) : 0;
    if (quoted && is_quote(at)) at++;
    at += begins(at, stop, "'s ") ? 2 : begins(at, stop, "s ") ? 1 : 0;
    return at < stop && *at == ' ' ? found : 0;
}

/* A word of letters; nothing may follow but `ending`, if it is given. */
static int eat_word(const char *ending)
{
    length = 0;
    eat("the word");
    skip_spaces();
    int quoted = is_quote(at);
    at += quoted;
    for (; at < stop && is_letter(*at); at++) if (length < LONGEST) word[length++] = *at; else return 0;
    if (quoted && !is_quote(at)) return 0;
    at += quoted;
    if (*ending) eat(ending);
    skip_spaces();
    return length && at == stop;
}

static int count_of(char letter)
{
    int count = 0;
    for (int i = 0; i < length; i++) count += lower(word[i]) == letter;
    return count;
}

/* How many ...: the number, or -1. */
static int how_many(void)
{
    char letter = 0;
    int all = eat("letters");
    if (!all && (eat("times does") || eat("times is") || eat("occurrences of") || 1)) letter = eat_letter();
    if (!all && !letter) return -1;
    if (!eat("are there")) if (!eat("are")) if (!eat("is")) if (!eat("appear")) if (!eat("occur")) eat("does");
    if (!eat("in") || !eat_word(all ? "have" : "")) return -1;
    return all ? length : count_of(letter);
}

/* The answer to a question; 0 where it is not one of ours. */
static int answered(void)
{
    eat("please");
    if (eat("how many")) {
        int count = how_many();
        if (count >= 0) put_number(answer, count);
        return count >= 0;
    }
    if (eat("count")) {
        char letter = eat_letter();
        if (!letter || !eat("in") || !eat_word("")) return 0;
        put_number(answer, count_of(letter));
        return 1;
    }
    if (eat("reverse")) {
        if (!eat_word("")) return 0;
        for (int i = 0; i < length; i++) answer[i] = word[length - 1 - i];
        answer[length] = 0;
        return 1;
    }
    if (eat("sort the letters of") || eat("sort the letters in")) {
        if (!eat_word("alphabetically")) return 0;
        for (int i = 0; i < length; i++) {
            char letter = lower(word[i]);
            int j = i;
            for (; j && answer[j - 1] > letter; j--) answer[j] = answer[j - 1];
            answer[j] = letter;
        }
        answer[length] = 0;
        return 1;
    }
    if (eat("spell")) {
        const char *from = at;
        int backwards = !eat_word("");
        at = from;
        if (!eat_word("backwards")) return 0;
        for (int i = 0; i < length; i++) {
            answer[2 * i] = word[backwards ? length - 1 - i : i];
            answer[2 * i + 1] = i + 1 < length ? '-' : 0;
        }
        return 1;
    }
    return 0;
}

int main(void)
{
    turn now;
    if (!asked(&now)) return 0;
    read_question(&now);
    if (answered()) reply(answer, now.written, now.spaced, "0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return 0;
}
