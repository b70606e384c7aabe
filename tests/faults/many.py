#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes 10 000 tiny cases into one folder by four runs at the same time.

status.tsv has all rows in their order, and costs at most a twentieth of the time: a run that finds
its one case done reads all records and writes the table, and does nothing else that takes time.
"""
import os
import subprocess
import time

from faults import Step, rows_of, temporaries, write_list, write_volume

RUNS, MOST_SHARE = 4, 0.05


def main():
    step = Step('many', __doc__.splitlines()[0])
    app = os.path.join(step.bin, '../tests/cli/smooth-app')
    if not os.path.exists(app):
        step.skip('smooth-app belongs to the tests, which are not built beside the programs')
    image, folder, count = f'{step.work}/tiny.nii.gz', step.folder('out'), 400 if step.quick else 10000
    write_volume(image, 4, 1)

    def run_over(name, ids):
        cases = write_list(f'{step.work}/{name}.tsv', 'image', [image] * len(ids), ids)
        return subprocess.Popen([app, '--list', cases, '--output-dir', folder, '--threads', '2', '--quiet',
                                 '--skip-existing'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def seconds_of(running):
        start = time.monotonic()
        for process in running:
            text, _ = process.communicate()
            if process.returncode != 0:
                step.violation(f'exit code {process.returncode}: {text[-500:]}')
        return time.monotonic() - start

    ids = [f'c{number}' for number in range(count)]
    of_all = seconds_of([run_over(f'part-{part}', ids[part::RUNS]) for part in range(RUNS)])
    if rows_of(folder) != [(name, 'ok') for name in ids]:
        step.violation(f'status.tsv has {len(rows_of(folder))} rows, or not those of the {count} cases')
    if temporaries(folder):
        step.violation(f'left {temporaries(folder)}')
    of_table = min(seconds_of([run_over('again', ids[:1])]) for _ in range(3))
    step.count(f'cases in {of_all:.0f} s, and the table in {of_table:.2f} s')
    if not step.quick and of_table > MOST_SHARE * of_all:
        step.violation(f'status.tsv takes {of_table:.1f} s of {of_all:.1f} s')
    step.finish(count)


if __name__ == '__main__':
    main()
