"""The instruction sets, declared once, and what a Program is. No tensors, rows or columns here."""
