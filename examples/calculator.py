"""The paper's calculator: its sample expression on all designs, and what its errors are.

    python examples/calculator.py
"""

from __future__ import annotations

import punchcard


def main() -> None:
    for design in ("compact", "three-layer", "paper"):
        result = punchcard.calc("sqrt(1/((a+b-c)*d))/100", a=3, b=2, c=1, d=0.5, design=design)
        print(f"{design}: {result.value!r}, error {result.error:.1e}, bound {result.bound:.1e}, {result.steps} instructions")
    print(result.text)
    loan = punchcard.calc("capital * (1 + rate%)^10", capital=1200, rate="3.5")
    print(f"1200 at 3.5 % after ten years: {loan.value:.10f}, exactly {loan.exact:.10f}, within {loan.bound:.1e}")


if __name__ == "__main__":
    main()
