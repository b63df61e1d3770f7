# A thin front for CMake + Ninja: `make help` lists what there is.
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   := build
NINJA   := cmake --build $(BUILD)
# Ninja does the parallel work; with `make -jN` it gets the same N.
JOBS     = $(patsubst -j%,-j %,$(filter -j%,$(MAKEFLAGS)))
export NINJA_STATUS = [%f/%t] # quiet: one line, progress only

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all setup demo test test-all lint format bench install clean help

all: setup $(BUILD)/build.ninja ## release build: build/bin/norma, build/bin/norma-golden, both libraries
	@$(NINJA) $(JOBS) -- --quiet

setup: ## install the Debian packages that are missing (does nothing when all is there)
	@scripts/setup

$(BUILD)/build.ninja: CMakePresets.json
	@out=$$(cmake --preset release) || { echo "$$out"; exit 1; }
	@touch $@

demo: all ## pre-train under three normalizations on real pictures, probe, compare: a table and runs/demo/report.html
	@scripts/demo $(BUILD)/bin/norma

test: setup ## build without any warning, run the cheap checks and every test
	@scripts/run-tests release -DNORMA_WERROR=ON

test-all: ## test, then emulated instruction sets, sanitizers, clang, valgrind, fuzzers (60 s each) and the peers if they are set up
	@scripts/setup --dev
	@scripts/test-all

lint: ## formatting, clang-tidy, cppcheck, include layers, banned calls, shell scripts
	@scripts/setup --dev
	@scripts/lint

format: ## rewrite the sources with clang-format
	@scripts/check-format --fix

bench: all ## every benchmark case beside PyTorch (sets up .peers/ first)
	@scripts/setup-peers
	@$(BUILD)/bin/norma bench all --peer

install: all ## into $(DESTDIR)$(PREFIX)
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" >/dev/null
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@echo "installed into $(DESTDIR)$(PREFIX)"

clean: ## remove every build folder
	@rm -rf build build-debug build-asan build-tsan build-clang build-emulated build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'
