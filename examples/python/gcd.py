"""The greatest common divisor: punchcard run examples/python/gcd.py --call gcd 1071 462"""

import punchcard as pc


@pc.program
def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


if __name__ == "__main__":
    print(gcd(1071, 462))
    print(gcd.run(1071, 462))
