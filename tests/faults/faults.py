# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""What the steps of scripts/faults share: arguments, chosen moments, comparing, and the row of the table."""
import argparse
import collections
import hashlib
import json
import os
import subprocess
import sys
import threading
import time

SKIPPED = 77
TWO_HOURS = 7200


class Step:
    """One step of scripts/faults: counts outcomes, collects violations, ends with one row.

    The row is the last line of stdout: name, number of runs and outcomes, parted by tabs.
    """

    def __init__(self, name, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument('--bin', required=True, help='folder of the executables')
        parser.add_argument('--work', required=True, help='empty folder for this step; beside it '
                            'lie samples/ of make-samples and the model m.pbt')
        parser.add_argument('--quick', action='store_true', help='a few runs instead of all')
        parser.add_argument('--seconds', type=float, default=600, help='start nothing new after this')
        args = parser.parse_args()
        self.name, self.quick, self.work = name, args.quick, os.path.abspath(args.work)
        self.bin = os.path.abspath(args.bin)
        self.samples = os.path.join(os.path.dirname(self.work), 'samples')
        self.model = os.path.join(os.path.dirname(self.work), 'm.pbt')
        self.deadline = time.monotonic() + args.seconds
        self.outcomes = collections.Counter()
        self.violations = 0
        self.lock = threading.Lock()
        os.makedirs(self.work, exist_ok=True)

    def app(self, name):
        return os.path.join(self.bin, name)

    def folder(self, *parts):
        path = os.path.join(self.work, *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def in_time(self):
        return time.monotonic() < self.deadline

    def count(self, outcome):
        with self.lock:
            self.outcomes[outcome] += 1

    def violation(self, text):
        with self.lock:
            self.violations += 1
            print(f'{self.name}: violation: {text}', file=sys.stderr, flush=True)

    def finish(self, runs):
        words = ', '.join(f'{count} {what}' for what, count in sorted(self.outcomes.items()))
        print(f'{self.name}\t{runs}\t{words}; {self.violations} violations', flush=True)
        sys.exit(1 if self.violations else 0)

    def skip(self, why):
        print(f'{self.name}\t0\tskipped: {why}', flush=True)
        sys.exit(SKIPPED)


def share(*words):
    """A number in [0, 1) that depends on the words alone."""
    digest = hashlib.sha256(' '.join(str(word) for word in words).encode()).digest()
    return int.from_bytes(digest[:6], 'big') / 2**48


def run(command, timeout=300, **options):
    """The finished process with its messages; a run that does not end is a CompletedProcess 'hang'."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors='replace', timeout=timeout, **options)
    except subprocess.TimeoutExpired as expired:
        return subprocess.CompletedProcess(command, 'hang', str(expired.stdout or ''))


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def temporaries(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder)
            for name in names if name.startswith('.larch-')]


def age(paths):
    """Makes them look two hours old: a younger temporary may be in use."""
    then = time.time() - TWO_HOURS
    for path in paths:
        os.utime(path, (then, then))


def is_record(name):
    """Files that hold times, so that their bytes differ from run to run."""
    return name.endswith('.json') or name == 'status.tsv'


def broken_record(path):
    """What is wrong with JSON or a status table, which are whole whenever they have their names, or ''."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    if path.endswith('.json'):
        try:
            json.loads(text)
            return ''
        except ValueError:
            return ' is not JSON'
    rows = [line.split('\t') for line in text.split('\n')]
    whole = rows.pop() == [''] and all(len(row) == len(rows[0]) for row in rows)
    return '' if whole else ' has a broken row'


def files_below(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def different(folder, reference, all_of_them):
    """Files of `folder` that differ from those of `reference`, are missing there, or are not whole."""
    there, found = files_below(folder), []
    for name in sorted(there):
        if is_record(name) and not name.startswith('.larch/'):
            problem = broken_record(os.path.join(folder, name))
            found += [name + problem] if problem else []
    for name in sorted(files_below(reference)):
        if name not in there:
            found += [name + ' is missing'] if all_of_them else []
        elif not is_record(name) and content(os.path.join(folder, name)) != content(os.path.join(reference, name)):
            found.append(name + ' differs')
    return found


def left_over(folder, reference):
    """Files of `folder` that an undisturbed run does not leave: checkpoints, parts, what was put aside."""
    return sorted(files_below(folder) - files_below(reference))


def write_list(path, column, images, ids):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'id\t{column}\n' + ''.join(f'{i}\t{image}\n' for i, image in zip(ids, images)))
    return path
