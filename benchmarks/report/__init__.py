"""The report: every figure that the project states about itself, measured again. `make report` writes docs/report.md.

A section is a file here with two functions: `measured` makes the figures, as plain data, and `shown` makes text and pictures
of them. The figures are kept in docs/report/, so a page can be written again without measuring.
"""
