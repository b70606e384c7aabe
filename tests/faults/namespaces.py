#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Lets processes write into one folder, each number 1 of a process namespace of its own.

That is how tasks in containers share a folder. `single`: four runs over an image each. `halves`: two
runs over halves of a list. One of the runs is killed (SIGKILL) on its way and at once run again with
--skip-existing, beside the others: each output is that of its case, and status.tsv has all rows.
`equal`: four lists with the same ids for different images, at the same time: all files of a case are
of one image, as its record tells.
"""
import os
import shutil
import subprocess
import time

from faults import Step, age, content, different, record_of, rows_of, run, share, temporaries, write_list

PROCESSES, IDS = 4, 12
WRITE = ['--write', 'labels,probability,mesh']
ENDINGS = ['.nii.gz', '.probability.nii.gz', '.vtk']


def namespace():
    """The command that gives a process namespaces of its own, or None where that is not allowed."""
    for words in (['unshare', '--pid', '--fork', '--kill-child'],
                  ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child']):
        if run(words + ['true']).returncode == 0:
            return words
    return None


def image(step, case):
    return f'{step.samples}/images/case_{case % PROCESSES:03d}.nii.gz'


def commands(step, kind, folder):
    start = [step.app('pbt-detect'), '--model', step.model, '--threads', '1', '--quiet']
    if kind == 'single':
        return [start + ['--input', image(step, case), '--output', f'{folder}/{case}.nii.gz',
                         '--probability', f'{folder}/{case}.p.nii.gz', '--mesh', f'{folder}/{case}.vtk',
                         '--qc', f'{folder}/{case}.png'] for case in range(PROCESSES)]
    start += ['--output-dir', folder, *WRITE]
    if kind == 'halves':
        lists = [list_of(step, f'half-{half}', range(half, IDS, 2)) for half in range(2)]
    else:
        lists = [list_of(step, f'equal-{process}', range(IDS), process) for process in range(PROCESSES)]
        start.append('--force')
    return [start + ['--list', cases] for cases in lists]


def list_of(step, name, ids, shift=0):
    return write_list(f'{step.work}/{name}.tsv', 'image', [image(step, case + shift) for case in ids], ids)


def kill_at(process, moment):
    """Kills the only child of `process`, which is unshare, at that moment. Whether there was one."""
    time.sleep(moment)
    while process.poll() is None:
        try:
            with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
                children = file.read().split()
            for child in children:
                os.kill(int(child), 9)
        except (FileNotFoundError, ProcessLookupError):
            return False  # it is over already
        if children:
            return True
        time.sleep(0.001)  # unshare has not started it yet
    return False


def start_all(all_commands):
    return [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for words in all_commands]


def wait_for(step, name, running):
    for process in running:
        text, _ = process.communicate(timeout=300)
        if process.returncode != 0:
            step.violation(f'{name}: exit code {process.returncode}: {text}')


def equal_round(step, name, folder, reference):
    """Case i of the reference is of image i."""
    wanted = {image(step, case): [content(f'{reference}/{case}{ending}') for ending in ENDINGS]
              for case in range(PROCESSES)}
    # Their bytes are those of one of four images, so that nothing is compared but the records.
    for what in different(folder, folder, is_over=True) + temporaries(folder):
        step.violation(f'{name}: {what}')
    if rows_of(folder) != rows_of(reference):
        step.violation(f'{name}: status.tsv has the rows {rows_of(folder)}')
    for case in range(IDS):
        inputs = record_of(f'{folder}/{case}.larch.json')['Inputs']
        source = next(entry['Path'] for entry in inputs if entry['Role'] == 'input')
        if [content(f'{folder}/{case}{ending}') for ending in ENDINGS] != wanted[source]:
            step.violation(f'{name}: the files of case {case} are not those of {source}')


def one_round(step, kind, number, unshare, reference, seconds):
    """Kills the first run in every second round of those whose runs have cases of their own."""
    name = f'{kind} {number}'
    folder = step.folder(f'{kind}-{number}')
    all_commands = commands(step, kind, folder)
    running = start_all(unshare + words for words in all_commands)
    if kind == 'halves' or kind == 'single' and number % 2 == 1:
        hit = kill_at(running[0], share('namespace', name) * seconds[kind])
        step.count(f'{kind} {"killed" if hit else "over before the kill"}')
        if hit:
            running.pop(0).communicate()
            running += start_all([unshare + all_commands[0] + ['--skip-existing']])
        else:
            seconds[kind] *= 0.8  # the machine is faster than it was
    wait_for(step, name, running)
    if kind == 'equal':
        equal_round(step, name, folder, reference)
    else:
        for what in different(folder, reference, is_over=True):
            step.violation(f'{name}: {what}')
        age(temporaries(folder))
        wait_for(step, name, start_all([unshare + all_commands[0] + ['--force']]))
        for what in different(folder, reference, is_over=True) + temporaries(folder):
            step.violation(f'{name}, written again: {what}')
    step.count(f'{kind} rounds')
    shutil.rmtree(folder)


def main():
    step = Step('namespaces', __doc__.splitlines()[0])
    unshare = namespace()
    if unshare is None:
        step.skip('process namespaces need a privilege that is missing here')
    reference, seconds = {}, {}
    for kind in ('single', 'halves', 'equal'):
        reference[kind], start = step.folder(f'reference-{kind}'), time.monotonic()
        # What nobody disturbs; the first of equal lists is the reference, with image i for case i.
        all_commands = commands(step, kind, reference[kind])
        wait_for(step, f'undisturbed {kind}', start_all(all_commands[:1] if kind == 'equal' else all_commands))
        seconds[kind] = time.monotonic() - start
    rounds = {'single': 4, 'halves': 2, 'equal': 1} if step.quick else {'single': 20, 'halves': 20, 'equal': 10}
    done = 0
    for kind, count in rounds.items():
        for number in range(count):
            if not step.in_time():
                step.violation(f'only {number} rounds of {kind} in the time given')
                break
            one_round(step, kind, number, unshare, reference[kind], seconds)
            done += 1
        hit, missed = (step.outcomes[f'{kind} {what}'] for what in ('killed', 'over before the kill'))
        if hit < missed and not step.quick:  # a few may all come too late on a busy machine
            step.violation(f'only {hit} of {hit + missed} kills of {kind} hit a run')
    step.finish(done)


if __name__ == '__main__':
    main()
