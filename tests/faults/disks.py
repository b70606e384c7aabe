#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the disk under trainings and detections, and limits the size of their files.

A run that finds too little room ends with exit code 6, leaves the outputs of before and no
temporary; one that finds enough has the bytes of an undisturbed run. Small disks are tmpfs mounts,
for which root is needed; without, limits on file sizes (RLIMIT_FSIZE) are all that is tried.
"""
import os
import resource
import shutil
import subprocess

from faults import Step, content, run, temporaries

OLD = b'of before'
OUTPUTS = {'train': {'--output': 'm.pbt'},
           'detect': {'--output': 's.nii.gz', '--probability': 'p.nii.gz', '--mesh': 's.vtk',
                      '--qc': 's.png', '--candidates': 'c.tsv'}}


def command(step, kind, folder):
    outputs = [word for flag, name in OUTPUTS[kind].items() for word in (flag, f'{folder}/{name}')]
    if kind == 'train':
        return [step.app('pbt-train'), '--list', f'{step.samples}/train.tsv', '--labels.positive', '1',
                '--labels.border_voxels', '0', '--features.count', '300', '--tree.depth', '2',
                '--tree.min_class_samples', '1', '--threads', '1', '--force', '--quiet', *outputs]
    return [step.app('pbt-detect'), '--model', step.model, '--threads', '1', '--force', '--quiet',
            '--input', f'{step.samples}/images/case_000.nii.gz', *outputs]


def check(step, kind, folder, reference, done, what):
    """Old outputs or new ones, never a part of either."""
    if done.returncode not in (0, 6):
        step.violation(f'{what}: exit code {done.returncode}: {done.stdout}')
    for name in OUTPUTS[kind].values():
        wanted = content(f'{reference}/{name}') if done.returncode == 0 else OLD
        if not os.path.exists(f'{folder}/{name}') or content(f'{folder}/{name}') != wanted:
            step.violation(f'{what}: {name} is not as it should be after exit code {done.returncode}')
    if temporaries(folder):
        step.violation(f'{what}: left {temporaries(folder)}')
    step.count(f'{" ".join(what.split()[:2])} exit {done.returncode}')


def with_old_outputs(kind, folder):
    for name in OUTPUTS[kind].values():
        with open(f'{folder}/{name}', 'wb') as file:
            file.write(OLD)


def small_disk(step, kind, number, reference, kib):
    folder = step.folder('disk')
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={kib}k', 'larch-faults', folder], check=True)
    try:
        with_old_outputs(kind, folder)
        check(step, kind, folder, reference, run(command(step, kind, folder)),
              f'disk {kind} {number} of {kib} KiB')
    finally:
        subprocess.run(['umount', folder], check=True)


def small_files(step, kind, number, reference, kib):
    folder = step.folder(f'files-{number}')
    with_old_outputs(kind, folder)
    limit = kib * 1024
    done = run(command(step, kind, folder),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    check(step, kind, folder, reference, done, f'file-size {kind} {number} of {kib} KiB')
    shutil.rmtree(folder)


def can_mount(step):
    folder = step.folder('disk')
    tried = run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'larch-faults', folder])
    return tried.returncode == 0 and run(['umount', folder]).returncode == 0


def main():
    step = Step('disks', __doc__.splitlines()[0])
    mounts = can_mount(step)
    if not mounts:
        step.count('small disks skipped: mounting needs root')
    each, runs = 3 if step.quick else 40, 0
    for kind in OUTPUTS:
        reference = step.folder('reference-' + kind)
        done = run(command(step, kind, reference))
        if done.returncode != 0:
            raise SystemExit(f'the undisturbed {kind} failed:\n{done.stdout}')
        sizes = [os.path.getsize(f'{reference}/{name}') // 1024 + 1 for name in os.listdir(reference)]
        for number in range(each):  # from no room at all to enough
            if not step.in_time():
                step.violation(f'only {runs} runs in the time given')
                break
            part = number / (each - 1)
            if mounts:  # the old outputs take a page each
                small_disk(step, kind, number, reference, 4 * len(sizes) + int(part * 2.5 * sum(sizes)))
                runs += 1
            small_files(step, kind, number, reference, int(part * 1.2 * max(sizes)))
            runs += 1
        for fault in (['disk'] if mounts else []) + ['file-size']:
            for code in (0, 6):
                if step.outcomes[f'{fault} {kind} exit {code}'] == 0:
                    step.violation(f'no {kind} ended with {code}: the sizes of {fault} say nothing')
    step.finish(runs)


if __name__ == '__main__':
    main()
