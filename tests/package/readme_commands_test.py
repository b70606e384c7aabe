#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The command lines of README.md, "The programs", work as printed, one after the other in an empty folder.

usage: readme_commands_test.py SOURCE_DIR FOLDER-OF-EXECUTABLES
"""
import os
import re
import subprocess
import sys
import tempfile

PROGRAMS = ('make-samples', 'pbt-train', 'pbt-detect', 'evaluate', 'dsa-register',
            'levelset-segment')


def command_lines(source):
    with open(os.path.join(source, 'README.md'), encoding='utf-8') as file:
        section = file.read().split('\n## The programs', 1)[1].split('\n## ', 1)[0]
    lines = re.findall(r'^    (.*)$', re.sub(r'\\\n +', '', section), re.M)
    return [line for line in lines if line.startswith(PROGRAMS)]


def main():
    source, apps = (os.path.abspath(word) for word in sys.argv[1:3])
    environment = {name: value for name, value in os.environ.items() if not name.startswith('LARCH_')}
    environment['PATH'] = apps + os.pathsep + environment['PATH']
    lines = command_lines(source)
    used = {line.split()[0] for line in lines}
    if used != set(PROGRAMS):
        sys.exit(f'README.md has no command line of {sorted(set(PROGRAMS) - used)}')
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(source, 'configs'), os.path.join(folder, 'configs'))
        for line in lines:
            print(line, flush=True)
            done = subprocess.run(['bash', '-c', line], cwd=folder, env=environment, timeout=600, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                sys.exit(f'exit code {done.returncode}:\n{done.stdout}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
