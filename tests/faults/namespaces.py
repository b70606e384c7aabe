#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Lets four processes write into one folder, each number 1 of a process namespace of its own.

That is how tasks in containers share a folder. In every round each output has to be that of its own
case. In every second round one of the four is killed (SIGKILL) on its way and run again; after that
no temporary may be left. In every fifth round the four are batches into one output folder, whose
status table has to list all of their cases. In every other fifth round they are batches with the
same ids for different images: whoever is the last to write a case, all of its files are his.
"""
import json
import os
import shutil
import subprocess
import time

from faults import Step, age, content, different, left_over, run, share, temporaries, write_list

PROCESSES = 4
EQUAL_IDS = 12
ENDINGS = ['.nii.gz', '.probability.nii.gz', '.vtk']


def namespace():
    """The command that gives a process namespaces of its own, or None where that is not allowed."""
    for words in (['unshare', '--pid', '--fork', '--kill-child'],
                  ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child']):
        try:
            if run(words + ['true']).returncode == 0:
                return words
        except FileNotFoundError:
            return None
    return None


def command(step, case, folder, batch):
    start = [step.app('pbt-detect'), '--model', step.model, '--threads', '1', '--quiet', '--force']
    if batch:
        return start + ['--list', f'{step.work}/list-{case}.tsv', '--output-dir', folder]
    return start + ['--input', image(step, case), '--output', f'{folder}/{case}.nii.gz',
                    '--probability', f'{folder}/{case}.p.nii.gz', '--mesh', f'{folder}/{case}.vtk',
                    '--qc', f'{folder}/{case}.png']


def image(step, case):
    return f'{step.samples}/images/case_{case:03d}.nii.gz'


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


def start_all(commands):
    return [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for words in commands]


def products(folder, name):
    return {ending: content(f'{folder}/{name}{ending}') for ending in ENDINGS}


def equal_ids_round(step, number, unshare):
    folder, ids = step.folder(f'round-{number}'), range(EQUAL_IDS)
    commands = []
    for process in range(PROCESSES):
        images = [image(step, (case + process) % PROCESSES) for case in ids]
        cases = write_list(f'{step.work}/equal-{process}.tsv', 'image', images, ids)
        commands.append(unshare + equal_ids_command(step, cases, folder))
    for process, running in enumerate(start_all(commands)):
        text, _ = running.communicate(timeout=300)
        if running.returncode != 0:
            step.violation(f'round {number}, process {process}: exit code {running.returncode}: {text}')
    wanted = {image(step, case): products(f'{step.work}/reference-ids', case) for case in range(PROCESSES)}
    for case in ids:
        found, sources = products(folder, case), set()
        for ending in ENDINGS:
            with open(f'{folder}/{case}{ending}.json', encoding='utf-8') as file:
                named = json.load(file).get('Sources', [])
            sources.add(' '.join(name for name in named if name in wanted))
        if len(sources) != 1 or found != wanted.get(sources.pop()):
            step.violation(f'round {number}, case {case}: files or sidecars of different images')
    if temporaries(folder):
        step.violation(f'round {number}: left {temporaries(folder)}')
    step.count('rounds of equal ids')
    shutil.rmtree(folder)


def equal_ids_command(step, cases, folder):
    return [step.app('pbt-detect'), '--model', step.model, '--threads', '1', '--quiet', '--force', '--list', cases,
            '--output-dir', folder, '--write', 'labels,probability,mesh']


def seconds_of_first(step, unshare, batch):
    """How long the first of four takes that nobody disturbs: the moments of the kills lie within."""
    folder, start = step.folder('measured'), time.monotonic()
    running = start_all([unshare + command(step, case, folder, batch) for case in range(PROCESSES)])
    running[0].communicate(timeout=300)
    seconds = time.monotonic() - start
    for process in running:
        process.communicate(timeout=300)
    shutil.rmtree(folder)
    return seconds


def one_round(step, number, unshare, reference, seconds):
    folder = step.folder(f'round-{number}')
    batch, killed = number % 5 == 4, number % 2 == 1
    commands = [unshare + command(step, case, folder, batch) for case in range(PROCESSES)]
    running = start_all(commands)
    was_sent = killed and kill_at(running[0], share('namespace', number) * seconds[batch])
    if killed and not was_sent:
        seconds[batch] *= 0.8  # the machine is faster than it was
    for case, process in enumerate(running):
        text, _ = process.communicate(timeout=300)
        # With which code unshare tells of a killed child depends on its version.
        if process.returncode != 0 and not (was_sent and case == 0):
            step.violation(f'round {number}, process {case}: exit code {process.returncode}: {text}')
    if killed:
        step.count('rounds with a kill' if was_sent else 'rounds over before the kill')
        left = temporaries(folder)
        age(left)
        if left:
            step.count('kills that left temporaries')
        again = run(commands[0])
        if again.returncode != 0:
            step.violation(f'round {number}: the run after the kill ended with {again.returncode}: {again.stdout}')
    for what in different(folder, reference[batch], all_of_them=True):
        step.violation(f'round {number}: {what}')
    for name in left_over(folder, reference[batch]):
        step.violation(f'round {number}: {name} is left')
    if batch:
        with open(f'{folder}/status.tsv', encoding='utf-8') as file:
            rows = [line.split('\t')[:2] for line in file][1:]
        if sorted(rows) != [[str(case), 'ok'] for case in range(PROCESSES)]:
            step.violation(f'round {number}: status.tsv has the rows {rows}')
    step.count('rounds of batches' if batch else 'rounds of single runs')
    shutil.rmtree(folder)


def main():
    step = Step('namespaces', __doc__.splitlines()[0])
    unshare = namespace()
    if unshare is None:
        step.skip('process namespaces need a privilege that is missing here')
    reference = {batch: step.folder(f'reference-{batch}') for batch in (False, True)}
    for batch, folder in reference.items():
        for case in range(PROCESSES):
            write_list(f'{step.work}/list-{case}.tsv', 'image', [image(step, case)], [case])
            done = run(command(step, case, folder, batch))
            if done.returncode != 0:
                raise SystemExit(f'the undisturbed run failed:\n{done.stdout}')
    all_images = write_list(f'{step.work}/all.tsv', 'image', [image(step, case) for case in range(PROCESSES)],
                            range(PROCESSES))
    done = run(equal_ids_command(step, all_images, step.folder('reference-ids')))
    if done.returncode != 0:
        raise SystemExit(f'the undisturbed run over all images failed:\n{done.stdout}')
    seconds = {batch: seconds_of_first(step, unshare, batch) for batch in reference}
    rounds = 5 if step.quick else 50
    for number in range(rounds):
        if not step.in_time():
            step.violation(f'only {number} rounds in the time given')
            break
        if number % 5 == 2:
            equal_ids_round(step, number, unshare)
        else:
            one_round(step, number, unshare, reference, seconds)
    kills, missed = (step.outcomes[f'rounds {what}'] for what in ('with a kill', 'over before the kill'))
    if kills < missed and not step.quick:  # a few may all come too late on a busy machine
        step.violation(f'only {kills} of {kills + missed} kills hit a run')
    step.finish(rounds)


if __name__ == '__main__':
    main()
