#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# Links the shared libraries, installs them, moves the tree and starts every program of it:
# shared_libraries_test.sh SOURCE BUILD [CMAKE ARGUMENT]...
# Objects are the same in static and in shared libraries, so that those of BUILD are taken.
set -euo pipefail
source=$1 build=$2
shift 2
work=$build/shared_test
rm -rf "$work"
mkdir -p "$work"

cat >"$work/take" <<EOT
#!/bin/sh
for word; do
  if [ "\$last" = -o ]; then object=\$word; fi
  last=\$word
done
if [ -e "$build/\$object" ]; then exec cp "$build/\$object" "\$object"; fi
exec "\$@"
EOT
chmod +x "$work/take"

quietly() {
  "$@" >"$work/log.txt" 2>&1 || { tail -n 40 "$work/log.txt"; exit 1; }
}
quietly cmake -S "$source" -B "$work/build" -G Ninja -DBUILD_SHARED_LIBS=ON -DLARCH_BUILD_TESTS=OFF \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$work/take" -DCMAKE_CUDA_COMPILER_LAUNCHER="$work/take" "$@"
quietly cmake --build "$work/build"
quietly cmake --install "$work/build" --prefix "$work/first"
mv "$work/first" "$work/moved"
rm -rf "$work/build"  # libraries that programs find there fail from here on

started=0
for program in "$work"/moved/bin/*; do
  "$program" --version >"$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
  started=$((started + 1))
done
for module in "$work"/moved/lib/python3/dist-packages/larch.*.so; do
  [[ ! -e $module ]] || PYTHONPATH=$(dirname "$module") /usr/bin/python3 -c 'import larch'
done
wanted=$(find "$source/apps" -maxdepth 1 -name '*.cpp' | wc -l)
((started == wanted)) || { echo "$started programs are installed, and there are $wanted"; exit 1; }
