/* A skill: the calendar. Dates are 2026-11-18, November 18, 2026 or 18 November 2026, of the Gregorian calendar from 1583 on.
 * Where an answer is due (skill.h):
 *
 *   What day of the week is 2026-11-18?     How many days are between 2026-11-18 and 2026-12-24?     Is 2100 a leap year?
 *
 * Days from a date to an earlier one are negative; between two dates they are not. */

#include "skill.h"

static const char *const MONTHS[] = {"january", "february", "march", "april", "may", "june", "july", "august", "september",
                                     "october", "november", "december", 0};
static const char *const DAYS[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
static const unsigned char LENGTHS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

static int is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

static int eat_month(void)
{
    char cut[4] = {0};
    for (int i = 0; MONTHS[i]; i++) {
        if (eat(MONTHS[i])) return i + 1;
        for (int j = 0; j < 3; j++) cut[j] = MONTHS[i][j];
        if (eat(cut)) { eat("."); return i + 1; }
    }
    return 0;
}

static void eat_ordinal(void)
{
    if (at + 1 < stop && is_letter(at[0]) && (begins(at, stop, "st") || begins(at, stop, "nd") || begins(at, stop, "rd") ||
                                              begins(at, stop, "th"))) at += 2;
}

/* A number with no more digits than these; -1 if there is none. */
static int eat_digits(int most)
{
    skip_spaces();
    const char *from = at;
    int value = eat_number();
    return at - from > most ? -1 : value;
}

static int eat_year(void) { return eat_digits(4); }

/* The number of a date's day; Monday the first of January of the year 1 is 0. -1: no date. */
static int eat_date(void)
{
    int year, month, day;
    eat("the");
    if ((month = eat_month())) {
        day = eat_digits(2);
        eat_ordinal();
        eat(",");
        year = eat_year();
    } else {
        year = eat_year();
        if (at < stop && *at == '-') {
            at++;
            month = eat_digits(2);
            if (at == stop || *at++ != '-') return -1;
            day = eat_digits(2);
        } else {
            day = year;
            eat_ordinal();
            eat("of");
            month = eat_month();
            eat(",");
            year = eat_year();
        }
    }
    if (year < 1583 || year > 9999 || month < 1 || month > 12) return -1;
    if (day < 1 || day > LENGTHS[month - 1] + (month == 2 && is_leap(year))) return -1;
    int before = year - 1, number = 365 * before + before / 4 - before / 100 + before / 400 + day - 1;
    for (int i = 1; i < month; i++) number += LENGTHS[i - 1] + (i == 2 && is_leap(year));
    return number;
}

static int at_end(void) { skip_spaces(); return at == stop; }

static const char *weekday(void)
{
    eat("on");
    if (!eat("what day of the week") && !eat("which day of the week") && !eat("what weekday") && !eat("which weekday") &&
        !eat("what day")) return 0;
    if (!eat("is") && !eat("was") && !eat("will be")) return 0;
    int number = eat_date();
    return number >= 0 && at_end() ? DAYS[number % 7] : 0;
}

static const char *between(void)
{
    static char count[12];
    if (!eat("how many days")) return 0;
    if (!eat("are there")) if (!eat("are")) eat("is it");
    int from = eat("from");
    if (!from && !eat("between")) return 0;
    int first = eat_date(), second;
    if (first < 0 || !(from ? eat("to") || eat("until") : eat("and")) || (second = eat_date()) < 0 || !at_end()) return 0;
    char *digits = count;
    if (from && second < first) *digits++ = '-';
    put_number(digits, first < second ? second - first : first - second);
    return count;
}

static const char *leap(void)
{
    if (!eat("is") && !eat("was") && !eat("will")) return 0;
    eat("the year");
    int year = eat_year();
    eat("be");
    return year >= 1583 && year <= 9999 && eat("a leap year") && at_end() ? is_leap(year) ? "Yes" : "No" : 0;
}

int main(void)
{
    turn now;
    if (!asked_for_word(&now)) return 0;
    const char *(*const questions[])(void) = {weekday, between, leap}, *answer = 0;
    for (int i = 0; i < 3 && !answer; i++) { read_question(&now); answer = questions[i](); }
    if (answer) reply(answer, now.written, now.spaced, is_digit(*answer) || *answer == '-' ? DIGITS_ : "");
    return 0;
}
