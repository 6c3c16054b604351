"""FLEQ text to programs and back."""
