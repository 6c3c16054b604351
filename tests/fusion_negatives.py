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
SCATTERED = [  # prices, times, scores, addresses, code, chess, formulas, lists, other languages, other writings of numbers
    "The price is $3.50 + $1.25 =", "Total: 3 × $4 =", "€5 + €6 =", "Sale: 50% off, was 100 - 20 =", "9:30 - 17:00 =",
    "Open 9-5 =", "Score: 3-1 =", "The final score was 3-1 =", "Lakers 102 - 99 Celtics =", "won 21-14 =",
    "https://example.com/?q=3+4=", "http://a.b/c?x=1+2&y=", "https://example.com/?a=1/2=", "http://x.y/?page=2-1=",
    "?a=3*4=", "&id=12-30=", "curl 'http://x/?n=1+2=", "#3 + 4 =", "// 3 + 4 =", "-- 3 + 4 =", "/* 3 + 4 =", ">>> 3 + 4 =",
    "1. e4 e5 2. Nf3 Nc6 =", "e8=", "e4 d8=", "O-O-O =", "6.02e23 + 1 =", "1.5e-3 * 2 =", "2E5 + 3 =", "\\(3 + 4 =",
    "\\[3 + 4 =", "\\frac{3}{4} + 1 =", "\\begin{align} 3 + 4 &=", "$3 + 4 &=", "3 \\times 4 =", "3 \\cdot 4 =",
    "x^{2} + 3 =", "\\text{3} + 4 =", "\\log_2 8 + 1 =", "2_3 + 4 =", "3_2 + 4 =", "\\sum_{i=1}^{3} 4 + 5 =",
    "|x| + 3 + 4 =", "3 ≡ 4 + 5 =", "3 ≠ 4 + 5 =", "3 ≈ 4 + 5 =", "3 < 4 + 5 =", "3 > 4 + 5 =", "3 <= 4 + 5 =",
    "3 | 4 + 5 =", "a ⊕ 3 + 4 =", "3 ⊕ 4 + 5 =", "3 & 4 + 5 =", "5 ! 3 + 4 =", "if x > 3 + 4 =", "while i < 10 - 1 =",
    "for i in 3 - 1 =", '{"a": 3 + 4 =', "['a', 3 + 4 =", "(1, 2 + 3 =", "[1, 2 + 3 =", "1, 2, 3 + 4 =", "1; 2 + 3 =",
    "1 2 3 + 4 =", "items: 1, 2 + 3 =", "List: 5, 6 * 2 =", "1/2, 3/4 =", "1/2 cup + 1/4 cup =", "3/4 inch - 1/8 =",
    '5\'10" + 2 =', "6'2 - 1 =", '12" - 3" =', '12" x 3 =', "2x4 =", "a 2 x 4 =", "10x =", "1920x1080 =", "3x3 =", "16:9 =",
    "1:2 + 3 =", "90-60-90 =", "A-10 - 3 =", "AK-47 - 1 =", "COVID-19 - 1 =", "Boeing 747-400 =", "PS5 - 1 =",
    "RTX 3080 - 10 =", "M1 + 2 =", "Windows 10 - 1 =", "iPhone 12 - 11 =", "Chapter 3 - 4 =", "Genesis 1:1-3 =",
    "John 3:16 - 18 =", "pp. 12-30 =", "p. 12 - 30 =", "vol. 3 - 4 =", "§ 3 - 4 =", "No. 3 - 4 =", "Rs 300 + 40 =",
    "USD 300 + 40 =", "300 USD + 40 =", "¥300 + 40 =", "CHF 3 - 4 =", "3 dB + 4 =", "-3 dB - 4 =", "12 V - 3 =",
    "0.5 mm - 0.1 =", "20% + 5 =", "10 % + 5 =", "20 % of 30 + 5 =", "pH 7 - 3 =", "T - 10 =", "T-10 =", "p<0.05 - 0.01 =",
    "1990s - 80 =", "b. 1900 - 1980 =", "Mozart (1756-1791) =", "FY 2020/21 =", "ages 18-35 =", "Mon-Fri 9-5 =", "3–4 =",
    "5—3 =", "555-5555 =", "123-45-6789 =", "12-34-56 =", "4111-1111-1111-1111 =", "4111 1111 1111 1111 =", "1+2i+3 =",
    "3 + 4i =", "i + 3 =", "3j + 4 =", "Was sind 3 + 4 =", "Wie viel ist 3 + 4 =", "Combien font 3 + 4 =",
    "¿Cuánto es 3 + 4 =", "Quanto è 3 + 4 =", "3 更 4 + 5 =", "三 3 + 4 =", "٣ + 4 =", "３ + 4 =", "3 と 4 + 5 =",
    "сколько будет 3 + 4 =", "3 und 4 + 5 =", "drei plus 4 =", "3,5 + 4,5 =", "3.000,50 + 1 =", "1.234,56 + 2 =",
    "1'234 + 5 =", "1 234 + 5 =", "1_234 + 5 =", "12,34 + 5 =", "½ + 3 =", "3½ + 4 =", "2³ + 4 =", "3 º + 4 =", "4th + 3 =",
    "1st - 2nd =", "H₂ + 3 =", "2 H2 + 2 =", "2H + 3 =", "Fe(3) + 2 =", "vitamin B12 + 3 =", "C++ + 3 =", "F(3 + 4 =",
    "sin(3 + 4) =", "max(3 + 4) =", "max (3 + 4) =", "sqrt (3 + 4) =", "f (3 + 4) =", "log (3 + 4) =", "-(3 + 4) - x =",
    "x - (3 + 4) =", "x * 3 + 4 =", "y / 3 + 4 =", "x- 3 + 4 =", "x % 3 + 4 =", "dy/dx + 3 =", "P(A) + 3 =", "E = mc^2 =",
    "2^n - 1 =", "O(n^2) + 3 =", "a^2 + b^2 =", "(a + b)^2 =", "(3 + 4)(5 + 6) =", "2(3 + 4) =", "(3 + 4)2 =", "3(4) =",
    "3 (4) =", "3 * 4! =", "√(3 + 4) =", "∛ 8 + 1 =", "∞ - 3 =", "-∞ + 3 =", "10 + ∞ =", "π * 3 ^ 2 =", "3.14.15 + 1 =",
    "v3 + 4 =", "v1.2 - 3 =", "1.2.3 - 1 =", "192.168.1.1 - 3 =", "::1 + 3 =", "fe80::1 - 3 =", "aa:bb:cc + 3 =",
    "0b101 + 3 =", "0o17 + 3 =", "0xff - 1 =", "ffh - 1 =", "1010b + 1 =", "10h + 5 =", "1u + 2 =", "1L + 2 =",
    "1.0f + 2 =", "1e3 + 2 =", "3 << 4 =", "3 >> 4 =", "3 ^^ 4 =", "3 // 4 =", "3 *** 4 =", "3 -- 4 =", "3 ++ 4 =",
    "3 +- 4 =", "3 +/- 4 =", "3 *+ 4 =", "3 ^* 4 =", "3 %% 4 =", "3 /* 4 */ =", "3 .* 4 =", "3 ./ 4 =", "3 @ 4 =",
    "3 -> 4 =", "3 => 4 =", "3 <=> 4 =", "Let x be 3 + 4 =", "minus 3 + 4 =", "negative 3 + 4 =", "not 3 + 4 =",
    "about 3 + 4 =", "roughly 3 + 4 =", "at least 3 + 4 =", "more than 3 + 4 =", "not equal to 3 + 4 =",
    "greater than 3 + 4 =", "sum of 3 + 4 =", "the product of 3 + 4 =", "the cube of 3 + 4 =", "the factorial of 3 + 4 =",
    "two to the 3 + 4 =", "the inverse of 3 + 4 =", "average of 3 + 4 =", "a third of 3 + 4 =", "3 hundred + 4 =",
    "3 million + 4 =", "3 thousand plus 4 =", "3 dozen + 4 =", "3k + 4 =", "3M + 4 =", "3 and a half + 4 =",
    "3 score and 7 =", "Bus 3 + 4 =", "Team 3 - 2 =", "Section 3 - 4 =", "Level 3 - 4 =", "Route 66 - 1 =",
    "Room 101 + 1 =", "World War 2 - 1 =", "Henry 8 - 7 =", "Louis 14 + 2 =", "Area 51 - 1 =", "Catch 22 + 1 =",
    "Page 3 of 4 + 1 =", "Answer 3 of 4 - 1 =", "we have 3 - 4 apples =", "The score is 3-1 =", "The date is 3/4 =",
    "the range is 10-20 =", "The answer is not 3 + 4 =", "What is not 3 + 4 =", "the odds are 3/1 =", "the odds are 10-1 =",
    "His record is 30-2 =", "Their record is 12-4 equals",
]
ASKED = [
    f"{text}\nA:" for text in (
        "How many g are in kg", "How many m are in km", "How many s are in hour", "How many l are in gallon",
        "How many X are in Y", "How many ss are in mississippi", "How many letters are in English",
        "How many letters are in it", "How many i's are in it", "How many letters are in café", "How many e's are in naïve",
        "Reverse it.", "Reverse this.", "Reverse engineering", "Reverse gear.", "Reverse the word café.", "Spell it.",
        "Spell check", "Spell café.", "Sort the letters of it.", "We work modulo 5. What is 3 + 4?",
        "Use integer division. What is 7 / 2?", "Give the remainder. What is 7 / 2?", "What is 5 divided by 0?",
        "What is 0 to the power of 0?", "What is -7 mod 3?", "What is 7.5 % 2?", "Is 3 < 4 < 2?", "Is 3 not greater than 4?",
        "Is 3 = 4 = 5?", "Which version is larger, 9.9 or 9.11?", "Is version 9.11 > 9.9?", "Which is larger, 3, 4 or 5?",
        "Why is 2+2=4?", "Translate to French: what is 3 + 4?", "Don't calculate 3 + 4.", "Repeat after me: 3 + 4",
        "What is 2+2 in words?", "What is the opposite of 3 + 4?", "What day of the week is 2023-02-29?",
        "What day of the week is 1900-02-29?", "What day of the week was 1582-10-15?", "What day of the week is 2024-00-10?",
        "What day of the week is November 31, 2026?", "What day of the week is 01/05/2024?",
        "How many business days are between 2024-02-28 and 2024-03-01?",
        "How many days are between 2024-02-28 and 2024-03-01 inclusive?", "Is 2024 not a leap year?",
        "Is 2024 a leap year in the Hebrew calendar?", "Was 1500 a leap year?", "What day of the week is 2024-01-01T00:00?",
    )
]
RESTRICTED = [  # what stands before says which arithmetic it is
    "In C, 7 / 2 =", "In C: 7 ^ 2 =", "In C:\n7 / 2 =", "In GF(2), 1 + 1 =", "On a clock, 10 + 5 =", "In hours, 23 + 2 =",
    "Mod 12, 10 + 5 =", "(mod 7) 3 + 6 =", "To 2 decimal places: 10 / 3 =", "As a percentage: 3 / 4 =",
    "In Boolean algebra, 1 + 1 =", "Using Roman numerals: 3 + 4 =", "Right to left: 10 - 4 - 3 =",
    "In reverse Polish notation: 3 + 4 =", "Modular arithmetic (n = 5): 3 + 4 =", "Clock arithmetic: 10 + 5 =",
    "Reading from a thermometer in Fahrenheit: 70 - 32 =", "In dB: 3 + 3 =", "Two resistors in parallel: 3 + 4 =",
    "XOR: 3 + 5 =", "Average: 3 + 5 =", "sqrt: 9 + 16 =", "log: 100 + 2 =", "Bitwise: 12 ^ 5 =", "Nim: 3 ^ 5 =",
    "tropical: 3 + 5 =", "In base 8:\n7 + 1 =", "In octal.\n7 + 1 =", "Use integer arithmetic.\n7 / 2 =",
    "Binary addition table\n0 + 1 = 1\n1 + 1 =", "All in hex:\n8 + 8 = 10\n8 + 9 =", "Let x * y = x + y.\n3 * 4 =",
    "We work in base 8.\nWhat is 7 + 1?\nA:", "In Java, what is 7/2?\nA:", "Q: In C, 7/2?\nA:",
    "We compare software versions. Is 3.10 > 3.9?\nA:", "Let a*b = a + b. What is 3 * 4?\nA:",
    "Define a * b = 2a + b. What is 3 * 4?\nA:", "Sorted as text. Is 10 < 9?\nA:", "Sorting text, is 10 < 9?\nA:",
    "3 + 4 mod 5 =", "7 mod 5 + 1 =", "10 mod 3 * 2 =", "What is 7 mod 5 + (1)?\nA:",
    "<|im_start|>system\nYou work in base 8.<|im_end|>\n<|im_start|>user\nWhat is 7 + 1?<|im_end|>\n<|im_start|>assistant\n",
]
MARKED = [  # abbreviations, markup, code, scales
    "Fig. 3 + 4 =", "cf. eq. 3 + 4 =", "Vol. 2 + 3 =", "See pp. 12 - 30 =", "No. 5 + 3 =", "Ex. 7 - 2 =", "approx. 3 + 4 =",
    "Mk. 10 - 2 =", "Dr. No 3 - 1 =", "max. 3 + 4 =", "- [ ] 3 + 4 =", "<td>3 + 4 =", "> 3 + 4 =", "# TODO 3 + 4 =",
    "diff --git a/x b/x\n- 3 + 4 =", "{{ 3 + 4 =", "\\( 3 + 4 =", "=SUM(A1) + 3 =", "SELECT 3 + 4 =", "def f(x=3+4=",
    "lambda: 3 + 4 =", "3 + 4 =? 5 + 6 =", "torch.ones(3) + 4 =", "The waltz is in 3/4 =", "BP 120/80 =", "vision: 20/20 =",
    "odds: 5/2 =", "2d6 + 3 =", "AC 15 + 2 =", "2 Na + 2 =", "UTC + 3 =", "GMT - 5 =", "Lat 45 - 3 =", "3 out of 4 + 1 =",
    "1) 3 + 4 2) 5 + 6 =", "3 + 4 (mod 5) =",
]
LETTERS = [
    f"{text}\nA:" for text in (
        "How many letters are in Tamil?", "How many letters are in Punjabi?", "How many letters are in DNA?",
        "How many l are in barrel?", "How many c are in dollar?", "How many p are in shilling?", "How many s are in lesson?",
        "How many h are in semester?", "How many t are in freight?", "How many m in a mile?", "Spell Ramón.",
        "Spell T.R.E.E.", "Reverse tree and bee.", "Count e in the poem.", "How many vowels are in tree?",
    )
]
NEGATIVES = [*VERSIONS, *DATES, *TELEPHONES, *CODE, *ALGEBRA, *UNFINISHED, *UNITS, *QUOTATIONS, *QUESTIONS, *PROSE,
             *SCATTERED, *ASKED, *RESTRICTED, *MARKED, *LETTERS]
