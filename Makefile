# `make demo` and `make test` each do all their own set-up; a second run does not reinstall.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# One BLAS/OpenMP thread a process: parallelism here is by process, and threads that share cores stall.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint types unit bench docs docs-check clean install lowest release-check sbom licences study-archive
demo: $(STAMP)
	$(BIN)/unseam demo --out demo

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal

bench: $(STAMP)
	$(BIN)/unseam bench

docs: $(STAMP)
	$(BIN)/python docs/site/build.py site --run

# The same, and every page of it opened in a browser: light and dark, on a desk and on a phone.
docs-check: $(STAMP)
	UNSEAM_DOCS=all UNSEAM_BROWSER=required $(BIN)/pytest -p no:xdist tests/test_docs_pages.py

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Exactly the lower bounds of pyproject.toml, in a venv of their own; the core is walked on them, without torch.
lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct .
	mkdir -p .venv-lowest/empty && cd .venv-lowest/empty && ../bin/python ../../tests/packaging/core_walk.py

# What a release needs; its tools have a venv of their own, so that they cannot change what is tested.
TOOLS := .venv-release
$(TOOLS)/.installed: Makefile
	test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check build hatchling twine pyroma check-wheel-contents cyclonedx-bom pip-licenses
	touch $@

release-check: $(TOOLS)/.installed
	rm -rf dist
	$(TOOLS)/bin/python -m build --no-isolation
	$(TOOLS)/bin/twine check --strict dist/*
	$(TOOLS)/bin/check-wheel-contents --toplevel unseam,unseam_papers dist/*.whl
	$(TOOLS)/bin/pyroma --min 8 dist/*.tar.gz
	$(TOOLS)/bin/python tests/packaging/contents.py dist

# A software bill of materials (CycloneDX) of what `make install` installed, and its licences.
sbom: $(STAMP) $(TOOLS)/.installed
	mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-file dist/unseam-sbom.json $(BIN)/python

licences: $(STAMP) $(TOOLS)/.installed
	$(TOOLS)/bin/pip-licenses --python $(BIN)/python --fail-on "$$(paste -sd ';' tests/packaging/refused-licences.txt)" --order license

# The shipped tables of studies, with what they are, as one file with the same bytes whenever it is made: ready for a DOI.
study-archive:
	mkdir -p dist
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - studies CITATION.cff LICENSE | gzip -n9 > dist/unseam-studies.tar.gz
	cd dist && sha256sum unseam-studies.tar.gz > unseam-studies.tar.gz.sha256

clean:
	rm -rf $(VENV) .venv-lowest $(TOOLS) demo dist site site-build .pytest_cache .mypy_cache .ruff_cache
