# The front door. Nothing needs to be installed or configured first: every target makes the machine ready itself.
#   make demo        build, then tune a real ONNX graph, print what it found, and time onnxruntime beside it if it is installed
#   make check       build, then what takes two minutes: units, one run of the programs, layers, sizes and format
#   make test        build, then the tests
#   make test-cluster   on a real Slurm of one node, and the Debian packages in a fresh Debian 12
#   make packages    the Debian packages, into build/packages
#   make dist        the Debian packages and the Python package with their checksums (SHA256SUMS), into build/dist
#   make install     the programs and the run-time library, to PREFIX (/usr/local)
#   make wheel       the Python package with all that it loads, for systems as new as this one, into build/wheels
#   make site        the documentation as pages of HTML, into build/site/html
#   make bench       the figures that bench/README.md quotes; make bench-peers adds the other frameworks (6 GB of Python packages)
#   make bench-parts   the memory-bound parts of models, beside the other frameworks
#   make bench-models  time and memory of the whole models in MODELS (a folder of ONNX files) beside the other frameworks
#   make bench-cpu-model  how the cost of CPU contractions ranks schedules; RECORD=1 measures them on this machine first
#   make bench-replay  what the search strategies are worth on recorded tuning spaces, without a device
#   make bench-ranker  how the learned cost model ranks recorded kernels of groups that it was not trained on; STORE=FILE: of a store
#   make test-long | lint | format | asan | tsan | fuzz   FUZZ_SECONDS=N: of each fuzz target, or FUZZ_RUNS=N inputs;
#                    FUZZ_TARGETS='wire requests frames': of these alone
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: all build install setup python cluster peers demo check hook test test-long test-cluster packages wheel dist site bench bench-all bench-peers bench-parts bench-models bench-cpu-model bench-replay bench-ranker format lint asan tsan fuzz clean

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DEMO_OPTIONS ?=
FUZZ_SECONDS ?= 30
MODELS ?= ../shared/data/models
SOURCES = git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' ':!tests/data'

all: build

setup:
	@tools/setup.sh packages

python:
	@tools/setup.sh python

peers:
	@tools/setup.sh peers

site:
	@tools/setup.sh site
	build/venv-site/bin/python tools/site_pages.py

