"""The paper's lemmas, each a formula over named rows that compiles to explicit weights."""
