"""Ordinary writing with numbers and signs in it, written before any rule of the skills was looked at for it: no opinion.

A text that somebody at a calculator would type as a sum is answered. A span, a score, a name with numbers, an unfinished sum
or another arithmetic is not; in doubt there is no opinion.
"""

from __future__ import annotations

VERSIONS = [
    "numpy 1.26-1.24 =", "Ubuntu 22.04 =", "Ubuntu 22.04 - 20.04 =", "CUDA 12.1/11.8 =", "GCC 13.2 + 1 =",
    "Node 18-20 equals", "iOS 17 - 16 =", "semver 2.0.0-1 =", "build 19045-3 =", "kernel 6.1-14 =",
    "v2.1-3 =", "Java 8/11 =",
    "Firefox 115-128 =", "openssl-1.1.1-3 =", "torch>=2.0-1 =", "pip install foo==1.2 - 1 =", "release-3.4-2 =",
    "HTTP/1.1 - 1 =", "TLS 1.2/1.3 =", "USB 3.0/3.1 =", "3.10-3.12 =", "1.0-2.0 equals", "2.4-rc1 =", "1.2.3-4.5.6 =",
]
DATES = [
    "2024/11/18 =", "18-11-2024 equals", "Nov 18-20 =", "18 Nov 2026 - 3 =", "3/4/2025 =", "12-25 =", "2025-W03-2 =",
    "1999/2000 =", "2023/24 =", "2019-20 =", "1998-99 =", "1861-65 =", "1914-1918 =", "1939-1945 =", "1939-1945=",
    "2020-2024 equals", "1756-1791 is equal to", "(1756-1791) =", "(1756-1791)=", "born 1900, died 1980 - 1 =",
    "Since 1990-1995 =", "between 1990-1995 =", "in 1990-1995 =", "AD 70-73 =", "44-43 BC =", "the years 1861-1865 =",
    "2024-11 =", "2026-11-18 - 3 =", "Q3 2024 - 1 =", "the season 2010-11 =", "4/7/1776 =", "7-4-1776 =",
    "11/9 was 35 - 1 =",
]
TELEPHONES = [
    "+44 20 7946 0958 =", "tel. 020 7946 0958 =", "call 0800-123-456 =", "(212) 555-0147 equals", "0171-4567 =",
    "867-5309 =", "1-800-273-8255 =", "06-12-34-56-78 =", "+49 89 1234-567 =", "555 0199 - 12 =", "fax: 555-0100 =",
    "0 800 123 456 =", "ext. 12-30 =", "Phone: 12-34-56 =", "020-7946-0958 =", "1 (800) 555-0199 =", "(030) 12-34 =",
]
SPANS = [
    "pages 45-67 =", "45-67 =", "10-20 =", "ages 5-12 =", "grades 9-12 =", "5-10 equals", "rows 1-100 =", "ch. 3-5 =",
    "Acts 1-8 =", "weeks 1-4 =", "9-17 =", "12-15 is equal to", "items 2-6 equals", "1-10=", "0-100 =", "18-65 =",
    "1.5-2.5 =", "so 10-20 =", "the answer is 10-20 =", "a) 3-7 =", "2-3 =", "Ages: 5-12 =", "1-2 + 3 =", "16-24-32 =",
    "0.5-1 =", "20-30 + 5 =",
]
SCORES = [
    "Spain 2-1 England =", "Arsenal 3-0 =", "beat them 4-2 =", "lost 0-3 =", "won 6-4, 7-5 =", "6-4 7-5 6-3 =",
    "a 3-2 win =", "Game 7: 102-98 =", "Half time 1-0 =", "the score was 14-7 =", "Set 2: 6-3 =", "Final: 28-24 =",
    "score 21 - 14 =", "FT 2-2 =", "0-1 =", "It is 3-1 =", "so it is 4-2 =", "Result: 3-1 =", "now 2-1 =", "4-4-2 =",
    "4-3-3 =", "Their record is 12-4 =", "we are 3-1 =", "They have 3-1 =", "And then 15-0 =", "30-15 to Federer =",
]
CHESS = [
    "1. d4 d5 2. c4 =", "Nf3 =", "Carlsen - Caruana 1-0 =", "0-0-0 =", "0-0 =", "1. e4 0-1 =", "1/2-1/2 =", "e7-e8 =",
    "Kg1-f1 +2 =", "12. Rxe4 + 3 =", "d4 + 1 =", "+0.35 e4 - 1 =",
]
ADDRESSES = [
    "221-223 Baker Street =", "12/3 Elm St, flat 4 - 2 =", "Flat 3/2 =", "10115 Berlin, 3-5 =", "Apt 4-12 =",
    "P.O. Box 12-30 =", "Suite 100-200 =", "Building 5/7 =", "NW1 6XE - 2 =", "Zip 90210-1234 =", "90210-1234 =",
    "Lot 4 - 2 =", "Floor 3 - 1 =", "House 7/9 =", "5th Avenue 3 - 1 =", "Highway 61 - 1 =", "Gate 12-14 =", "Pier 39 - 1 =",
]
NUMBERS = [
    "ISBN 0-306-40615-2 =", "978-0-306-40615-7 =", "ISSN 0378-5955 =", "978-3-16-148410-0 equals", "EAN 4006381333931 - 1 =",
    "doi 10.1000/182 =", "doi:10.1000/182 =", "arXiv:2301.00001 - 2 =", "RFC 2119-1 =", "ISO 8601-1 =",
    "ISO 9001/14001 =", "DIN 476-2 =", "IEEE 802.11-2 =", "SKU 1234-56 =", "Part 12-345 =", "invoice 2024-17 =",
    "case 12-307 =", "0-306-40615-2 =", "99-1234567 =", "1-56619-909-3 =", "Order #4711-3 =", "Flight 370 - 1 =",
    "Model 3 - 1 =", "CAS 50-00-0 =", "50-00-0 =", "7732-18-5 =", "58-08-2 =", "Serial: 77-12-9 =",
]
TABLES = [
    "| 3 | 4 + 5 =", "| 1 + 2 =", "a\tb\t3 + 4 =", "Name,Qty\nA,3-4 =", "1\t2 - 3 =", "x,y\n1,2-3 =", "row 1: 3 | 4 - 2 =",
    "3, 4, 5 - 2 =", "id;12;3-4 =", "Jan 10-20 =", "Total | 12 - 3 =", "+---+\n| 3-4 =", "A;B;3 + 4 =", "Mon\t9-5 =",
    "Size\t10-12 =", "3\t4 + 5 =", "2020\t3 + 4 =", "1 | 2 | 3 =",
]
PRICES = [
    "$5-$10 =", "$5-10 =", "€20-30 =", "EUR 20-30 =", "price 9.99-19.99 =", "9.99-19.99 =", "£5/2 =",
    "5$ + 3 =", "20% off 50 - 10 =", "from 10-15 =", "US$ 3 + 4 =", "A$5 + 3 =", "CA$ 20 - 5 =", "₹300 + 40 =", "₿ 1 + 2 =",
    "5¢ + 3 =", "3 @ $4 =", "10k-20k =", "$1m - 3 =", "5,- + 3 =", "5.-- + 3 =", "50p + 20p =",
    "kr 50 + 20 =", "50 kr + 20 =",
]
CHEMISTRY = [
    "H2 + O2 =", "2 H2 + O2 =", "Na + Cl =", "C + O2 =", "CO2 + H2O =", "NaCl + 2 =", "Fe2O3 + 3 =", "2Na + Cl2 =",
    "N2 + 3 =", "C2H5OH + 3 =", "CH3-CH3 =", "U-235 + 1 =", "C-14 + 2 =", "He-4 + 1 =", "SO4 2- + 2 =", "Ca2+ + 2 =",
    "Na+ + 1 =", "e- + 1 =", "pKa 4.7 - 2 =", "Fe(2) + 3 =", "Cu 2+ + 2 =", "(NH4)2 + 3 =", "OH- + 2 =", "C=C + 1 =",
]
MARKDOWN = [
    "* 3 + 4 =", "> 3 + 4 =", "**3 + 4 =", "_3 + 4 =", "~~3 + 4 =", "[3-4](#x) =", "![2-3 =",
    "- [ ] 3 + 4 =", "1. 2-5 =", "<b>3 + 4 =", "&lt;3 + 4 =", "\\* 3 + 4 =", "^3 + 4 =", "[^1]: 3 + 4 =",
    "| --- | 3 + 4 =", "__3 + 4 =", "+ 3 + 4 =", "--- 3 + 4 =", "=== 3 + 4 =", "***\n* 3 + 4 =",
]
QUOTATIONS = [
    "She said '3 + 4 =", "He wrote: ‘3 + 4 =", "‹3 + 4 =", "「3 + 4 =", "『3 + 4 =", "《3 + 4 =",
    "“It says 3 + 4 =", "'3 + 4 =",
    "she asked, “what is 3 + 4 =", "The sign read “OPEN 9-5 =", "Il a dit « 3 + 4 =", "„Rechne 3 + 4 =", "»3 + 4 =",
    "» 3 + 4 =", "Er fragte: »also 3 + 4 =", "Sie rief: „so 3 + 4 =", 'Il cria: "so 3 + 4 =', "He asked: 'what is 3 + 4 =",
    "‚3 + 4 =", "„Was ist «3 + 4 =", "‘so 3 + 4 =", "「so 3 + 4 =", "'so 3 + 4 =", '<q>so 3 + 4 =', "''3 + 4 =", "``3 + 4 =",
]
LANGUAGES = [
    "Rechne 3 + 4 =", "Calcule 3 + 4 =", "Calcola 3 + 4 =", "Bereken 3 + 4 =", "Oblicz 3 + 4 =", "Вычисли 3 + 4 =",
    "计算 3 + 4 =", "计算：3 + 4 =", "答えは 3 + 4 =", "3 加 4 =", "La suma 3 + 4 =", "3 más 4 =", "3 + 4 est égal à",
    "3 + 4 ist gleich", "drei + vier =", "fünf 3 + 1 =", "Aufgabe 3 + 4 =", "Nr. 3 - 5 =", "S. 12-30 =", "Art. 5-7 =",
    "n° 3 - 4 =", "kl. 8-16 =", "Uhr 9-17 =", "Jahr 2020-2024 =", "år 1990-1995 =", "годы 1941-1945 =", "1941-1945 гг. =",
    "第3-5 =", "٣+٤=", "१ + २ =", "三加四 =", "3 et 4 + 5 =", "3 y 4 + 5 =", "3 e 4 + 5 =", "Nº 3 + 4 =",
]
UNFINISHED = [
    "12 + =", "12 + 30 - =", "(12 + 30 =", "12 + (30 =", "12 * (3 + 4 =", "= 12 + 30", "12 + 30", "12 +30 4 =",
    "12 + 30 = 5", "12 plus", "12 plus =", "plus 30 equals", "3 + ? =", "? + 3 =", "__ + 3 =", "_ + 3 =", "... + 3 =",
    "3 + ... =", "1 + 2 + ... + 10 =", "1 + 2 + … + 10 =", "1 + ... + 9 + 10 =", "□ + 3 =", "x + 30 =", "[] + 3 =",
    "( ) + 3 =", "3 + _ =", "blank + 3 =", "2 + 2 = 5", "12 + 30 = 42 = 40 +", "3 + 4 = 7 - 2", "3 +\n4 + =", "1 + 2,",
    "(3 + 4) * =", "3 * (4 + ) =", "1 + 2 = 3 + 4 +", "? * 3 + 4 =", "... 3 + 4 =", "…3 + 4 =", "5 - ___ + 2 =",
]
LETTERS = [
    "2x - 5 =", "7n + 1 =", "a + 3 =", "3 + b =", "4y/2 =", "x/2 + 3 =", "k * 2 + 1 =", "2πr + 1 =",
    "πr^2 =", "f'(3) + 4 =", "f(2) + 3 =", "g(3 + 4) =", "x = 3y + 2 =", "n + 1 =", "if x = 5 then x + 3 =",
    "where x is 3 + 4x =", "Let n = 3. n + 4 =", "Let x=2. Then 3 + x =", "mod 7, 3 + 5 =", "3 + 5 ≡", "3 + 5 (mod 7) =",
    "(mod 7) 3 + 5 =", "in Z_7, 3 + 5 =", "in base 5: 3 + 4 =", "vector (1, 2) * 3 =", "det 3 - 4 =", "lim 3 + 4 =",
    "max 3, 4 + 5 =", "min(3, 4) + 5 =", "avg of 3 and 4 + 5 =", "GCD of 12 and 18 - 6 =", "|−3| + 4 =",
    "⌊7/2⌋ + 1 =", "3² + 4² =", "a₁ + 3 =", "x₁ + 3 =", "Σ 3 + 4 =", "d/dx 3 + 4 =", "dx 3 + 4 =", "i^2 + 3 =",
    "e^2 + 1 =", "10^-3 m + 2 =", "tan 45 + 1 =", "cos(0) + 1 =", "ln(1) + 3 =", "arcsin 1 + 1 =", "3P2 + 1 =", "5C2 + 1 =",
    "n choose 2 =", "P(3) + 4 =", "E[3] + 4 =", "Var 3 + 4 =", "A ∪ 3 + 4 =", "3 ∈ 4 + 5 =", "3 ∧ 4 + 5 =",
    "¬3 + 4 =", "3 xor 4 + 1 =", "3 and 4 + 1 =", "3 or 4 + 1 =", "3 to 4 + 1 =", "half 3 + 5 =", "a quarter of 8 + 4 =",
    "0.(3) + 1 =", "0.333... + 1 =", "3.̅ + 1 =", "1 1/2 + 3 =", "3^n + 2 =", "2x3 + y =", "ab - 3 =", "x: 3 + 4x =",
    "modulo 7: 3 + 5 =", "(mod 5): 3 + 4 =", "Over F_2: 1 + 1 =", "binary: 10 + 11 =", "1 + 1 (binary) =", "hex 10 + 5 =",
]
TIMES = [
    "8:30-9:45 =", "at 8:30 - 2 =", "12:00 + 30 =", "9am-5pm =", "9 am - 5 =", "from 9 to 17 - 1 =", "08:15 + 45 =",
    "8.30-9.45 =", "8h-12h =", "10-11:30 =", "Mon 9-17 =", "7 o'clock + 3 =", "0:03:12 + 5 =", "T+10 =", "T-3 =", "UTC+2 =",
    "UTC-5 + 1 =", "GMT+1 - 2 =", "00:00 - 12 =", "5pm - 3 =", "Hours: 9-5 =", "Office hours are 10-4 =",
]
RATIOS = [
    "3:4 + 1 =", "1:100 - 2 =", "a:b = 3:4 =", "16:9 - 1 =", "2:1 =", "ratio 3 : 4 =", "3 : 4 + 1 =", "mix 1:3 + 2 =",
    "the ratio is 3/4 =", "the scale is 1/50 =", "odds of 5/2 =", "Scale: 1/50 =", "Odds: 7/2 =", "Rating: 4/5 =",
    "Grade: 17/20 =", "My grade is 17/20 =", "Time signature: 6/8 =", "It is 24/7 =", "Blood pressure: 120/80 =",
    "Vision: 20/20 =", "f/2.8 - 1 =", "BP is 120/80 =", "a 60/40 split - 1 =", "Page 3/10 =",
]
INTERNET = [
    "10.0.0.0/8 =", "192.168.1.0/24 equals", "127.0.0.1:80 - 1 =", "ping 8.8.8.8 =", "255.255.255.0 - 1 =", "1.1.1.1/32 =",
    "mask /24 - 8 =", "port 8000-8080 =", "8000-8080 =", "AS 64512-65534 =", "2001:db8::1 - 1 =", "00-14-22-01-23-45 =",
    "10-20-30-40-50-60 =", "a@b.c 3 + 4 =", "user+3-1 =", "http://a.b/3-1=", "?a=3&b=4-1=", "www.a.b/c/4-2=", "#a=3+4=",
    "--width=100-20 =", "--n=3-4=", "-O2 + 1 =", "-n 3 + 4 =", "/p:3+4=", "a.b/c?d=12*30=", "key=3-1=", 
]
BIBLE = [
    "John 3:16-17 =", "Gen. 1:1 - 2 =", "Ps 119:105 + 1 =", "1 Cor 13:4-7 =", "2 Kings 2-3 =", "Matt 5-7 =",
    "Rev. 21:1-4 =", "Luke 2:1-20 equals", "Exodus 20 + 1 =", "Sura 2:255 - 6 =", "Is 53:5-6 =", "Is 40-42 =",
    "1 Samuel 3 - 1 =", "Psalms 23 + 1 =", "Cf. 3:5-2 =",
]
UNITS = [
    "5 cm + 3 =", "3 + 4 cm =", "3 + 4 kg equals", "60 mph - 10 =", "20 °C - 5 =", "98.6°F - 1 =", "3 dozen + 1 =",
    "5 kg 3 + 4 =", "2 hours + 30 =", "4 GB + 2 =", "100 MB/s - 5 =", "3 m/s + 4 =", "1 kWh - 3 =", "12 oz + 4 =",
    "6 ft - 2 =", "10 dB - 3 =", "50 Hz + 10 =", "3 mol + 4 =", "1 AU - 0.5 =", "5' 10 + 2 =", "40° 26 - 3 =",
    "120/80 mmHg =", "6/8 time =", "ISO 100-400 =", "1/250 s =", "size 10-12 =", "a 2x4 + 1 =", "4 x 100 m =", "4x100 + 2 =",
    "3x3x3 =", "3 x 3 x 3 cm =", "cm: 3-5 =", "Dose: 10-20 =", "kg 3 + 4 =", "3 + 4 apples equals", "3' - 4' =", "3″ + 4 =",
]
CODE = [
    "i = i + 1 =", "x += 3 - 4 =", "for (i = 0; i < 10; i++) 3 + 4 =", "print(3 + 4 =", "assert 3 + 4 =", "return 3 + 4 =",
    "== 3 + 4 =", "x[3] + 4 =", "a[1] - 2 =", "$i + 3 =", "%d + 3 =", "%3 + 4 =", "@ 3 + 4 =", "SELECT 3 + 4 =",
    "echo $((3 + 4 =", "expr 3 + 4 =", "grep -n 3 + 4 =", "sleep 3 - 1 =", "seq 1 - 10 =",
    "git log -3 + 4 =", "HEAD~3 + 1 =",
    "std::3 + 4 =", "a->b + 3 =", "a.b - 3 =", "obj.3 + 4 =", "foo-3 + 4 =", "foo_3 + 4 =", "foo/3 + 4 =", "C:\\3 + 4 =",
    "/usr/3 + 4 =", "~/3-4 =", "s/3/4/ =", "1..10 - 3 =", "[1:3] + 4 =", "0777 - 1 =", "1_000 + 1 =", "0x1F - 3 =",
    "1e-5 + 1 =", "3L + 4 =", "'3' + '4' =", '"3" + 4 =', "3 % 'a' =", "3 <> 4 + 1 =", "3 != 4 + 1 =", "3 ?: 4 + 1 =",
    "x ? 3 : 4 + 1 =", "x ?? 3 + 4 =", "case 3: 4 + 5 =", "lambda x: 3 + 4x =", "10 PRINT 3 + 4 =", "(+ 3 4) =", "3 4 + =",
    "=SUM(3-4) =", "A1-3 =", "$A$1 + 3 =", "int x[3 + 4] =", "x <- 3 + 4 =", "x |= 3 + 4 =", "x -= 3 + 4 =", "x *= 3 + 4 =",
    "x /= 3 + 4 =", "x ^= 3 + 4 =", "x %= 3 + 4 =", "x ~= 3 + 4 =", "x ?= 3 + 4 =", "x .= 3 + 4 =", "x ≥ 3 + 4 =",
    "x =< 3 + 4 =", "x =~ 3 + 4 =", "#if 3 + 4 =", "<td>3 + 4 =", "{{ 3 + 4 =", "{% if 3 + 4 =", "\\d+ - 3 =", "3-4\n=",
]
QUESTIONS = [
    f"{text}\nA:" for text in (
        "1939-1945", "10-20", "12-25?", "2019-20", "Chapter 3-5", "What is 3-1 in football?", "Who won 3-1?",
        "What is the score 3-1?", "What is 3 + 4 squared?", "What is 3 + 4 km?", "What is 10% of 50?", "What is 5!?",
        "What is 3 + 4!?", "What is 2 + 2 really?", "What is √9 + 1?", "What is 3:4?", "What is 12:30 - 1?",
        "What is John 3:16?", "What is 192.168.0.1/24?", "What is ISBN 0-306-40615-2?", "What is 0-306-40615-2?",
        "What is 2024-11?", "What is 867-5309?", "What is 90-60-90 in cm?", "What is x in 3 + x = 7?",
        "What is 3 + 4 mod x?",
        "Which Python is newer, 3.11 or 3.9?", "Is 3.11 newer than 3.9?", "Is Python 3.9 > 3.11?",
        "Which is larger, Python 3.9 or 3.11?", "Which is larger, 3.11 or 3.9 in Python?", "Is 5 greater than x?",
        "Is 5 km greater than 3?", "Is 1/2 cup more than 1/4?", "Is 3:30 > 3:15?", "Is 10% > 5%?", "Is 5 > 3 or 2?",
        "Is 2024-11-18 > 2024-10-11?", "Is 555-1234 > 3?", "Is 1939-1945 less than 1914-1918?", "Is 3-5 more than 2-4?",
        "Is 5 more than 3 less than 10?", "Which is larger, 10-20 or 5-8?", "Which is higher, 3 ft or 1 m?",
        "Why is 3 + 4 = 7?", "How is 3 + 4 =", "Where is 3 + 4?", "Who said what is 3 + 4?", "Guess what is 3 + 4 times x?",
        "How many a's are in all?", "How many s are in min?", "How many p are in lbs?", "How many letters are in each?",
        "How many letters are in both?", "How many letters are in Scrabble?", "How many letters are in Polish?",
        "How many e's are in here?", "How many letters are in use?", "How many letters are in total?",
        "How many letters are in mine?", "How many mm are in cm?", "How many i's are in The Great Gatsby?",
        "How many a's did I get?", "How many r's are in your name?", "How many vowels are in banana?",
        "Reverse psychology", "Reverse osmosis?", "Reverse order.", "Reverse both.", "Reverse the charges.", "Spell casting",
        "Spell out", "Spell my name.", "Spell doom for them.", "Sort the letters of each.",
        "Count the days.", "Count me in.",
        "Count the e in each.", "Count a as one.",
        "What day is Friday 13?", "What day is 2026-11-31?", "What day of the week is 2026-011-18?",
        "What day of the week is 11-18-2026?", "What day of the week is 18.11.2026?", "What day of the week is May 26?",
        "What day of the week is 1 May 26?", "What day of the week is 2026-11-18 in Tokyo?",
        "What day of the week was 5 October 1582?", "Is 2024.5 a leap year?", "Is -2024 a leap year?",
        "Is 02024 a leap year?",
        "Is 2024 a leap year or not?", "Was 2024 a leap year in Ethiopia?", "Is 2024 BC a leap year?",
        "How many days are from March to May?", "How many days are between Christmas and New Year?",
        "How many days are between 2024-13-01 and 2024-12-01?", "How many days are in 2024?",
        "How many days are there to 2030?",
        "How many working days are between 2024-01-01 and 2024-02-01?",
        "Explain this SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105",
        "Run this Brainfuck program, not SUBLEQ: 9 -1 3 10 -1 6 0 0 -1 72 105",
        "Run this program without SUBLEQ: 9 -1 3 10 -1 6 0 0 -1 72 105",
        "What does this SUBLEQ program do: 9 -1 3 10 -1 6 0 0 -1 72 105",
        "Run this SUBLEQ program backwards: 9 -1 3 10 -1 6 0 0 -1 72 105",
        "Run this SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105 and so on",
        "Run this SUBLEQ program: 9, -1, 3.5", "Run SUBLEQ: -1 -1 -1",
    )
]
ORDINARY = [*VERSIONS, *DATES, *TELEPHONES, *SPANS, *SCORES, *CHESS, *ADDRESSES, *NUMBERS, *TABLES, *PRICES, *CHEMISTRY,
            *MARKDOWN, *QUOTATIONS, *LANGUAGES, *UNFINISHED, *LETTERS, *TIMES, *RATIOS, *INTERNET, *BIBLE, *UNITS, *CODE,
            *QUESTIONS]
