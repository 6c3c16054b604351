/* A skill: the letters of a word, which tokens hide. Where an answer is due (skill.h):
 *
 *   How many r's are in strawberry?    How many times does the letter r appear in strawberry?    How many letters are in it?
 *   Reverse the word strawberry.       Spell strawberry.       Spell it backwards.      Sort the letters of strawberry. */

#include "skill.h"

#define LONGEST 64

static char word[LONGEST + 1], answer[2 * LONGEST + 2];
static int length, is_named;                         /* is_named: the word is in quotes, or "the word" is before it */
static int is_unit;                                  /* the letter may be a unit: it is alone, without quotes, "letter" or plural */

/* Words that mean something else than themselves, unless "the word" or quotes say so: pronouns and the like, what "reverse"
 * and "spell" go with, and what has letters of its own. */
static const char *const OTHERS[] = {"it", "this", "that", "them", "these", "those", "the", "a", "an", "all", "everything",
    "each", "both", "either", "any", "some", "many", "most", "none", "other", "others", "another", "one", "two", "what", "which",
    "here", "there", "total", "general", "use", "common", "stock", "full", "me", "you", "us", "him", "her", "my", "mine", "your",
    "yours", "our", "ours", "his", "hers", "its", "their", "theirs", "out", "names", "words",
    "engineering", "engineer", "gear", "psychology", "osmosis", "order", "mortgage", "parking", "proxy", "dns", "course",
    "charges", "polarity", "direction", "transcriptase", "lookup", "search", "thrust", "split", "merger", "auction",
    "discrimination", "racism", "chronology", "check", "checking", "checker", "casting", "caster", "doom", "trouble", "disaster",
    "english", "french", "german", "spanish", "italian", "greek", "russian", "polish", "portuguese", "dutch", "swedish",
    "danish", "norwegian", "finnish", "icelandic", "irish", "gaelic", "czech", "hungarian", "turkish", "ukrainian", "armenian",
    "georgian", "korean", "japanese", "chinese", "hindi", "thai", "esperanto", "cyrillic", "alphabets", "morse", "scrabble",
    "arabic", "hebrew", "latin", "welsh", "hawaiian", "braille", 0};
static const char UNITS[] = "bcdghklmnpstw";           /* bytes, cents, days, grams, hours: How many l are in barrel? */

static int is_one_of(const char *const *words)
{
    for (; *words; words++) if (begins(word, word + length, *words) == length) return 1;
    return 0;
}

static int is_quote(const char *c) { return c < stop && (*c == '"' || *c == '\'' || *c == '`'); }

/* "the letter r", "r's", 'r': the letter, or 0. */
static char eat_letter(void)
{
    int told = eat("the letters") || eat("the letter") || eat("letter"), plural;
    skip_spaces();
    int quoted = is_quote(at);
    at += quoted;
    char found = at < stop && is_letter(*at) ? lower(*at++) : 0;
    if (quoted && is_quote(at)) at++;
    plural = begins(at, stop, "'s ") ? 2 : begins(at, stop, "s ") ? 1 : 0;
    if (found == 's' && plural == 1) return 0;                           /* ss: the letter, or both of them */
    at += plural;
    is_unit = 0;
    for (int i = 0; UNITS[i] && !told && !quoted && !plural; i++) is_unit |= UNITS[i] == found;
    return at < stop && *at == ' ' ? found : 0;
}

/* A word of letters; nothing may follow but `ending`, if it is given. */
static int eat_word(const char *ending)
{
    length = 0;
    int quoted, told = eat("the word");
    skip_spaces();
    quoted = is_quote(at);
    at += quoted;
    is_named = told || quoted;
    for (; at < stop && is_letter(*at); at++) if (length < LONGEST) word[length++] = *at; else return 0;
    if (quoted && !is_quote(at)) return 0;
    at += quoted;
    if (*ending) eat(ending);
    skip_spaces();
    if (!is_named && (is_unit || length < 2 || is_one_of(OTHERS))) return 0;
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
    if (!all) {
        int counted = eat("times does") || eat("times is") || eat("occurrences of");
        letter = eat_letter();
        is_unit &= !counted;
    }
    if (!all && !letter) return -1;
    if (!eat("are there")) if (!eat("are")) if (!eat("is")) if (!eat("appear")) if (!eat("occur")) eat("does");
    if (!eat("in") || !eat_word(all ? "have" : "")) return -1;
    if (all && !is_named && word[0] < 'a') return -1;                    /* How many letters are in Tamil? */
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
    if (!asked_for_word(&now)) return 0;
    read_question(&now);
    if (answered()) reply(answer, now.written, now.spaced, "0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return 0;
}
