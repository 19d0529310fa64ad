# What a developer types. Everything is set up on first use: a virtual
# environment in .venv, and memcached by the system's package manager (for
# `make faults` also FUSE, iproute2 and nftables).
#
#   make demo KEEP=1              leave the demo's cluster running
#   make test PYTEST='-k quota'   run some tests
#   make test PYTHON=python3.12   choose an interpreter, after make clean
#   make conformance VARIANTS='base n1'
#                                 run Swift's tests on some kinds of cluster
#   make faults SECONDS=60 FAULTS='container --resume'
#                                 a minute for each cell of the fault matrix
#                                 that begins with container, and go on with
#                                 what is missing
#   make fuzz SECONDS=3600 FUZZ='record pending'
#                                 an hour for each of two targets

VENV = .venv
INSTALLED = $(VENV)/.installed

# Building a package needs pip alone, a release more.
BUILD = .venv-build
RELEASE = .venv-release
EXTRAS = test,lint,conformance

# The fuzzer, which has no packages for some systems, is installed on its own.
ATHERIS = $(VENV)/.atheris

# The tests of one file run in one process, with a cluster of its own.
# Unit tests run Swift's proxy with the sockets of green threads, so they have
# processes of their own. Functional tests often wait for daemons and caches, so
# four processes keep two cores busy. Some of the longest files have few tests:
# they must not come last.
UNIT_JOBS = -n 2 --dist loadfile --no-loadscope-reorder
FUNCTIONAL_JOBS = -n 4 --dist loadfile --no-loadscope-reorder

# What the Debian package is built with and from. The tools are those of
# Build-Depends in packaging/debian/control.
DEB_TOOLS = dpkg-dev debhelper dh-python pybuild-plugin-pyproject python3-all \
    python3-setuptools python3-wheel
DEB_FILES = CHANGELOG.md LICENSE README.md doc etc pyproject.toml setup.cfg \
    setup.py shardmw

# pytest's exit code for an option such as -k that selects no test
NONE_IS_FINE = $(if $(PYTEST),|| [ $$? -eq 5 ])

# Addresses here need no name server, and without the client for one each of
# Swift's processes starts 0.2 s sooner.
test test-tools: export EVENTLET_NO_GREENDNS = yes

# The tests start the commands and servers some thousand times. Without the
# compiled modules each starts 0.2 s later.
test test-tools: export PYTHONDONTWRITEBYTECODE =

# A demo and a measurement with the tools; make test-tools runs all their tests.
TOOLS_SMOKE = test/tools/functional/test_demo.py \
    test/tools/functional/test_bench_commands.py

# What a few minutes have time for of Swift's own tests.
CONFORMANCE_PART = --variants base --suites basics

# It is made anew for other dependencies, and in a copy of it elsewhere, where
# it would not work.
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif

# memcached lies in sbin on some systems, which not every user looks in
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin

.PHONY: help
help:
	@echo 'make demo   archive the logs of a CI in a sharded container'
	@echo 'make test   check the style, run the unit and functional tests'
	@echo 'make test-tools  run the tests of the embedded Swift and the benchmark'
	@echo 'make lint   check the style, and which rooms import which'
	@echo 'make contract SWIFT=DIR  check what is used of a checkout of Swift'
	@echo 'make wheel  build the package for operators in dist; make wheels both'
	@echo 'make release  build both packages in dist, check and install them'
	@echo 'make deb    build the Debian package in build/deb'
	@echo 'make clean  remove what the others made'
	@echo 'make faults  look for wrong histories while layouts change and servers fail'
	@echo 'make faults-pairs  the same while two parts of Swift fail at a time; two hours'
	@echo 'make porcupine  check the histories that FAULTS="--histories .faults/histories" kept'
	@echo 'make fuzz   look for inputs that break a parser or a reader'
	@echo 'make mutants  do the unit tests notice small changes of the rules?'
	@echo "make conformance  run Swift's own tests on sharded containers; an hour or two"

.PHONY: demo
demo: $(INSTALLED) memcached
	@python -m shardmw_demo $(DEMO)

.PHONY: test
test: lint memcached
	python -m pytest $(UNIT_JOBS) test/unit test/contract \
	    $(PYTEST) $(NONE_IS_FINE)
	python -m pytest $(FUNCTIONAL_JOBS) test/functional $(TOOLS_SMOKE) \
	    $(PYTEST) $(NONE_IS_FINE)
	$(if $(PYTEST),,python -m test.conformance $(CONFORMANCE_PART))

.PHONY: test-tools
test-tools: $(INSTALLED) memcached
	python -m pytest $(UNIT_JOBS) test/tools/unit $(PYTEST) $(NONE_IS_FINE)
	python -m pytest $(FUNCTIONAL_JOBS) test/tools/functional $(PYTEST) \
	    $(NONE_IS_FINE)

.PHONY: contract
contract: $(INSTALLED)
	$(if $(SWIFT),PYTHONPATH='$(SWIFT)') python -m pytest test/contract

