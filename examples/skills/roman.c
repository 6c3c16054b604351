/* A skill of one's own:  What is 2026 in Roman numerals?  ->  MMXXVI
 *
 *     punchcard fuse examples/skills/roman.c --base FOLDER -o FOLDER */

#include "skill.h"

static const struct { int value; const char *letters; } PARTS[] = {
    {1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"},
    {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
};

int main(void)
{
    turn now;                                        /* a question, and what was written of the answer */
    char answer[20], *end = answer;
    if (!asked(&now)) return 0;
    read_question(&now);
    if (!eat("what is")) return 0;
    int number = eat_number();
    if (number < 1 || number > 3999 || !eat("in roman numerals") || at != stop) return 0;
    for (int i = 0; number; i++)
        for (; number >= PARTS[i].value; number -= PARTS[i].value)
            for (const char *c = PARTS[i].letters; *c; c++) *end++ = *c;
    *end = 0;
    reply(answer, now.written, now.spaced, "IVXLCDM");
    return 0;
}
