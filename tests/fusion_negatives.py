"""Texts that look like a question for a skill, and are not: at the end of each the programs must have no opinion."""

from __future__ import annotations

VERSIONS = [f"{name} {version} {end}" for name in ("Python", "version", "v", "release", "kernel")
            for version in ("3.11.2", "1.2.3-4", "10.0.19045") for end in ("=", "is", "- 1 =")]
DATES = [text + end for text in ("2024-11-18", "18/11/2024", "11/18/2024", "2026-1-5", "1/5/26", "18.11.2024", "05-06-2023",
                                 "1999-12-31") for end in (" =", "=", " equals", ": ")]
TELEPHONES = [text + end for text in ("555-1234", "555-123-4567", "1-800-555-0199", "+1 555 123 4567", "(555) 123-4567",
                                      "0049-30-1234", "030/1234567") for end in (" =", "=", " equals", " is")]
CODE = [
    "x = 3 + 4", "if (a == 3 + 4", "y += 3 + 4", "a[3 + 4] =", "f(3 + 4) =", "let z =", "int n = 12 * 30", "x == 3 + 4 ==",
    "a != 3 + 4 !=", "b <= 3 + 4 <=", "c >= 3 + 4 >=", "x := 3 + 4 :=", 'printf("2 + 2 =', "print('2 + 2 =",
    "print(`2 + 2 =",
    'echo "3 * 4 =', "f'3 * 4 =", 's = "1 + 1 =', "0x10 + 5 =", "1e5 + 3 =", "0b11 + 1 =", "a1 + 2 =", "x2 - 3 =",
    "arr[1] + 2 =",
    "n % 2 =", "i++ + 3 =", "!3 + 4 =", "~3 + 4 =", "a && 3 + 4 =", "a || 3 + 4 =", "a | 3 + 4 =", "a < 3 + 4 =",
    "a > 3 + 4 =",
    "$x + 3 =", "#define N 3 +", "width: 3 + 4px =", "@3 + 4 =", "3 + 4 =>", "3 + 4 === ", "lambda x: x + 2 =",
    "self.a + 2 =",
    "math.pi + 2 =", "sqrt 9 + 16 =", "return 3 + 4", "case 3 + 4:", "3 + 4;", "[3 + 4] =", "{3 + 4} =", "<3 + 4> =",
    "assert f(2) + 3 =", "n! + 3 =", "x' + 3 =", "\\frac{1}{2} + 3 =", "\\sqrt{2} + 3 =", "x_1 + 2 =", "2**n =", "10**x =",
]
ALGEBRA = [
    "3x + 2 =", "2y - 5 =", "x + 3 + 4 =", "3 + x =", "a + b =", "3a + 4b =", "2(x + 1) =", "x^2 + 2 =", "y = 3x + 4 =",
    "xy + 2 =",
    "3 + 4x =", "5n - 1 =", "f(x) = 3 + 4x =", "sin 3 + 4 =", "log 100 + 2 =", "log(100) + 2 =", "ln 2 + 1 =",
    "the root of 9 + 16 =",
    "half of 3 + 5 =", "10% of 30 + 5 =", "twice 3 + 4 =", "double 3 + 4 =", "the square of 3 + 4 =", "|3 - 5| =",
    "|3| + 4 =",
    "3! + 4 =", "5! =", "π + 2 =", "2π + 3 =", "e + 3 =", "√9 + 1 =", "3² + 4 =", "x² + 3 =", "∑ 3 + 4 =", "30° + 15° =",
    "∫ 3 + 4 =",
    "3 ± 4 =", "4 choose 2 =", "C(4, 2) =", "gcd(12, 18) =", "(1, 2) + (3, 4) =", "[1 2] + 3 =", "3i + 4 =", "1 + 2i =",
]
UNFINISHED = [
    "3 + =", "3 + 4 + =", "+ 4 =", "* 4 =", "/ 4 =", "3 * / 4 =", "3 + + =", "(3 + 4 =", "3 + 4) =", "((3 + 4) =", "() =",
    "( =", "=",
    " =", "3 =", "42 =", "3.5 =", "3 + 4", "3 +", "3 + 4 +", "3 + 4 -", "3 plus", "3 plus 4", "3 times", "3 plus =",
    "plus 4 =", "3 4 =",
    "3 + 4 5 =", "3 . 5 + 1 =", "3. + 4. =", ".5.5 + 1 =", "1.2.3 + 4 =", "1..2 + 3 =", "3,5 + 1 =", "1,234 + 5 =",
    "007 + 1 =",
    "3 + 04 =", "1 / 0 =", "5 % 0 =", "0 ^ 0 =", "0^-1 =", "-5 % 3 =", "5.5 % 2 =", "2^0.5 =", "2^1000 =", "10^500 =",
    "- 3 + 4 =",
    "3 + 4 = 8", "3 + 4 = 6", "3 + 4 = 7 apples and", "12 + 30 = 41", "12 + 30 = 420", "12 + 30 = 4 2",
    "99999999999999999999999999999999999999999 + 1 =",
]
UNITS = [
    "3 apples + 4 apples =", "3 km + 4 =", "$5 + $3 =", "5€ + 3€ =", "£3 + £4 =", "10:30 + 5 =", "10:30 - 9:15 =",
    "3h + 20min =",
    "5 ft 3 + 4 ft =", "20 °C + 5 =", "3kg + 4kg =", "50% + 20% =", "room 3-4 =", "pages 10-20 =", "Psalm 23:1-3 =",
    "chapter 3.2 =",
    "IP 192.168.0.1 =", "10.0.0.1/24 =", "port 80:8080 =", "ISBN 978-3-16-148410-0 =", "A4 + 2 =", "B-52 + 1 =",
    "MP3 + 4 =", "H2O + 2 =",
    "C6H12O6 + 6 =", "CO2 + 1 =", "u/3 + 4 =", "No. 5-3a =", "#12 + 3 =", "row 3, seat 4 + 2a =", "F-16 + 2 =",
    "7-Eleven + 1 =",
]
QUOTATIONS = [
    "„Was ist 12 + 30 =", "«Combien font 12 + 30 =", '"Cuánto es 12 + 30 =', "“Hvad er 12 + 30 =", '"ラ12 + 30 =',
    "Er fragte: „3 + 4 =",
    'Elle écrit: "3 + 4 =', "Lei disse: «3 + 4 =", "Он сказал: «3 + 4 =", '他说："3 + 4 =', "`3 + 4 =", '"3 + 4 =',
    "„Was ist 12 + 30?“ fragte er.",
    "« Combien font 12 + 30 ? » demanda-t-elle.", "¿Cuánto es 12 + 30? preguntó.", "Was ist 12 + 30?",
    "Combien font 3 fois 4 ?",
    "Quanto fa 12 + 30?", "12 mal 3 =", "12 fois 3 =", "zwölf + 3 =", "douze plus trois", "Wie viel ist 7 mal 8?\nAntwort:",
    "Was ist 12 + 30?\nAntwort:", "Combien font 12 + 30 ?\nRéponse:", "¿Cuánto es 12 + 30?\nRespuesta:",
]
QUESTIONS = [
    f"{text}\nA:" for text in (
        "What is 42?", "What is love?", "What is 3 + 4 in binary?", "What is 3 + x?", "What is 12 + 30 apples?",
        "What is the sum?",
        "What is 2024-11-18?", "What is 555-1234?", "What is 1.2.3?", "What is 3 + ?", "What is + 3?",
        "How much is the fish?",
        "Calculate the area.", "Compute f(3 + 4).", "Evaluate 3x + 2.", "Solve x + 3 = 7.", "Is 3 a prime?",
        "Is 3 + 4 prime?", "Is it 3 > x?",
        "Is 2023-02-30 a date?", "Which is larger, the sun or the moon?", "Which is larger, 3 or x?", "Which is larger: 3?",
        "Which is bigger, 5 or 5?", "How many eggs are in the basket?", "How many r's are in it all together?",
        "How many people are in Rome?",
        "How many days are in a year?", "How many days between now and then?",
        "How many days are between 2023-02-30 and 2023-03-01?",
        "What day of the week is tomorrow?", "What day of the week is 2023-13-01?", "What day is it?",
        "Is 2024 a good year?",
        "Is 1200 a leap year?", "Is twenty a leap year?", "Spell it out for me.", "Spell 42.",
        "Reverse the decision now.", "Reverse 123.",
        "Sort the letters I sent you.", "Sort the letters of 42.", "Count the votes in Ohio.", "Count to ten.",
        "How many letters did he write?",
        "Run this SUBLEQ program.", "Run this SUBLEQ program: 0 0 0", "Run this SUBLEQ program: 3 4 x",
        "Run this SUBLEQ program: 900 -1 -1",
        "Run this program: 3 4 6 7 7 7 3 4 0")
]
PROSE = [
    "The meeting is at 10 - 12 and", "Chapters 3 + 4 are", "He scored 3-2 in the final", "A 3 x 4 grid",
    "The ratio is 3:4 =", "It is 5 - 3 years old",
    "From 9 to 5 =", "open 24/7", "9/11 is", "a 50/50 chance =", "4x4 =", "the 80/20 rule", "World War 2 - 1939 to 1945",
    "between 3 and 4 =", "Route 66 + 1a =",
    "Apollo 11 equals", "he equals", "all men are created equal to", "this equals", "x equals", "2 equals", "3 and 4 equals",
]
NEGATIVES = [*VERSIONS, *DATES, *TELEPHONES, *CODE, *ALGEBRA, *UNFINISHED, *UNITS, *QUOTATIONS, *QUESTIONS, *PROSE]
