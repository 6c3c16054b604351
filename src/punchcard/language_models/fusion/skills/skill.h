/* The contract between a program on the card and the language model around it.
 *
 * Before every token the last tokens of the text are brought onto the card, the program runs from its beginning, and when it
 * has ended its opinion is read:
 *
 *   card_context   the last 256 tokens, 16 bytes each, the newest last; unused bytes are 0
 *   card_next      with SAYS:  the text that comes next. The longest token that it begins with is written
 *   card_never     with FORBIDS:  a bit for each byte. No token that begins with one of these bytes is written
 *   card_opinion   0, SAYS or FORBIDS
 *
 * A token of text is its bytes. A special token is its name between two bytes SPECIAL, cut to 14 bytes. A token with more
 * than 16 bytes is one byte UNKNOWN: what cannot be read must not be guessed. A token of zeros alone is before the text.
 *
 * All that follows the four variables is a convenience: a program may use it or not. */

#ifndef SKILL_H
#define SKILL_H

#define CARD_TOKENS 256
#define CARD_BYTES 16
#define SPECIAL '\1'
#define UNKNOWN '\2'
#define SAYS 1
#define FORBIDS 2

/* The linker keeps them, also those that a program does not use. */
#define KEPT __attribute__((used, retain))
KEPT unsigned card_context[CARD_TOKENS * CARD_BYTES / 4];
KEPT unsigned card_next[CARD_BYTES / 4];
KEPT unsigned card_never[256 / 32];
KEPT unsigned card_opinion;

#define HELPER static __attribute__((unused))
#define DIGITS_ "0123456789"

/* The text: bytes of the last tokens in sequence. It is read from its end, as far as somebody asks. */

static char card_text[CARD_TOKENS * CARD_BYTES + 1];
static int card_read = CARD_TOKENS;                  /* tokens before this one are not read yet */
static char *card_start = card_text + CARD_TOKENS * CARD_BYTES;
#define TEXT_END (card_text + CARD_TOKENS * CARD_BYTES)

/* At least so many bytes of the text's end, if it has as many: from here to TEXT_END. */
HELPER const char *text(int bytes)
{
    while (card_read && TEXT_END - card_start < bytes) {
        const unsigned *words = card_context + CARD_BYTES / 4 * --card_read;
        const char *token = (const char *)words;
        int last = CARD_BYTES / 4 - 1;
        while (last && !words[last]) last--;
        int length = 4 * last;
        for (unsigned rest = words[last]; rest; rest >>= 8) length++;
        if (!length || token[0] == UNKNOWN) { card_read = 0; break; }
        card_start -= length;
        for (char *to = card_start; length; length--) *to++ = *token++;
    }
    return card_start;
}

/* Bytes and words. Letters may be of either case; words are given in small letters. */

HELPER int is_digit(char c) { return c >= '0' && c <= '9'; }
HELPER char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
HELPER int is_letter(char c) { c = lower(c); return c >= 'a' && c <= 'z'; }
HELPER int is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* How long the word is, if it stands at `at` before `end`; else 0. */
HELPER int begins(const char *at, const char *end, const char *word)
{
    int i = 0;
    while (word[i] && at + i < end && lower(at[i]) == word[i]) i++;
    return word[i] ? 0 : i;
}

/* How long the word is, if it ends at `end` and begins at `start` or later; else 0. */
HELPER int ends(const char *start, const char *end, const char *word)
{
    int length = 0;
    while (word[length]) length++;
    return end - start >= length && begins(end - length, end, word) ? length : 0;
}

/* What the program says. */

HELPER void says(const char *answer)
{
    char *next = (char *)card_next;
    for (int i = 0; i < CARD_BYTES && answer[i]; i++) next[i] = answer[i];
    card_opinion = SAYS;
}

HELPER void forbids(const char *bytes)
{
    for (; *bytes; bytes++) card_never[(unsigned char)*bytes >> 5] |= 1u << (*bytes & 31);
    card_opinion = FORBIDS;
}

/* Say the rest of an answer, if what was written is its beginning; `spaced`: a space comes before it. Once all of it is
 * written, no byte of `more` may follow, not even after a point or a comma: it would change the answer. */
HELPER void reply(const char *answer, const char *written, int spaced, const char *more)
{
    char rest[CARD_BYTES + 1];
    int count = 0, i = 0;
    const char *at = written;
    while (at < TEXT_END && is_space(*at)) at++;
    while (at < TEXT_END && answer[i] && *at == answer[i]) { at++; i++; }
    if (at < TEXT_END) {
        if (!answer[i] && at + 1 == TEXT_END && (*at == '.' || *at == ',') && *more) forbids(more);
        return;
    }
    if (!answer[i]) { if (*more) forbids(more); return; }
    if (spaced && written == TEXT_END) rest[count++] = ' ';
    while (count < CARD_BYTES && answer[i]) rest[count++] = answer[i++];
    rest[count] = 0;
    says(rest);
}

/* A question, and what was written of the answer. An answer is due after "A:", "Answer:" or "Output:", and in the assistant's
 * turn of a chat, which the special tokens around the names of roles show. */

typedef struct { const char *start, *end, *written; int spaced; } turn;

#define MOST_WRITTEN 320
#define MOST_ASKED 3200

/* Where a special token begins that ends at `end`; 0 where there is none. */
HELPER const char *special_before(const char *start, const char *end)
{
    if (end <= start || end[-1] != SPECIAL) return 0;
    for (end -= 2; end >= start; end--) if (*end == SPECIAL) return end;
    return 0;
}

