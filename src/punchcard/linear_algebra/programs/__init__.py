"""Numerical linear algebra as FLEQ programs: the two of the paper's section 8, corrected, and those it only names."""
