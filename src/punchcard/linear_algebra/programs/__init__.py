"""Numerical linear algebra as FLEQ programs: the two of the paper's section 8, corrected, and those it only names.

Newton's iterations for the inverse and for least squares are functions in Python: that is shorter, and takes fewer loops.
The others are written with the `Builder`, for in Python they would take more of them. All use functions of a standard
machine alone, so that one machine runs all; there a scalar times a vector is a transpose and a product. Lines of source, and
loops at d = 4, by hand and in Python:

    inverse, 17 rounds              13 and  5 lines      104 and  89 loops
    least squares, 14 rounds        16 and  6             88 and  74
    power iteration, 50 rounds      28 and  9            460 and 480
    QR, 9 steps a column            51 and 12            233 and 281
    Arnoldi, dimension 3, 9 steps   15 and  8            232 and 279
    Gauss-Seidel, 20 sweeps         25 and 12            318 and 710

By hand, three steps of a normalisation share a count of their loop, and a sweep of Gauss-Seidel is written out.
"""