/* Whether the role before `at` is the assistant's; where its name or its special token begins. */
HELPER const char *assistant_before(const char *start, const char *at)
{
    static const char *const roles[] = {"assistant", "model"};
    while (at > start && is_space(at[-1])) at--;
    for (int i = 0; i < 2; i++) {
        const char *role = at - ends(start, at, roles[i]), *before = special_before(start, at);
        if (role < at && (before = special_before(start, role))) return before;
        if (before && (before == start || before[-1] != SPECIAL)) {
            if (begins(before + 1, at, "<|assistant|>") || begins(before + 1, at, "[/inst]")) return before;
            role = before - ends(start, before, roles[i]);
            if (role < before && (role = special_before(start, role))) return role;
        }
    }
    return 0;
}

/* Where the question ends, if an answer is due at `at`, behind one of the bytes : \n SPECIAL; else 0. */
HELPER const char *due_at(const char *start, const char *at)
{
    static const char *const marks[] = {"answer:", "output:", "a:"};
    if (at[-1] != ':') return assistant_before(start, at);
    for (int i = 0; i < 3; i++) {
        const char *end = at - ends(start, at, marks[i]);
        if (end < at) return end == start || is_space(end[-1]) ? end : 0;
    }
    return 0;
}

HELPER int asked(turn *found)
{
    const char *start = text(MOST_WRITTEN), *at, *end = 0, *mark;
    if (start < TEXT_END - MOST_WRITTEN) start = TEXT_END - MOST_WRITTEN;
    for (at = TEXT_END; at > start && !end; at--) {
        if ((unsigned char)at[-1] > ':' || at[-1] == ' ') continue;      /* most of a text */
        if (at[-1] != ':' && at[-1] != '\n' && at[-1] != SPECIAL) continue;
        end = due_at(start, at);
        if (!end && at[-1] == SPECIAL) return 0;
        found->written = at;
        found->spaced = at[-1] == ':';
    }
    if (!end) return 0;
    text((int)(TEXT_END - end) + MOST_ASKED);
    start = card_start;
    while (end > start && (is_space(end[-1]) || end[-1] == SPECIAL)) {
        mark = special_before(start, end);
        end = mark ? mark : end - 1;
    }
    for (at = end; at > start && at[-1] != SPECIAL; at--)             /* a chat's message; or from "Q:" on; or the last line */
        if (found->spaced && (at[-1] == '\n' || at == start + 1)) {
            const char *line = at == start + 1 && at[-1] != '\n' ? start : at;
            int length = begins(line, end, "q:");
            if (!length) length = begins(line, end, "question:");
            if (length) { found->start = line + length; found->end = end; return 1; }
        }
    if (at > start || !found->spaced) {
        int length = begins(at, end, "user");
        found->start = at + length;
    } else {
        for (at = end; at > start && at[-1] != '\n'; at--) ;
        found->start = at;
    }
    found->end = end;
    while (found->start < end && is_space(*found->start)) found->start++;
    return found->start < end;
}

/* The same for an answer of one word: most of a text is left after a few bytes. */
HELPER int asked_for_word(turn *found)
{
    int spaces = 0;
    for (const char *c = TEXT_END; TEXT_END - c < MOST_WRITTEN; c--) {
        if (c == card_start && text((int)(TEXT_END - c) + 1) == c) return 0;
        if (c[-1] == ':' || c[-1] == '\n' || c[-1] == SPECIAL) {
            const char *before = c;
            text((int)(TEXT_END - c) + CARD_BYTES);
            while (before > card_start && is_space(before[-1])) before--;
            if (before > card_start && (before[-1] == SPECIAL || before[-1] == 't' || before[-1] == 'l')) text((int)(TEXT_END - c) + 64);
            if (due_at(card_start, c)) return asked(found);
            if (c[-1] == SPECIAL) return 0;
        }
        if (is_space(c[-1])) spaces = 1;
        else if (spaces) return 0;
    }
    return 0;
}

/* Reading a question from left to right. */

static const char *at, *stop;

HELPER void skip_spaces(void) { while (at < stop && is_space(*at)) at++; }

/* Go behind a word, or some words, if they come next. */
HELPER int eat(const char *words)
{
    skip_spaces();
    int length = begins(at, stop, words);
    if (!length || (is_letter(at[length - 1]) && at + length < stop && is_letter(at[length]))) return 0;
    at += length;
    return 1;
}

/* Begin to read a question: its last bytes may be ? . or ! */
HELPER void read_question(const turn *now)
{
    at = now->start;
    stop = now->end;
    while (stop > at && (is_space(stop[-1]) || stop[-1] == '?' || stop[-1] == '.' || stop[-1] == '!')) stop--;
}

/* A number in decimal digits, below a million; -1 if there is none. */
HELPER int eat_number(void)
{
    int value = 0, count = 0;
    skip_spaces();
    for (; at < stop && is_digit(*at); at++, count++)
        if (count < 6) value = (value << 3) + (value << 1) + (*at - '0');
    return count && count < 7 ? value : -1;
}

/* A number that is not negative, in digits, behind `to`; where it ends. */
HELPER char *put_number(char *to, int value)
{
    char digits[12];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10); while (value /= 10);
    while (count) *to++ = digits[--count];
    *to = 0;
    return to;
}

#endif
