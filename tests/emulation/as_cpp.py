#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes CUDA source as C++ that tests/emulation runs. Usage: as_cpp.py SOURCE OUTPUT

What is no C++ is replaced in its line: launches, variables in shared memory, addresses of kernels, and
instructions that are written as assembly. Everything else is left to the headers of tests/emulation.
"""
import pathlib
import re
import sys

NAME = r'[A-Za-z_]\w*'
KERNEL = rf'{NAME}(?:::{NAME})*(?:<[^<>;(){{}}]*>)?(?:\({NAME}\))?'
VARIABLE = rf'{NAME}(?:\[[^\]]*\])*'
OURS = '::larch::emulation::'
# Assembly -> the function that stands for it (device_memory.h, device_threads.h).
INSTRUCTIONS = {
    'bar.sync %0, %1;': 'barrier',
    'cp.async.ca.shared.global [%0], [%1], 4;': 'copy_word_later',
    'cp.async.ca.shared.global [%0], [%1], 16;': 'copy_four_words_later',
    'cp.async.wait_all;': 'wait_for_copies',
    'ld.shared.u32 %0, [%1];': 'load_shared',
    'red.shared.add.u32 [%0], 1;': 'count_shared',
    '{ .reg .u64 all; shr.u64 all, %1, %2; cvt.u32.u64 %0, all; }': 'shift_right',
}


def launch(match):
    # The kernel may be a template whose parameters follow from the arguments.
    kernel, shape = match.groups()
    return (f'{OURS}launcher("{kernel} of " __FILE__, [&](const auto&... larch_arguments) '
            f'{{ {kernel}(larch_arguments...); }}, {shape})(')


def shared_variables(match):
    kind, variables = match.groups()
    out = []
    for variable in variables.split(', '):
        name = re.match(NAME, variable)[0]
        out.append(f'static char {name}_key; using {name}_type = {kind}{variable[len(name):]}; '
                   f'auto& {name} = {OURS}shared<{name}_type>(&{name}_key);')
    return ' '.join(out)


def assembly(match):
    text, operands = match.groups()
    if text not in INSTRUCTIONS:
        return match[0]
    operands = re.findall(r'"(=?)\w+"\(((?:[^()]|\([^()]*\))*)\)', operands)
    results = ''.join(f'{value} = ' for kind, value in operands if kind)
    inputs = ', '.join(value for kind, value in operands if not kind)
    return f'{results}{OURS}{INSTRUCTIONS[text]}({inputs});' + '\n' * match[0].count('\n')


RULES = [
    (re.compile(rf'({KERNEL})\s*<<<(.*?)>>>\s*\(', re.S), launch),
    (re.compile(rf'reinterpret_cast<(?:const )?void\*>\(({KERNEL})\)'),
     lambda m: f'{OURS}kernel_address("{m[1]} of " __FILE__, {m[1]})'),
    (re.compile(rf'^extern __shared__ (?:__align__\(\d+\) )?({NAME}) ({NAME})\[\];$', re.M),
     lambda m: f'#define {m[2]} (static_cast<{m[1]}*>({OURS}dynamic_shared()))'),
    (re.compile(rf'extern __shared__ (?:__align__\(\d+\) )?({NAME}) ({NAME})\[\];'),
     lambda m: f'auto* const {m[2]} = static_cast<{m[1]}*>({OURS}dynamic_shared());'),
    (re.compile(rf'__shared__ (?:__align__\(\d+\) )?([^;\[\]=]*?[\w>]) ({VARIABLE}(?:, {VARIABLE})*);'), shared_variables),
    (re.compile(r'\basm(?: volatile)?\(\s*"([^"]+)"([^;]*)\);'), assembly),
]
# An empty instruction only keeps values in registers; any compiler knows it.
LEFT = re.compile(r'<<<|\b__shared__\b|\basm\b(?!(?: volatile)?\(""[ )])')


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
