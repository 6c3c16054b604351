"""The pictures of the README and of these pages, each drawn from a real run: `make pictures`."""
