"""Function blocks: what a machine can call, as formulas and as sums of sigmoids."""
