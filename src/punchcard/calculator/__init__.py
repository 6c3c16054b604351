"""The calculator: an expression, computed by a looped transformer that has the paper's six functions."""

from punchcard.calculator.calculation import Calculation, calc, compile_calculation, program_text

__all__ = ["Calculation", "calc", "compile_calculation", "program_text"]
