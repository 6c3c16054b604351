"""Computers inside language models: stock checkpoints whose prompt is a program."""
