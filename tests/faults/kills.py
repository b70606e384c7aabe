#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Kills trainings and batches at any moment of their life, and looks at what they leave.

Half of the kills are SIGTERM and half SIGKILL; half hit pbt-train, half pbt-detect --list. A file
under its final name is whole, and a record that does not say "writing" tells the files that are
there. After --resume or --skip-existing every result has the bytes of an undisturbed run, status.tsv
its rows, and no temporary is left. Before the second run leftovers are made two hours old.
"""
import glob
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from faults import Step, age, different, record_of, run, share, temporaries, write_list

TRAINING = ['--labels.positive', '1', '--labels.border_voxels', '0', '--features.count', '1500',
            '--tree.depth', '3', '--tree.min_class_samples', '1', '--threads', '1', '--quiet']
RENAMES = 'rename,renameat,renameat2'
PRODUCTS = 'labels,probability,mesh,qc,candidates'


def train_command(step, folder):
    return [step.app('pbt-train'), '--list', f'{step.samples}/train.tsv', '--output', f'{folder}/m.pbt',
            *TRAINING]


def batch_command(step, folder):
    return [step.app('pbt-detect'), '--model', step.model, '--list', f'{step.work}/cases.tsv',
            '--output-dir', folder, '--write', PRODUCTS, '--threads', '2', '--quiet']


class Work:
    """One kind of run: its command, how it goes on, and the results and seconds of a whole one."""

    def __init__(self, step, name, command, go_on):
        self.step, self.name, self.command, self.go_on = step, name, command, go_on
        self.reference = step.folder('reference', name)
        start = time.monotonic()
        done = run(command(step, self.reference))
        self.seconds = time.monotonic() - start
        if done.returncode != 0:
            raise SystemExit(f'the undisturbed {name} failed:\n{done.stdout}')

    def kill_once(self, number, signal_number, attempt):
        """Whether the signal was met by a run at work; what it left is checked in any case."""
        step, folder = self.step, self.step.folder(self.name, f'{number}')
        # Somewhere in an undisturbed run; sooner and sooner where that comes after the work.
        moment = share(self.name, number, attempt) * self.seconds * 0.8**attempt
        process = subprocess.Popen(self.command(step, folder), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        time.sleep(moment)
        process.send_signal(signal_number)
        try:
            process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            step.violation(f'{self.name} {number}: deaf to {signal_number.name}')
        code = process.returncode
        # -15: the signal came before the program had its handler; that is no hit.
        allowed = (-9, 0) if signal_number == signal.SIGKILL else (143, -15, 0)
        if code not in allowed:
            step.violation(f'{self.name} {number}: exit code {code} after {signal_number.name}')
        self.check_what_is_left(number, folder, code)
        self.go_on_and_compare(number, folder)
        shutil.rmtree(folder)
        return code not in (0, -signal.SIGTERM)

    def check_what_is_left(self, number, folder, code):
        for what in different(folder, self.reference, is_over=code == 0):
            self.step.violation(f'{self.name} {number}: {what} after the kill')
        left = temporaries(folder)
        if left and code in (143, -signal.SIGTERM):
            self.step.violation(f'{self.name} {number}: SIGTERM left {left}')
        if left:
            self.step.count('left temporaries')
        if any(record_of(path)['Status'] == 'writing' for path in glob.glob(f'{folder}/*.json')):
            self.step.count('left a record that says "writing"')
        age(left)

    def go_on_and_compare(self, number, folder):
        done = run(self.command(self.step, folder) + self.go_on)
        if done.returncode != 0:
            self.step.violation(f'{self.name} {number}: going on ended with {done.returncode}: {done.stdout}')
        for what in different(folder, self.reference, is_over=True) + temporaries(folder):
            self.step.violation(f'{self.name} {number}: {what} after going on')

    def kill_at_names(self):
        """SIGKILL when a file gets its name, at each name in turn: the moments that chance seldom hits."""
        for number in range(1, 1000):
            folder = self.step.folder(self.name, f'name-{number}')
            done = run(['strace', '-f', '-qq', '-o', '/dev/null', '-e', f'trace={RENAMES}', '-e',
                        f'inject={RENAMES}:signal=KILL:when={number}', *self.command(self.step, folder)])
            self.check_what_is_left(f'name {number}', folder, done.returncode)
            self.go_on_and_compare(f'name {number}', folder)
            shutil.rmtree(folder)
            if done.returncode == 0 or not self.step.in_time():
                break
            self.step.count(f'{self.name} killed at a name')
        if number == 1:
            self.step.violation(f'{self.name}: strace killed nothing')

    def kill(self, number):
        """One kill that hits, at moments that are tried one after the other."""
        if not self.step.in_time():
            return
        signal_number = signal.SIGTERM if number % 2 == 0 else signal.SIGKILL
        for attempt in range(20):
            if self.kill_once(number, signal_number, attempt):
                self.step.count(f'{self.name} killed by {signal_number.name}')
                return
            self.step.count('kills before or after the work, tried again')
        self.step.violation(f'{self.name} {number}: no kill hit')


def main():
    step = Step('kills', __doc__.splitlines()[0])
    images = [f'{step.samples}/images/{name}' for name in sorted(os.listdir(f'{step.samples}/images'))] * 2
    write_list(f'{step.work}/cases.tsv', 'image', images, range(len(images)))
    works = [Work(step, 'train', train_command, ['--resume', '--force']),
             Work(step, 'batch', batch_command, ['--skip-existing'])]
    each = 2 if step.quick else 50
    with ThreadPoolExecutor(max(2, min(8, len(os.sched_getaffinity(0)) // 4))) as pool:
        list(pool.map(lambda job: job[0].kill(job[1]), [(work, i) for i in range(each) for work in works]))
    if run(['strace', '-qq', '-o', '/dev/null', 'true']).returncode == 0:
        for work in works:
            work.kill_at_names()
    else:
        step.count('kills at names skipped: strace is missing, or not allowed')
    hits = sum(count for what, count in step.outcomes.items() if ' killed by ' in what)
    if hits < len(works) * each and not step.violations:
        step.violation(f'only {hits} of {len(works) * each} kills in the time given')
    step.finish(hits)


if __name__ == '__main__':
    main()
