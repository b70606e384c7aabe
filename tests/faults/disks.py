#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Fills the disk under trainings, detections and lists of them, and limits the size of their files.

A run that finds too little room ends with exit code 6, leaves the outputs of before and no temporary;
one that finds enough has the bytes of an undisturbed run. Of a list some cases may be done and others
have failed: what is there is whole. Small disks are tmpfs mounts, for which root is needed; without,
limits on file sizes (RLIMIT_FSIZE) are all that is tried.
"""
import os
import resource
import shutil
import subprocess

from faults import Step, content, different, run, temporaries, write_list

OLD = b'of before'
OUTPUTS = {'train': {'--output': 'm.pbt'},
           'detect': {'--output': 's.nii.gz', '--probability': 'p.nii.gz', '--mesh': 's.vtk',
                      '--qc': 's.png', '--candidates': 'c.tsv'},
           'list': {}}


def command(step, kind, folder):
    outputs = [word for flag, name in OUTPUTS[kind].items() for word in (flag, f'{folder}/{name}')]
    if kind == 'train':
        return [step.app('pbt-train'), '--list', f'{step.samples}/train.tsv', '--labels.positive', '1',
                '--labels.border_voxels', '0', '--features.count', '300', '--tree.depth', '2',
                '--tree.min_class_samples', '1', '--threads', '1', '--force', '--quiet', *outputs]
    if kind == 'list':
        outputs = ['--list', f'{step.work}/cases.tsv', '--output-dir', folder, '--write', 'labels,probability,mesh']
    else:
        outputs += ['--input', f'{step.samples}/images/case_000.nii.gz']
    return [step.app('pbt-detect'), '--model', step.model, '--threads', '2', '--force', '--quiet', *outputs]


def check(step, kind, folder, reference, done, what):
    """Old outputs or new ones, never a part of either."""
    code = done.returncode
    if code not in ((0, 6, 7) if kind == 'list' else (0, 6)):
        step.violation(f'{what}: exit code {code}: {done.stdout}')
    found = different(folder, reference, is_over=True) if code == 0 else []
    if code != 0 and kind == 'list':
        found = different(folder, reference, is_over=False)
    for name in OUTPUTS[kind].values():
        if code != 0 and (not os.path.exists(f'{folder}/{name}') or content(f'{folder}/{name}') != OLD):
            found.append(f'{name} is not that of before')
    for text in found + temporaries(folder):
        step.violation(f'{what}: {text} after exit code {code}')
    step.count(f'{" ".join(what.split()[:2])} exit {code}')


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
    images = [f'{step.samples}/images/case_{number:03}.nii.gz' for number in range(4)]
    write_list(f'{step.work}/cases.tsv', 'image', images, 'abcd')
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
            for codes in ((0,), (6, 7)):
                if not any(step.outcomes[f'{fault} {kind} exit {code}'] for code in codes):
                    step.violation(f'no {kind} ended with {codes[0]}: the sizes of {fault} say nothing')
    step.finish(runs)


if __name__ == '__main__':
    main()
