#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The presets of CMakePresets.json. Usage: presets_test.py SOURCE_DIR WORK_DIR

`release` and `quickstart` configure where only `scripts/install-packages build` was run: the packages
of the other groups are hidden from them. Presets that run or ship tests have all of them, those that ship
benchmarks too.
"""
import json
import os
import shutil
import subprocess
import sys

SOURCE, WORK = sys.argv[1:3]
# What the groups "test" and "benchmark" of scripts/install-packages bring to CMake.
HIDDEN = ('Catch2', 'benchmark', 'TBB', 'Boost')


def settings(presets, name):
    """Cache variables of a configure preset with those that it inherits."""
    preset = presets[name]
    values = settings(presets, preset['inherits']) if 'inherits' in preset else {}
    return {**values, **preset.get('cacheVariables', {})}


def configure(name):
    """Errors of configuring a preset on a machine without the hidden packages."""
    folder = os.path.join(WORK, name)
    shutil.rmtree(folder, ignore_errors=True)
    command = ['cmake', '--preset', name, '-B', folder, '-DLARCH_WITH_CUDA=OFF']
    command += [f'-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON' for package in HIDDEN]
    run = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
    shutil.rmtree(folder, ignore_errors=True)
    return [] if run.returncode == 0 else [f'cmake --preset {name} failed:\n{run.stderr}']


def main():
    with open(os.path.join(SOURCE, 'CMakePresets.json'), encoding='utf-8') as file:
        everything = json.load(file)
    presets = {preset['name']: preset for preset in everything['configurePresets']}
    tested = {preset['configurePreset'] for preset in everything['testPresets'] if 'configurePreset' in preset}
    errors = []
    for name in sorted(tested | {'bundle'}):
        values = settings(presets, name)
        if values.get('LARCH_BUILD_TESTS', 'ON') != 'ON' or values.get('LARCH_TEST_ALL') != 'ON':
            errors.append(f'the preset {name} has not all tests')
    if settings(presets, 'bundle').get('LARCH_BUILD_BENCHMARKS', 'OFF') != 'ON':
        errors.append('the preset bundle has no benchmarks')
    for name in ('release', 'quickstart'):
        errors += configure(name)
    print('\n'.join(errors) or f'presets: {len(presets)} looked at')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
