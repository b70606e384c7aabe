#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes CUDA source as C++ that tests/emulation runs. Usage: as_cpp.py SOURCE OUTPUT

What is no C++ is replaced in its line: launches, variables in shared memory, addresses of kernels, and
the one instruction that is written as assembly. Everything else is left to the headers of tests/emulation.
"""
import pathlib
import re
import sys

NAME = r'[A-Za-z_]\w*'
KERNEL = rf'{NAME}(?:::{NAME})*(?:<[^<>;(){{}}]*>)?'
OURS = '::larch::emulation::'


def shared_variable(match):
    kind, name, size = match.groups()
    return (f'static char {name}_key; using {name}_type = {kind}{size}; '
            f'auto& {name} = {OURS}shared<{name}_type>(&{name}_key);')


RULES = [
    (re.compile(rf'({KERNEL})\s*<<<(.*?)>>>\s*\(', re.S),
     lambda m: f'{OURS}launcher("{m[1]}", {m[1]}, {m[2]})('),
    (re.compile(rf'reinterpret_cast<const void\*>\(({KERNEL})\)'),
     lambda m: f'{OURS}kernel_address("{m[1]}", {m[1]})'),
    (re.compile(rf'extern __shared__ (?:__align__\(\d+\) )?({NAME}) ({NAME})\[\];'),
     lambda m: f'auto* const {m[2]} = static_cast<{m[1]}*>({OURS}dynamic_shared());'),
    (re.compile(rf'__shared__ (?:__align__\(\d+\) )?([^;\[\]=]*?[\w>]) ({NAME})((?:\[[^\]]*\])*);'), shared_variable),
    (re.compile(r'asm volatile\(\s*"bar\.sync %0, %1;"\s*::\s*"r"\((.*?)\),\s*"n"\((.*?)\)\s*:\s*"memory"\);', re.S),
     lambda m: f'{OURS}barrier({m[1]}, {m[2]});'),
]
LEFT = re.compile(r'<<<|\b__shared__\b|\basm\b(?! volatile\("")')


def as_cpp(text, path):
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    for number, line in enumerate(text.split('\n'), 1):
        if LEFT.search(line.split('//')[0]):
            sys.exit(f'{path}:{number}: as_cpp.py has no rule for this: {line.strip()}')
    return f'#include <cuda_runtime.h>  // as nvcc does\n#line 1 "{path}"\n{text}'


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(as_cpp(source.read_text(encoding='utf-8'), source), encoding='utf-8')


if __name__ == '__main__':
    main()
