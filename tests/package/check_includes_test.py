#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/check-includes must find each kind of violation. Usage: check_includes_test.py SCRIPT"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

CLEAN = {
    'lib/larch/core/vec.h': '#include <cstdint>\n',
    'lib/larch/core/dispatch.h': '#if LARCH_WITH_CUDA\n#endif\n',
    'lib/larch/config/fields.h': '#include <string>\n',
    'lib/larch/config/config.h': '#include <nlohmann/json_fwd.hpp>\n#include "larch/config/fields.h"\n',
    'lib/larch/io/image/image.h': '#include "larch/core/vec.h"\n',
    'lib/larch/io/itk/local.h': '#include <itkImage.h>\n',
    'lib/larch/io/bytes/bytes.h': '#include "larch/core/vec.h"\n',
    'lib/larch/io/formats/formats.h': '#include "larch/io/bytes/bytes.h"\n',
    'lib/larch/io/image/image.cpp': '#include "larch/io/image/image.h"\n',
    'lib/larch/io/itk/local.cpp': '#include "larch/io/itk/local.h"\n',
    'lib/larch/mesh/smooth.h': '#include "larch/config/fields.h"\n#include "larch/core/vec.h"\n',
    'lib/larch/pbt/model.h': '#include "larch/image/channel.h"\n',
    'lib/larch/image/channel.h': '#include "larch/core/vec.h"\n',
    'lib/larch/models/file.h': '#include "larch/config/config.h"\n#include "larch/pbt/model.h"\n',
    'cuda/core/check.cuh': '#include <cuda_runtime.h>\n',
    'cuda/pbt/boost.cu': '#include "cuda/core/check.cuh"\n#include "larch/pbt/model.h"\n',
    'apps/tool.cpp': '#include "larch/io/image/image.h"\n',
    'tests/unit/a_test.cpp': '#include "larch/io/itk/local.h"\n',
}
# File, what it holds instead, words of the message, line that is named.
VIOLATIONS = [
    ('lib/larch/core/vec.h', '#include "larch/mesh/smooth.h"\n', 'may not include lib/larch/mesh', 1),
    ('lib/larch/mesh/smooth.h', '#include "larch/core/vec.h"\n#include "larch/io/image/image.h"\n',
     'may not include lib/larch/io', 2),
    ('lib/larch/mesh/smooth.h', '#include "larch/config/config.h"\n', 'may not include lib/larch/config', 1),
    ('lib/larch/mesh/smooth.h', '#include "larch/pbt/model.h"\n', 'may not include lib/larch/pbt', 1),
    ('lib/larch/pbt/model.h', '#include "larch/mesh/smooth.h"\n', 'may not include lib/larch/mesh', 1),
    ('lib/larch/io/image/image.h', '#include "larch/config/config.h"\n', 'may not include lib/larch/config', 1),
    ('lib/larch/pbt/model.h', '#include <itkImage.h>\n', 'ITK may be included', 1),
    ('lib/larch/pbt/model.h', '#include <nlohmann/json.hpp>\n', 'JSON may be included', 1),
    ('lib/larch/pbt/model.h', '// nothing\n#include <spdlog/spdlog.h>\n', 'spdlog may be included', 2),
    ('lib/larch/pbt/model.h', '#include <pybind11/numpy.h>\n', 'Python may be included', 1),
    ('lib/larch/python/module.cpp', '#include "larch/core/vec.h"\n#include "larch/pbt/model.h"\n', 'may not include lib/larch/pbt', 2),
    ('lib/larch/core/vec.h', '#include <cuda_runtime.h>\n', 'CUDA may be included', 1),
    ('lib/larch/core/vec.h', '#ifdef LARCH_WITH_CUDA\n#endif\n', 'may test LARCH_WITH_CUDA', 1),
    ('apps/tool.cpp', '#include "larch/io/itk/local.h"\n', 'brings in ITK', 1),
    ('apps/tool.cpp', '#include "larch/pbt/model.h"\n', 'may not include lib/larch/pbt', 1),
    ('apps/tool.cpp', '#include "cuda/core/check.cuh"\n', 'only cuda/ includes cuda/', 1),
    ('cuda/pbt/boost.cu', '#include "larch/config/config.h"\n', 'may not include lib/larch/config', 1),
    ('lib/larch/pbt/model.h', '#include "tests/unit/a_test.cpp"\n', 'nothing includes tests', 1),
    ('lib/larch/pbt/model.h', '#include "apps/tool.cpp"\n', 'nothing includes apps', 1),
    ('lib/larch/pbt/model.h', '#include "larch/pbt/absent.h"\n', 'does not exist', 1),
    ('lib/larch/io/image/image.cpp', '#include "image.h"\n', 'write "larch/', 1),
    ('lib/larch/io/bytes/bytes.h', '#include "larch/io/image/image.h"\n', 'io/bytes may not include io/image', 1),
    ('lib/larch/io/image/image.cpp', '#include "larch/io/formats/formats.h"\n', 'through lib/larch/io/itk/door.h alone', 1),
    ('lib/larch/io/image/image.h', '#include <itkImage.h>\n', 'ITK may be included', 1),
    ('lib/larch/newmodule/a.h', '#include "larch/core/vec.h"\n', 'is not in the table', 1),
]


def run(script, files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), 'w', encoding='utf-8') as file:
                file.write(text)
        done = subprocess.run([script, folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def rooms_without_a_row(script):
    """Rooms of the script that the table of lib/README.md lacks, or the other way round."""
    done = subprocess.run([script, '--rooms'], capture_output=True, text=True, check=True)
    with open(os.path.join(os.path.dirname(script), '..', 'lib/README.md'), encoding='utf-8') as file:
        shown = set(re.findall(r'^\| `(\w+)` \|', file.read(), re.M))
    return [f'lib/README.md and the script differ about the room {room}'
            for room in sorted(shown ^ set(re.findall(r'^(\w+):', done.stdout, re.M)))]


def missing_headers(script):
    """Headers that lib/README.md includes in its examples and that are not there."""
    lib = os.path.join(os.path.dirname(script), '..', 'lib')
    with open(os.path.join(lib, 'README.md'), encoding='utf-8') as file:
        names = re.findall(r'#include [<"](larch/[^>"`]+)[>"]', file.read())
    if not names:
        return ['lib/README.md has no example that includes a header']
    return [f'lib/README.md includes {name}, which does not exist' for name in names
            if not os.path.exists(os.path.join(lib, name))]


def main():
    script, failures = sys.argv[1], 0
    for difference in rooms_without_a_row(script) + missing_headers(script):
        print(difference)
        failures += 1
    code, output = run(script, CLEAN)
    if code != 0:
        print(f'the clean tree was refused (exit code {code}):\n{output}')
        failures += 1
    for path, text, words, line in VIOLATIONS:
        code, output = run(script, {**CLEAN, path: text})
        hit = any(words in row and row.startswith(f'{path}:{line}: ') for row in output.splitlines())
        if code != 1 or not hit:
            print(f'{path} with {text!r}: wanted exit code 1 and "{path}:{line}: ... {words}", '
                  f'got {code}:\n{output}')
            failures += 1
    print(f'{len(VIOLATIONS) + 1} cases, {failures} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
