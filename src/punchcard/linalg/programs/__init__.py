"""Numerical linear algebra as FLEQ programs: the two of the paper's section 8, corrected, and those it only names.

Newton's iterations for the inverse and for least squares are functions in Python: that is shorter, and takes fewer loops,
or for a small tall matrix one more. The others are written with the `Builder`, for in Python they would take more. All use
functions of a standard machine alone, so that one machine runs all; there a scalar times a vector is a transpose and a
product. Lines of source, and loops at d = 4, by hand and in Python:

    inverse                          13 and  5 lines     87 to 92 and 80 to 85 loops
    equations by Newton's iteration  16 and  6           88 to 93 and 81 to 86
    least squares, 4 x 2             16 and  6           50 to 76 and 51 to 77
    power iteration, 50 rounds       28 and  9                460 and 480
    QR of 5 x 3, 9 steps a column    51 and 16                233 and 233
    Arnoldi, dimension 3, 9 steps    15 and 14                232 and 234
    Gauss-Seidel, 20 sweeps          25 and 12                318 and 710

Three steps of a normalisation share a count of their loop, and a sweep of Gauss-Seidel is written out. QR alone would be
as short in Python, but it shares its Gram-Schmidt with Arnoldi's iteration, which takes two loops more there: a vector
that a loop changes is stored both ways round, and is transposed before the loop, too.
"""
