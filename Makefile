# make run       sets everything up, links an old Fortran program, integrates a cluster and draws it
# make test      sets everything up and runs the tests; PYTEST_ARGS="-k name" runs some
# make test-quick  those of a minute, for who edits
# make test-all  what make test leaves out: more cases, sanitizers, other processors, MPI, builds
# make lint      checks form and types, and looks for mistakes: what CI checks before the tests
# make format    writes the form that make lint checks
# make docs      builds the documents as a site, in build/site, and the pictures of their gallery
# make coverage  prints which lines of csrc the last make test reached
# make fuzz      runs ten million random call sequences under sanitizers: FUZZ_ARGS="COUNT SEED"
# make release   tries a release out: sdist and wheels in dist/, installed and used; uploads nothing
# make clean     removes what the others have made, but for the environment .venv
# All need Python 3.11 or newer with venv, gcc and make.

PYTHON ?= python3
# Compiled Python is kept: tests start some thousand processes of it.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
# What builds the package; of CMake and Ninja, what the machine has not.
BUILDERS := scikit-build-core cffi $(foreach tool,cmake ninja,$(if $(shell command -v $(tool)),,$(tool)))
SOURCES := pyproject.toml CMakeLists.txt $(wildcard csrc/*/* include/*)
SNAPSHOT := legacy_examples/data/plummer1024.dat
CLUSTER := run uniform --virial-ratio 0 --n 1024 --eps 0.05 --t-end 6 --out out/collapse.h5 --plot out/collapse.png

# Two processes, which take a file of tests at a time: some tests keep all cores busy by themselves.
IN_TWO := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help run test test-quick test-all coverage fuzz release format lint docs clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

run: $(VENV)/installed
	@$(MAKE) --no-print-directory -s -C legacy_examples BUILD=$(CURDIR)/build/legacy \
	    GRAPE6=$(CURDIR)/$(BIN)/grape6
	@program=build/legacy/hermite_f77; \
	[ -x $$program ] || program=build/legacy/hermite; \
	echo "$$program $(SNAPSHOT)"; $$program $(SNAPSHOT)
	@echo "grape6 $(CLUSTER)"; $(BIN)/grape6 $(CLUSTER)

# tests/support/tiers.py says which cases these are. Counts of lines begin anew with all but the rest.
test: TIER := test
test-quick: TIER := quick
test-quick: FOLDERS := tests/api tests/python
test-all: TIER := rest
test test-quick test-all: $(VENV)/tested
	@[ $(TIER) = rest ] || find build -name '*.gcda' -delete
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python -m pytest $(IN_TWO) --tier $(TIER) $(FOLDERS) $(PYTEST_ARGS)

coverage: $(VENV)/tested
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python tests/support/covered.py

fuzz: $(VENV)/tested
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python tests/support/fuzzing.py $(FUZZ_ARGS)

release: $(VENV)/tested
	$(PIP) --quiet --no-build-isolation --editable '.[release]'
	@PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python packaging/release.py

$(VENV)/builders:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --quiet $(BUILDERS)
	@touch $@

# What is compiled stays in build/editable; what the compiler says, in build/install.log.
$(VENV)/installed: $(SOURCES) | $(VENV)/builders
	@mkdir -p build
	@echo "compiling the library: some minutes the first time"
	@$(PIP) --verbose --no-build-isolation --editable . > build/install.log 2>&1 \
	    || { cat build/install.log; exit 1; }
	@touch $@

$(VENV)/tested: $(VENV)/installed
	$(PIP) --quiet --no-build-isolation --editable '.[test]'
	@touch $@

KERNELS := grape6py/cuda/kernels
C_SOURCES := $(wildcard csrc/*/*.[ch] include/*.h legacy_examples/*.[ch] legacy_examples/*.cc \
    tests/c/*.[ch] tests/c/*.cc benchmarks/*.[ch] benchmarks/*.cu \
    $(KERNELS)/*.cu $(KERNELS)/*.cuh $(KERNELS)/*/*.cu $(KERNELS)/*/*.cuh)
# embed.c is compiled with cffi's declarations alone.
TIDIED := $(filter-out %/embed.c,$(wildcard csrc/*/*.c))

format: $(VENV)/tested
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/tested
	@$(BIN)/clang-format --dry-run --Werror $(C_SOURCES)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@echo $(TIDIED) | xargs -P 2 -n 1 $(BIN)/clang-tidy -p build/editable --quiet

GALLERY := $(patsubst %.py,%.png,$(wildcard docs/gallery/*.py))

docs: $(VENV)/documented $(GALLERY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/site/index.html

docs/gallery/%.png: docs/gallery/%.py | $(VENV)/installed
	cd docs/gallery && MPLBACKEND=agg ../../$(BIN)/python $*.py

$(VENV)/documented: $(VENV)/tested
	$(PIP) --quiet --no-build-isolation --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV)/installed build dist out grape6py/lib grape6py/include grape6py/data \
	    grape6py/cuda/kernels/shared docs/gallery/*.png include/g6lib.f90 \
	    grape6py/cuda/code grape6py/_bridge*.so
