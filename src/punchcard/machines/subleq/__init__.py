"""The paper's one-instruction computer: code and data apart."""
