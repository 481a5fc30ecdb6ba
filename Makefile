# Every command of the project. Each one first installs what the machine lacks
# (`setup`, order-only below, so that it never causes a rebuild) and builds only
# what has changed.
#
#   make demo     build the demo page, open it headless and print what it measured
#   SERVE=1 make demo   the same page, served for your own browser
#   make test     every suite; the last line counts the tests
#   make check    the quick loop: formats, lints, types, unit tests

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
export PATH := $(HOME)/.cargo/bin:$(CURDIR)/node_modules/.bin:$(PATH)

CORE := $(wildcard Cargo.toml Cargo.lock build.rs .cargo/config.toml) $(shell find src shaders -type f 2>/dev/null)
FACE := $(wildcard pkg-template/*.json) $(shell find pkg-template/src pkg-template/wasm -type f 2>/dev/null)
PAPERS := pkg-template/package.json pkg-template/README.md LICENSE-MIT LICENSE-APACHE
SITE := tsconfig.json $(shell find www -type f -not -path 'www/dist/*' 2>/dev/null)
PRETTY := '**/*.{js,mjs,ts,css,html,json}'

# The features rustc turns on for wasm32-unknown-unknown, by wasm-opt's names for them.
WASM_FEATURES := bulk-memory bulk-memory-opt call-indirect-overlong multivalue mutable-globals \
	nontrapping-float-to-int reference-types sign-ext

.PHONY: help setup build demo test check clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

setup:
	@tools/setup.sh

build: pkg/.built

demo: www/dist/.built
	@node tools/demo.mjs

test: build
	@REQUIRE_GPU=1 node tools/test.mjs

check: pkg/dist/index.js
	cargo fmt --check
	prettier --check --log-level warn $(PRETTY)
	tsc -p tsconfig.json
	cargo clippy --all-targets -- -D warnings
	cargo clippy --target wasm32-unknown-unknown --lib --tests -- -D warnings
	node tools/test.mjs unit

clean:
	rm -rf pkg www/dist node_modules target

pkg/.built: pkg/wasm/framebatch_bg.wasm pkg/dist/index.js $(PAPERS) tools/size.mjs
	cp $(PAPERS) pkg/
	node tools/size.mjs pkg
	touch $@

# wasm-pack's own package.json, README and .gitignore would shadow the package's.
pkg/wasm/framebatch_bg.wasm: $(CORE) Makefile | setup
	rm -rf pkg/wasm
	wasm-pack build --target web --release --no-opt --no-pack --out-dir pkg/wasm --out-name framebatch
	cd pkg/wasm && rm -f .gitignore package.json README.md LICENSE*
	wasm-opt -Oz $(WASM_FEATURES:%=--enable-%) $@ -o $@.opt
	mv $@.opt $@

pkg/dist/index.js: $(FACE) | setup
	rm -rf pkg/dist
	tsc -p pkg-template --outDir pkg/dist

www/dist/.built: pkg/.built $(SITE)
	tsc -p tsconfig.json
	vite build www --config www/vite.config.mjs --logLevel warn
	touch $@