wheel:
	@tools/setup.sh wheel
	rm -rf build/wheels
	build/venv-wheel/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheels/as_built .
	PATH=$(CURDIR)/build/venv-wheel/bin:$$PATH build/venv-wheel/bin/auditwheel repair --exclude libwarploom.so.1 --wheel-dir build/wheels build/wheels/as_built/*.whl

# $(call configure_and_build,PRESET,TARGETS[,long]) configures a CMake preset and builds targets of it; `long`: tests have hours, not minutes.
define configure_and_build
cmake --preset $(1) -DWARPLOOM_LONG_TESTS=$(if $(3),ON,OFF)
cmake --build --preset $(1) -j $(JOBS) --target $(2)
endef

# $(call run_tests,PRESET,CTEST OPTIONS) runs tests by ctest, with two places for every processor (cmake/warploom.cmake), and keeps the output in ctest.log, whose last lines .ci/run prints at its end.
define run_tests
@mkdir -p build/$(1)
ctest --preset $(1) -j $$(( 2 * $(JOBS) )) --no-tests=error $(2) 2>&1 | tee build/$(1)/ctest.log
endef

build: python
	$(call configure_and_build,release,all)

install:
	@tools/setup.sh build
	$(call configure_and_build,release,installed)
	cmake --install build/release --prefix $(PREFIX)

demo:
	@tools/setup.sh build
	$(call configure_and_build,release,warploom warploom-runner)
	@tools/demo.py $(DEMO_OPTIONS)

# The checks to run for every change, before `make test`. After `make hook`, git runs them before every commit.
check: setup
	$(call configure_and_build,release,checked)
	$(call run_tests,release,-R '^(check\..*|e2e\.small|lint\.(layers|sizes|format))$$')

hook:
	printf '#!/bin/sh\nexec make check\n' > $$(git rev-parse --git-path hooks)/pre-commit
	chmod +x $$(git rev-parse --git-path hooks)/pre-commit

# `make test` takes minutes. It tests a twentieth of the usual number of random graphs, and a part of long lists (tests/unit/fuzz.h);
# WARPLOOM_TEST_SEED=N makes other random graphs.
test: export WARPLOOM_TEST_SCALE ?= 0.05
test: python
	$(call configure_and_build,release,tests)
	$(call run_tests,release,-LE 'long|check')

# `make test-long` tests all elements of every list, and two hundred times as many random graphs as `make test`: 10^6 through text and rules,
# 10^5 through lowering, and 10^4 compiled.
test-long: export WARPLOOM_TEST_SCALE ?= 10
test-long: python
	$(call configure_and_build,release,tests,long)
	$(call run_tests,release,-LE check)

# `make cluster` sets up a Slurm cluster of one node, and downloads a Debian system.
cluster:
	@tools/setup.sh cluster

test-cluster: cluster packages
	$(call configure_and_build,release,tests)
	$(call run_tests,release,-L cluster)

packages: cluster
	$(call configure_and_build,release,installed)
	rm -rf build/packages
	cpack --config build/release/CPackConfig.cmake -B build/packages

dist: packages wheel
	rm -rf build/dist
	mkdir -p build/dist
	cp build/packages/*.deb build/wheels/*.whl build/dist
	cd build/dist && sha256sum *.deb *.whl > SHA256SUMS
	cd build/dist && sha256sum --check SHA256SUMS

bench: build
	build/venv/bin/python bench/run.py
	build/venv/bin/python bench/compile_scale.py
	build/venv/bin/python bench/gpu_compile.py
	build/release/bin/simulator_speed

bench-peers: peers build
	build/venv/bin/python bench/run.py --peers

bench-parts: peers build
	build/venv/bin/python bench/run.py --peers --parts

bench-all: peers build
	build/venv-peers/bin/pip install -q --no-deps -r tools/requirements-further.txt
	build/venv/bin/python bench/report/everything.py

bench-models: python peers build
	build/venv/bin/python bench/models.py $(MODELS)
	build/venv/bin/python bench/memory.py $(MODELS)

bench-cpu-model: build
	build/venv/bin/python bench/cpu_model.py $(if $(RECORD),--record)

# `make bench-replay` takes seconds for each recorded table and strategy, and needs no device. bench/record.py records the tables of this
# machine.
bench-replay: build
	build/venv/bin/python bench/replay.py

# `make bench-ranker` takes seconds, and only evaluates recorded times.
bench-ranker: build
	build/release/bin/ranker $(if $(STORE),judge-store $(STORE),judge bench/results/cpu-model-20261122.json.gz bench/replay/spaces/*.gz)

format:
	@clang-format --version | grep -q 'version 14\.' || { echo 'format: the files are formatted by clang-format 14, which Debian 12 has' >&2; exit 1; }
	$(SOURCES) | xargs clang-format -i

lint: python
	$(call configure_and_build,release,tests)
	python3 tests/checks/layers.py
	python3 tests/checks/sizes.py
	python3 tests/checks/classes.py
	python3 tests/checks/format.py || [ $$? -eq 77 ]  # 77: another release of clang-format is here
	python3 tests/checks/tidy.py --build build/release --jobs $(JOBS)

# LEFT_OUT names the tests that `make tsan` does not run, since each would take about an hour under the thread sanitizer. The suites of ONNX
# operators use threads as the conformance tests do, which are run. A whole layer (e2e.embedded) and every cover (e2e.cover) send many messages,
# and the sanitizer must suppress a report for every byte that the RPC library hands over; e2e.processes, which is run, sends the same messages.
# Tests of limits send messages of many megabytes; reading one of 100 MB takes more than an hour.
asan tsan: export WARPLOOM_TEST_SCALE ?= 0.1
tsan: LEFT_OUT = -E '^(e2e.cover|e2e.embedded|e2e.onnx_oracle|onnx_backend|(Request|Listing)Limits\..*|Uploads\.HoldNoMore.*|Inspect\.AnswersBeyond.*|HostileCoordinator\.AnInspection.*)$$'
asan tsan: python
	$(call configure_and_build,$@,tests)
	$(call run_tests,$@,-LE 'long|lint|check' $(LEFT_OUT))

fuzz: python
	$(call configure_and_build,fuzz,fuzzers)
	tools/fuzz.sh $(FUZZ_SECONDS) '$(FUZZ_RUNS)' $(FUZZ_TARGETS)

clean:
	rm -rf build/dev build/release build/asan build/tsan build/fuzz build/demo
