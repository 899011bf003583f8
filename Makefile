# Everything runs in two virtual environments, which this file creates with Python's own venv and pip, and with uv where
# pip can install it:
#   .venv         the newest pyspark, the package itself (editable), and the tools of the checks
#   .venv-oracle  pyspark 4.1, for which Iceberg's own Java runtime exists: the oracle of tests/interop
#   .releases     the jars of every release of Spark, and environments of older releases
# and, on request only, .venv-oldest: the lowest versions that pyproject.toml allows.
# jobs/find_java.py finds Java 17 or newer, or installs one from PyPI.

SHELL := bash
comma := ,
NEWEST := .venv/bin/python
ORACLE := .venv-oracle/bin/python
OLDEST := .venv-oldest/bin/python
RESULTS := .test-results
JAVA_SOURCES := $(shell find iceberg_pyspark/spark/bridge/java -name '*.java')
NO_SPARK := --ignore=tests/spark --ignore=tests/interop --ignore=tests/bench --ignore=tests/releases
# The tests of tests/spark that also run on 4.1, because they depend on the release of Spark.
OF_RELEASES := -m 'release and not once'
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
.PHONY: help env oracle-env coverage demo protocol reference docs check quick-tables quick-others test lint style types unit catalogs unit-and-spec spark spark-sessions spark-programs spark-oldest older-releases releases test-more many-writers interop faults fuzz bench programs selection services clean distclean unit-oldest

help:
	@echo 'make demo        a tour on TPC-H tables: write, read, skip files, travel in time, merge, delete'
	@echo '                 (CATALOG=rest: on an Iceberg REST catalog and S3)'
	@echo 'make test        everything that CI runs: lint, unit, spark, spark-oldest, interop, older-releases, docs'
	@echo 'make check       the inner loop: lint, and the quick tests without Spark'
	@echo 'make lint        ruff, mypy --strict, import-linter, clang-format'
	@echo 'make unit        tests without Spark'
	@echo 'make spark       tests/spark on the newest pyspark (spark-oldest: tests marked `release` on 4.1)'
	@echo "make interop     tests with Iceberg's Java runtime and PyIceberg: each side reads what the other writes"
	@echo 'make older-releases  compiles the Java sources against every release of Spark, and runs first steps on 4.0.5 and 4.1.0'
	@echo 'make releases    runs first steps on every release of Spark, and writes docs/releases.md (not in make test)'
	@echo 'make unit-oldest make unit on Python 3.10 with the lowest versions of the dependencies (not in make test)'
	@echo 'make faults      the fault matrix: every kind of error at every point (make test tries a few points of each case)'
	@echo 'make fuzz        10,000 mutated inputs for every parser; make test runs at most a hundredth (ARGS="--only filter,schema")'
	@echo 'make test-more   everything that make test leaves out: all faults, fuzzing, threads, parameters, releases (some hours)'
	@echo 'make coverage    line and branch coverage of `make test`, by module (not in make test)'
	@echo 'make selection   tests/left_out.txt, written anew: the cases that `make test` leaves to `make test-more` (two hours)'
	@echo 'make bench       runs the benchmarks and writes their results (ARGS="planning native": only these sections)'
	@echo 'make protocol    generates the Java classes of bridge/protocol/ after a change there'
	@echo 'make reference   generates docs/reference and the rules of docs/guide/verify.md from the code, and the figures of README.md'
	@echo 'make services    builds or downloads the servers of the tests (S3, Google, Azure, REST, a proxy) into .services'
	@echo 'make docs        builds the documentation in build/site; warnings are errors'
	@echo 'make env         creates .venv (oracle-env: .venv-oracle too)'
	@echo 'make clean       removes the files of tests and demo (distclean: also the environments and downloads)'

# --- environments ----------------------------------------------------------------------------------------------------

env: .venv/.stamp-dev
oracle-env: .venv-oracle/.stamp-dev

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

# Three runs at a time, since Spark sessions leave a third of two cores idle, and the long ones first, so that all end
# together. A test that needs a server before `programs` has it waits for it. The last line adds up the tests of all.
test:
	@rm -rf $(RESULTS)
	@$(MAKE) --no-print-directory --jobs=2 env oracle-env
	@$(MAKE) --no-print-directory --jobs=3 style spark-sessions interop programs \
		unit-and-spec spark-programs catalogs older-releases spark-oldest types docs
	@$(NEWEST) -m tests.support.total $(RESULTS)

# Run by hand or on a schedule (takes some hours): every point of the fault matrix, twenty times as many mutated inputs, all
# operations of threads, tests marked `more`, all tests on 4.1, the lowest versions of dependencies, every release.
test-more: env oracle-env
	@$(MAKE) --no-print-directory faults
	@$(MAKE) --no-print-directory fuzz
	@ICEBERG_MORE=1 ICEBERG_COMMITS=200 $(MAKE) --no-print-directory unit
	@ICEBERG_MORE=1 $(MAKE) --no-print-directory spark
	@ICEBERG_MORE=1 $(MAKE) --no-print-directory interop
	@ICEBERG_MORE=1 $(MAKE) --no-print-directory spark-oldest OF_RELEASES=
	@$(MAKE) --no-print-directory unit-oldest
	@$(MAKE) --no-print-directory releases

# Sixteen processes that append fifty times each to one table, in every catalog and store, with default properties:
# each acknowledged row is there once (half an hour; see CONTRIBUTING.md for one of them).
many-writers: env
	ICEBERG_MORE=1 ICEBERG_COMMITS=50 $(NEWEST) -m pytest -q --durations=0 -k "many and not threads and not machines" \
		tests/catalogs/test_many_writers.py tests/catalogs/rest/test_lost_answers.py tests/stores/test_many_writers.py $(ARGS)

