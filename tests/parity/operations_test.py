#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Every operation that is dispatched to a device has a parity case: one that has its name as a tag.

usage: operations_test.py SOURCE_DIR

An operation is an object `Dispatch<...> kName{"room::operation", ...}` in lib/. A case that compares its
results on both devices is TEST_CASE("...", "[room::operation]") in tests/parity; it may have several tags.
"""
import pathlib
import re
import sys

OBJECT = re.compile(r'\bDispatch<[^;{}"]*>\s*\w+\s*\{\s*"([^"]+)"')
ANY_OBJECT = re.compile(r'^\s*(?:static |inline |const |constexpr |constinit )+Dispatch<', re.M)
CASE = re.compile(r'TEMPLATE_TEST_CASE\w*\(|TEST_CASE\(')
TAGGED = re.compile(r'TEST_CASE\w*\(\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+)')


def operations(files):
    """Name of an operation -> the file that has it. Fails on an object whose name cannot be read."""
    found = {}
    for path, text in files.items():
        names = OBJECT.findall(text)
        if len(names) != len(ANY_OBJECT.findall(text)):
            sys.exit(f'{path}: a Dispatch object without a name in quotes as its first member')
        found.update({name: path for name in names})
    return found


def tags(files):
    """Tag -> the files that have cases with it."""
    found = {}
    for path, text in files.items():
        for _, tagged in TAGGED.findall(text):
            for tag in re.findall(r'\[([^\]]+)\]', tagged):
                found.setdefault(tag, set()).add(path)
    return found


def problems(library, tests):
    known, named = operations(library), tags(tests)
    found = [f"{path}: operation '{name}' has no parity case: write one in tests/parity and tag it [{name}]"
             for name, path in sorted(known.items()) if name not in named]
    found += [f"{', '.join(sorted(paths))}: [{tag}] is no operation that is dispatched"
              for tag, paths in sorted(named.items()) if '::' in tag and tag not in known]
    return found


def self_test():
    library = {'a.cpp': 'constexpr Dispatch<void(const Job&)> kOne{\n    "a::one", cpu::one, LARCH_CUDA_FN(cuda::one)};\n'
                        'constexpr Dispatch<std::vector<std::vector<T>>(const U&, int)> kTwo{"a::two",\n cpu::two};'}
    tests = {'t.cpp': 'TEST_CASE("one, with (brackets)", "[a::one][slow]") {}\nTEST_CASE("none") {}\n'
                      'TEST_CASE("a name "\n    "of two lines",\n    "[a::gone]") {}'}
    found = problems(library, tests)
    assert len(found) == 2 and "'a::two' has no parity case" in found[0] and '[a::gone]' in found[1], found
    tests['u.cpp'] = 'TEST_CASE("x", "[a::two]") {}'
    tests['t.cpp'] = tests['t.cpp'].replace('gone', 'one')
    assert problems(library, tests) == []


def read(folder):
    return {str(path): path.read_text(encoding='utf-8') for path in sorted(folder.rglob('*'))
            if path.suffix in ('.cpp', '.h') and path.name != 'dispatch.h'}


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    library, tests = read(root / 'lib'), read(root / 'tests' / 'parity')
    found = problems(library, tests)
    print('\n'.join(found) or f'{len(operations(library))} operations have parity cases')
    return 1 if found or not operations(library) else 0


if __name__ == '__main__':
    sys.exit(main())
