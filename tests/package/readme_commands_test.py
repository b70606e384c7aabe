#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The command lines of README.md, apps/running.md, apps/chain.md and apps/*.intro.md work as printed, one after the other in one
folder, which is empty at the start. A line of README.md that is no program is a script that explains itself.

usage: readme_commands_test.py SOURCE_DIR FOLDER-OF-EXECUTABLES    (or instead of SOURCE_DIR the installed pages)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAMS = ('make-samples', 'pbt-train', 'pbt-detect', 'hdn-detect', 'boundary-refine', 'evaluate', 'dsa-register',
            'levelset-segment')
SETTING = 'export PATH=$PWD/build/quickstart/apps:$PATH'  # the test sets it to the other folder


def indented_lines(page):
    return re.findall(r'^    (\S.*)$', re.sub(r'\\\n +', '', page.read_text(encoding='utf-8')), re.M)


def command_lines(source):
    """The lines to run; README has no others but those of scripts and the setting."""
    readme = [line for line in indented_lines(source / 'README.md') if line != SETTING]
    if SETTING not in indented_lines(source / 'README.md'):
        sys.exit(f'README.md has no line {SETTING}')
    odd = [line for line in readme if not re.match('(' + '|'.join(PROGRAMS) + '|scripts/|cut )', line)]
    if odd:
        sys.exit(f'README.md has indented lines that are no command of Larch: {odd}')
    scripts = [line for line in readme if line.startswith('scripts/')]
    lines = [line for line in readme if line not in scripts]
    if (source / 'scripts').is_dir():
        lines = [f'{source}/{line} --help' for line in scripts] + lines
    apps = source / 'apps'
    for page in [apps / 'running.md', apps / 'chain.md', *sorted(list(apps.glob('*.intro.md')) or apps.glob('*.md'))]:
        lines += [line for line in indented_lines(page) if line.startswith((*PROGRAMS, 'printf', 'cut '))]
    # A page that repeats a line has --force in it, since the output is there.
    once = {}
    for line in lines:
        once.setdefault(line.replace(' --force', ''), line)
    return list(once.values())


def main():
    source, apps = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    environment = {name: value for name, value in os.environ.items() if not name.startswith('LARCH_')}
    environment['PATH'] = str(apps) + os.pathsep + environment['PATH']
    lines = command_lines(source)
    unused = set(PROGRAMS) - {line.split()[0] for line in lines}
    if unused:
        sys.exit(f'no page has a command line of {sorted(unused)}')
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(source / 'configs', os.path.join(folder, 'configs'))
        for line in lines:
            print(line, flush=True)
            done = subprocess.run(['bash', '-c', line], cwd=folder, env=environment, timeout=600, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                sys.exit(f'exit code {done.returncode}:\n{done.stdout}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