.PHONY: conformance
conformance: $(INSTALLED) memcached
	@python -m test.conformance \
	    $(if $(VARIANTS),--variants '$(VARIANTS)',--page) $(CONFORMANCE)

.PHONY: faults
faults: $(INSTALLED) memcached network fuse
	@python -m test.faults $(if $(SECONDS),--seconds $(SECONDS)) \
	    $(if $(SEED),--seed $(SEED)) $(FAULTS)
	$(if $(FAULTS),,python -m pytest $(FUNCTIONAL_JOBS) test/faults)

.PHONY: faults-pairs
faults-pairs: $(INSTALLED) memcached
	@python -m test.faults.pairs $(if $(SECONDS),--seconds $(SECONDS)) \
	    $(if $(SEED),--seed $(SEED)) $(FAULTS)

.PHONY: porcupine
porcupine: $(INSTALLED)
	@python -m test.faults.histories $(or $(HISTORIES),.faults/histories)

.PHONY: fuzz
fuzz: $(INSTALLED) $(ATHERIS)
	@python -m test.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(FUZZ)

$(ATHERIS): | $(INSTALLED)
	@python -m pip install --quiet --disable-pip-version-check atheris
	@touch $@

# An argument is a module: make mutants MUTANTS=core/gcra.
.PHONY: mutants
mutants: $(VENV)/bin/mutmut
	@python -m test.mutants $(MUTANTS)

$(VENV)/bin/mutmut: $(INSTALLED)
	@tools/install-into $(VENV) './tools[mutants]'

.PHONY: lint
lint: $(INSTALLED)
	ruff check
	ruff format --check
	lint-imports
	tools/check-seam

.PHONY: wheel wheels
wheel: WHEELS = .
wheels: WHEELS = . ./tools
wheel wheels: $(BUILD)
	@$(BUILD)/bin/python -m pip wheel --quiet --disable-pip-version-check \
	    --no-deps --wheel-dir dist $(WHEELS)
	@ls dist

$(BUILD):
	@tools/make-venv $(BUILD) $(PYTHON)

# What CONTRIBUTING.md calls for before an upload. A build folder may have
# modules that have been removed since.
.PHONY: release
release: $(RELEASE)/bin/twine
	rm -rf build/lib dist tools/build
	$(RELEASE)/bin/python -m build --outdir dist
	$(RELEASE)/bin/python -m build --outdir dist tools
	$(RELEASE)/bin/twine check --strict dist/*
	$(RELEASE)/bin/check-wheel-contents dist/shardmw-*.whl
	cd tools && ../$(RELEASE)/bin/check-wheel-contents \
	    ../dist/shardmw_tools-*.whl
	tools/make-venv build/venv $(PYTHON)
	build/venv/bin/python -m pip install --quiet \
	    --disable-pip-version-check dist/shardmw-*.whl
	build/venv/bin/shardmw-admin --version
	build/venv/bin/shardmw-admin --help >/dev/null
	build/venv/bin/shardmw-resharder --help >/dev/null

$(RELEASE)/bin/twine:
	@tools/make-venv $(RELEASE) $(PYTHON)
	@$(RELEASE)/bin/python -m pip install --quiet \
	    --disable-pip-version-check build check-wheel-contents twine

# The system's Python builds the package, not one that lies before it on PATH.
.PHONY: deb
deb:
	@for tool in $(DEB_TOOLS); do \
	    dpkg-query --status $$tool >/dev/null 2>&1 || \
	        tools/install-package $$tool || exit; done
	rm -rf build/deb
	mkdir -p build/deb/shardmw
	cp -R $(DEB_FILES) packaging/debian build/deb/shardmw
	cd build/deb/shardmw && \
	    PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg-buildpackage -us -uc -b
	@ls build/deb/*.deb

.PHONY: clean
clean:
	rm -rf $(VENV) $(BUILD) $(RELEASE) build dist *.egg-info tools/build tools/*.egg-info
	rm -rf .conformance .fuzz .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find shardmw test tools -name __pycache__ -prune -exec rm -rf {} +

# The library that mounts the disks of the cells that lose power
.PHONY: fuse
fuse:
	-@command -v fusermount3 >/dev/null || tools/install-package fuse3

.PHONY: memcached
memcached:
	@command -v memcached >/dev/null || tools/install-package memcached

# Only root can make a network. Without it, its cells are left out.
.PHONY: network
network:
	@[ "$$(id -u)" -ne 0 ] || command -v ip >/dev/null || \
	    tools/install-package iproute2 || true
	@[ "$$(id -u)" -ne 0 ] || command -v nft >/dev/null || \
	    tools/install-package nftables || true

$(INSTALLED): setup.cfg tools/setup.cfg tools/setup.py tools/make-venv
	@tools/make-venv $(VENV) $(PYTHON)
	@tools/install-into $(VENV) . './tools[$(EXTRAS)]'
	@echo '$(CURDIR)' >$@
