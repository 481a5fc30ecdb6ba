#!/bin/sh
# The compiler of the workspace's own crates for browsers whose WebAssembly has vectors: cargo
# calls it by RUSTC_WORKSPACE_WRAPPER. Other crates are compiled once, without vectors, for both
# builds of the core.
case " $* " in
*" wasm32-unknown-unknown "*) exec "$@" -Ctarget-feature=+simd128 ;;
*) exec "$@" ;;
esac
