# Everything runs in two virtual environments, which this file creates with Python's own venv and pip, and with uv where
# pip can install it:
#   .venv         the newest pyspark, the package itself (editable), and the tools of the checks
#   .venv-oracle  pyspark 4.1, for which Iceberg's own Java runtime exists: the oracle of tests/interop
# `make nightly` adds:
#   .venv-oldest  the lowest versions that pyproject.toml allows, with Python 3.10
#   .releases     the jars of every release of Spark, and environments of older releases
# jobs/find_java.py finds Java 17 or newer, or installs one from PyPI.

SHELL := bash
comma := ,
NEWEST := .venv/bin/python
ORACLE := .venv-oracle/bin/python
OLDEST := .venv-oldest/bin/python
RESULTS := .test-results
JAVA_SOURCES := $(shell find iceberg_pyspark/spark/bridge/java -name '*.java')
NO_JVM := tests/unit tests/spec tests/catalogs tests/stores tests/faults tests/fuzz
# `make nightly` selects all tests.
SELECTED = -m 'not nightly'
PYTEST = -m pytest -q $(SELECTED) --junitxml=$(RESULTS)/$@.xml
# --use-pep517: the default of newer versions of pip; older ones warn without it.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --use-pep517
# $(call install,PYTHON,WHAT): uv takes a third of the time of pip. pip serves where uv cannot be had, or does not reach
# the index that pip is configured for. The wheel that uv builds of pyspark's source, which has no wheel, is not compressed:
# an environment is made in half the time.
UV_INSTALL := -m uv pip install --quiet --config-settings-package pyspark:--build-option=--compression=stored
install = { $(1) $(PIP_INSTALL) uv && $(1) $(UV_INSTALL) --python $(1) $(2); } 2>/dev/null || \
	$(1) $(PIP_INSTALL) $(2)

# The first Python 3.10 or newer of these; `make PYTHON=... env` overrides.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { echo $$python; break; }; done)

OLDEST_PYTHON ?= python3.10

# With this variable set, each of the many Python processes of a test run would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env check test nightly demo docs bench generate releases wheel clean lint tests-fast tests-spark tests-interop tests-older tests-fuzz

help:
	@echo 'make demo      a tour on TPC-H tables: write, read, skip files, travel in time, stream, merge, delete'
	@echo '               (CATALOG=rest: on an Iceberg REST catalog and S3)'
	@echo 'make test      what CI runs: lint, the tests that are not marked nightly, docs'
	@echo 'make check     the inner loop: lint, and the tests of single modules'
	@echo 'make nightly   all tests, with ten times the work, on both pyspark and the oldest dependencies (some hours)'
	@echo 'make bench     runs the benchmarks and writes their results (ARGS="planning native": only these sections)'
	@echo 'make generate  writes what is made from the code: Java classes of bridge/protocol/, docs/reference, figures of README.md'
	@echo 'make docs      builds the documentation in build/site; warnings are errors'
	@echo 'make releases  runs first steps on every release of Spark, and writes docs/releases.md'
	@echo 'make wheel     the wheel in dist/, with the Java classes compiled for each release of Spark'
	@echo 'make env       creates .venv and .venv-oracle'
	@echo 'make clean     removes the files of tests and demo; `git clean -dfX` also the environments and downloads'

# --- environments ----------------------------------------------------------------------------------------------------

env: .venv/.stamp-dev .venv-oracle/.stamp-dev

# The demo needs neither test tools nor linters.
.venv/.stamp-demo: pyproject.toml | .venv/.stamp-made
	@echo 'installing the package, the newest pyspark and tpchgen-cli into .venv (some minutes the first time)'
	@$(call install,$(NEWEST),--editable '.[spark$(comma)demo]')
	@touch $@

.venv/.stamp-dev: pyproject.toml | .venv/.stamp-made
	@echo 'installing the package, the newest pyspark and the test tools into .venv (some minutes the first time)'
	@$(call install,$(NEWEST),--editable '.[dev]')
	@touch $@ .venv/.stamp-demo

.venv-oracle/.stamp-dev: pyproject.toml | .venv-oracle/.stamp-made
	@echo 'installing the package, pyspark 4.1 and the test tools into .venv-oracle (some minutes the first time)'
	@$(call install,$(ORACLE),--editable '.[connect$(comma)test]' 'pyspark==4.1.*')
	@touch $@

