#!/usr/bin/env bats
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/regenerate-docs, on a small tree with one executable.

load helpers

tree() {
  mkdir -p tree/scripts tree/apps bin
  cp "$LARCH_SOURCE_DIR/scripts/regenerate-docs" tree/scripts/
  touch tree/apps/skeleton-app.cpp
  cp "$SKELETON" bin/skeleton-app
}

@test "pages and configurations are written, and then up to date" {
  tree
  echo "A picture." > tree/apps/skeleton-app.intro.md
  expect 1 tree/scripts/regenerate-docs --check bin
  absent tree/apps/skeleton-app.md
  expect 0 tree/scripts/regenerate-docs bin
  has tree/apps/skeleton-app.md "A picture."
  has tree/apps/skeleton-app.md "Usage: skeleton-app"
  has tree/apps/skeleton-app.md "--style.widths"
  expect 0 bin/skeleton-app --config tree/configs/skeleton-app.json --print-config
  expect 0 tree/scripts/regenerate-docs --check bin
}

@test "--check shows what differs and fails" {
  tree
  expect 0 tree/scripts/regenerate-docs bin
  sed -i 's/"times": 2/"times": 3/' tree/configs/skeleton-app.json
  expect 1 tree/scripts/regenerate-docs --check bin
  has out.txt '-  "times": 3'
  has out.txt "1 file(s) are out of date"
  has tree/configs/skeleton-app.json '"times": 3'
}

@test "a missing executable or argument is an error" {
  tree
  rm bin/skeleton-app
  expect 1 tree/scripts/regenerate-docs bin
  has err.txt "build the executables first"
  expect 2 tree/scripts/regenerate-docs
}