lint: style types

# The checks that take seconds.
style: env
	$(NEWEST) -m ruff check .
	$(NEWEST) -m ruff format --check .
	.venv/bin/lint-imports --no-logo
	.venv/bin/clang-format --dry-run -Werror $(JAVA_SOURCES)

# Takes over a minute if mypy's cache is empty.
types: env
	$(NEWEST) -m mypy

# Leaves out the slow half of these folders: the property tests of Hypothesis, and the tests of memory use. Two processes
# take half the time of one.
QUICK = $(NEWEST) -m pytest -q -m 'not hypothesis' --ignore-glob='*/test_memory_bounds*'
check: lint
	@$(MAKE) --no-print-directory --jobs=2 quick-tables quick-others

quick-tables: env
	$(QUICK) --ignore-glob='*/table/test_[a-f]*' tests/unit/table $(ARGS)

quick-others: env
	$(QUICK) --ignore-glob='*/table/test_[g-z]*' tests/unit tests/spec $(ARGS)

reference: env
	$(NEWEST) -m tests.support.reference_pages

# The variable silences a notice of the theme about a future release of mkdocs.
docs: env
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo 'build/site/index.html'

protocol: env
	PATH=$(CURDIR)/.venv/bin:$$PATH $(NEWEST) -m tests.support.java_protocol

unit: env
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/unit.xml $(NO_SPARK) $(ARGS)

# Both halves of `unit`, for the rows of `test`.
catalogs: env
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/catalogs.xml tests/catalogs $(ARGS)

unit-and-spec: env
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/unit.xml $(NO_SPARK) --ignore=tests/catalogs $(ARGS)

# An archive of Spark's classes, which the JVM maps into memory: programs of tests start in half the time. Tests also run
# without it, or if the Java in use cannot create it, but take longer. The few JVMs of 4.1 would not save its minute.
.venv/.stamp-archive: .venv/.stamp-dev
	@echo 'dumping the classes of Spark for the tests (a minute, the first time)'
	@$(NEWEST) -m tests.support.class_archive
	@touch $@

unit-oldest: .venv-oldest/.stamp-dev
	$(OLDEST) -m pytest -q $(NO_SPARK) $(ARGS)

spark: env
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/spark.xml tests/spark $(ARGS)

# Both halves of `spark`, for the rows of `test`.
spark-sessions: env
	@$(MAKE) --no-print-directory .venv/.stamp-archive
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/spark.xml -m 'not program' tests/spark $(ARGS)

spark-programs: env
	@$(MAKE) --no-print-directory .venv/.stamp-archive
	$(NEWEST) -m pytest -q --junitxml=$(RESULTS)/spark-programs.xml -m program tests/spark $(ARGS)

spark-oldest: oracle-env
	$(ORACLE) -m pytest -q --junitxml=$(RESULTS)/spark-oldest.xml $(OF_RELEASES) tests/spark $(ARGS)

interop: oracle-env
	$(ORACLE) -m pytest -q --junitxml=$(RESULTS)/interop.xml tests/interop $(ARGS)

# The environments of older releases have only pyspark; other packages come from the oracle's environment.
older-releases: oracle-env
	$(ORACLE) -m pytest -q --junitxml=$(RESULTS)/older-releases.xml tests/releases $(ARGS)

releases: oracle-env
	$(ORACLE) -m tests.releases $(ARGS)

faults: env
	ICEBERG_FAULTS=all ICEBERG_MORE=1 $(NEWEST) -m pytest -q tests/faults $(ARGS)

# Counts the processes of pytest only, which are the drivers: not executors' Python, and not subprocesses of tests.
COVER = COVERAGE_FILE=$(RESULTS)/coverage $(1) -m coverage run --branch --parallel-mode --source=iceberg_pyspark,jobs \
	-m pytest -q -p tests.case_contexts --junitxml=$(RESULTS)/$(2).xml

coverage: env oracle-env
	@rm -rf $(RESULTS) && mkdir -p $(RESULTS)
	$(call COVER,$(NEWEST),unit) $(NO_SPARK)
	$(call COVER,$(NEWEST),spark) tests/spark
	$(call COVER,$(ORACLE),spark-oldest) $(OF_RELEASES) tests/spark
	$(call COVER,$(ORACLE),interop) tests/interop
	COVERAGE_FILE=$(RESULTS)/coverage $(NEWEST) -m coverage combine $(RESULTS)
	COVERAGE_FILE=$(RESULTS)/coverage $(NEWEST) -m coverage report

# From the lines and the seconds of every case: which cases `make test` leaves to `make test-more`.
selection:
	@ICEBERG_ALL_CASES=1 $(MAKE) --no-print-directory coverage
	$(NEWEST) -m tests.selection $(RESULTS)

bench: oracle-env
	$(ORACLE) -m tests.bench $(ARGS)

fuzz: env
	$(NEWEST) -m tests.fuzz $(ARGS)

services: env
	$(NEWEST) -m tests.services

# The same before tests: where a server cannot be had, its tests are skipped, or fail, and say why.
programs: env
	@echo 'fetching or building the servers of the tests into .services (some minutes the first time)'
	@$(NEWEST) -m tests.services > /dev/null 2>&1 || true

clean:
	rm -rf $(RESULTS) .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist \
		spark-warehouse metastore_db artifacts derby.log
	find iceberg_pyspark pyspark_iceberg_py jobs tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-oracle .venv-oldest .oracle .releases .services .tpch