# Every `name>=version` among the dependencies becomes `name==version`.
.venv-oldest/.stamp-dev: pyproject.toml
	@$(OLDEST_PYTHON) -m venv .venv-oldest
	@sed -n '/^dependencies/,/^]/s/^ *"\([a-z0-9-]*\)[^>]*>=\([0-9.]*\)".*/\1==\2/p' pyproject.toml > .venv-oldest/lowest.txt
	@$(call install,$(OLDEST),--editable '.[connect$(comma)test]' 'pyspark==4.0.*' --constraint .venv-oldest/lowest.txt)
	@touch $@

.venv/.stamp-made .venv-oracle/.stamp-made:
	@[ -n '$(PYTHON)' ] || { echo 'Python 3.10 or newer with its venv module is needed: install one, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)'; exit 1; }
	@$(PYTHON) -m venv $(@D)
	@touch $@

# --- commands ----------------------------------------------------------------------------------------------------

# Without PYSPARK_PYTHON Spark runs its Python workers with the `python3` of PATH, which has no iceberg-pyspark.
demo: .venv/.stamp-$(if $(filter rest,$(CATALOG)),dev,demo)
	@JAVA_HOME=$$($(NEWEST) jobs/find_java.py) && export JAVA_HOME && \
		PYSPARK_PYTHON=$(CURDIR)/$(NEWEST) $(NEWEST) jobs/demo.py $(if $(CATALOG),--catalog $(CATALOG)) $(ARGS)

# Two runs at a time, the long ones first. The last line adds up the tests of all.
test:
	@rm -rf $(RESULTS)
	@$(MAKE) --no-print-directory --jobs=2 env
	@$(MAKE) --no-print-directory --jobs=2 tests-spark tests-fast tests-interop lint docs
	@$(NEWEST) -m tests.support.total $(RESULTS)

check: lint
	$(NEWEST) $(PYTEST) tests/unit tests/spec $(ARGS)

# mypy takes over a minute if its cache is empty.
lint: .venv/.stamp-dev
	$(NEWEST) -m ruff check .
	$(NEWEST) -m ruff format --check .
	.venv/bin/lint-imports --no-logo
	.venv/bin/clang-format --dry-run -Werror $(JAVA_SOURCES)
	$(NEWEST) -m mypy

tests-fast: .venv/.stamp-dev
	$(NEWEST) $(PYTEST) $(NO_JVM) $(ARGS)

tests-spark: .venv/.stamp-dev
	$(NEWEST) $(PYTEST) tests/spark $(ARGS)

tests-interop: .venv-oracle/.stamp-dev
	$(ORACLE) $(PYTEST) tests/interop $(ARGS)

tests-fuzz: .venv/.stamp-dev
	$(NEWEST) -m tests.fuzz $(ARGS)

# On Spark 4.1, on the first steps of every older release, and on the lowest versions of the dependencies.
tests-older: .venv-oracle/.stamp-dev .venv-oldest/.stamp-dev
	$(ORACLE) $(PYTEST) tests/spark tests/releases $(ARGS)
	$(OLDEST) -m pytest -q $(SELECTED) $(NO_JVM) $(ARGS)

# Run it before a release. The work is the factor of tests/amounts.py.
nightly: export ICEBERG_WORK ?= 10
nightly: env
	@rm -rf $(RESULTS)
	-@$(NEWEST) -m tests.services
	@$(MAKE) --no-print-directory --keep-going SELECTED= tests-fast tests-spark tests-interop tests-older tests-fuzz
	@$(NEWEST) -m tests.support.total $(RESULTS)

releases: env
	$(ORACLE) -m tests.releases $(ARGS)

wheel: env
	$(ORACLE) -m tests.releases.wheel dist

generate: .venv/.stamp-dev
	PATH=$(CURDIR)/.venv/bin:$$PATH $(NEWEST) -m tests.generate.java_protocol
	$(NEWEST) -m tests.generate.reference_pages

# The variable silences a notice of the theme about a future release of mkdocs.
docs: .venv/.stamp-dev
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo 'build/site/index.html'

bench: env
	$(ORACLE) -m tests.bench $(ARGS)

clean:
	rm -rf $(RESULTS) .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist \
		spark-warehouse metastore_db artifacts derby.log
	find iceberg_pyspark pyspark_iceberg_py jobs tests -name __pycache__ -prune -exec rm -rf {} +
