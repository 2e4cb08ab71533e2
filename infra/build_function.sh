#!/usr/bin/env bash
# Make the tree that a function's image holds: infra/build_function.sh judge-result TARGET
#
# The Dockerfile calls it, and so do the tests and the measurements, so that what is measured is what is shipped.
# PYTHON and UV name the programs to use; without them, those of .venv.
set -euo pipefail

if [[ $# -ne 2 ]]; then
  echo "usage: infra/build_function.sh FUNCTION TARGET" >&2
  exit 2
fi
function=$1
target=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
uv=${UV:-$root/.venv/bin/uv}
requirements=$root/infra/requirements/$function.txt
handler=$root/functions/${function//-/_}/handler.py

for needed in "$requirements" "$handler"; do
  if [[ ! -f $needed ]]; then
    echo "there is no function $function: $needed is missing" >&2
    exit 2
  fi
done
if [[ -e $target && -n $(ls -A "$target") ]]; then
  echo "$target is not empty" >&2 # what lies there already would be shipped
  exit 2
fi
mkdir -p "$target"

# --no-deps: the file names everything, also what is left out on purpose (infra/requirements/left-out.txt).
UV_LINK_MODE=copy "$uv" pip install --quiet --python "$python" --target "$target" \
  --no-deps --only-binary :all: --require-hashes -r "$requirements"
cp "$handler" "$target/handler.py"
cp -R "$root/shared/wikikeeper" "$target/wikikeeper"

# What only one machine uses: its command line and stores, the judge that comes along, the example, stand-ins for tests.
(cd "$target/wikikeeper" && rm -rf __main__.py adapters/local app.py bundled cli example fakes.py serving.py)
# And the pages, with their templates, where they are not served.
[[ $function == web ]] || (cd "$target/wikikeeper" && rm -rf cloud_web.py web)

# Of botocore's descriptions of 400 services (9 of 10 of its bytes), those of the clients that the adapters make.
find "$target/botocore/data" -mindepth 1 -maxdepth 1 -type d ! -name dynamodb ! -name s3 ! -name sqs -exec rm -rf {} +

# FastAPI loads the whole of pydantic 1 only to say that no model of it is taken; without it, it takes none for one.
rm -rf "$target/pydantic/v1"

# Console scripts, tests, sources of compiled modules, type stubs, and caches: never used here.
rm -rf "$target/bin" "$target/.lock" "$target"/*_cli "$target/dateparser_scripts"
find "$target" -type d \( -name tests -o -name test -o -name testing -o -name __pycache__ \) -prune -exec rm -rf {} +
find "$target" -type f \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.c' -o -name '*.h' -o -name '*.pyi' \) -delete

# Bytecode now, once, instead of at each cold start. unchecked-hash: images change the times of files, and a time that
# does not match would have every module compiled again.
"$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$target"
