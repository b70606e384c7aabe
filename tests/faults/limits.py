#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Takes memory and threads away from the programs, in steps.

Address space (ulimit -v) goes from the least with which --version runs up to what a run needs, and
the number of processes (ulimit -u) from 1 up; root is not limited in that, so those runs belong to
another user. The training of a forest gets the memory of a control group. Each run ends with exit code 0 and the bytes of an undisturbed run, or with exit code 5
and a message that has numbers; it leaves no temporary.
"""
import os
import resource
import shutil

from faults import Step, different, run, temporaries, write_list

KIB = 1024
THREADS = 4
MOST = 64 << 20  # KiB; more than any of these runs needs
NOBODY = 65534


def commands(step, folder):
    """What is run, by name; outputs go to `folder`."""
    image, label = f'{step.samples}/images/case_000.nii.gz', f'{step.samples}/labels/case_000.nii.gz'
    common = ['--threads', str(THREADS), '--force', '--quiet']
    return {
        'detect': [step.app('pbt-detect'), '--model', step.model, '--input', image, *common,
                   '--output', f'{folder}/s.nii.gz', '--probability', f'{folder}/p.nii.gz', '--mesh',
                   f'{folder}/s.vtk', '--qc', f'{folder}/s.png', '--candidates', f'{folder}/c.tsv'],
        'list': [step.app('pbt-detect'), '--model', step.model, '--list', f'{step.work}/list.tsv',
                 '--output-dir', folder, '--write', 'labels,mesh', *common],
        'train': [step.app('pbt-train'), '--list', f'{step.samples}/train.tsv', '--output',
                  f'{folder}/m.pbt', '--labels.positive', '1', '--labels.border_voxels', '0',
                  '--features.count', '100', '--tree.depth', '2', '--tree.min_class_samples', '1',
                  *common],
        'evaluate': [step.app('evaluate'), '--prediction', label, '--reference', label, '--table',
                     f'{folder}/scores.tsv', *common],
        'samples': [step.app('make-samples'), '--output-dir', folder, '--training', '2', '--test',
                    '0', '--size', '24,24,16', '--spacing_mm', '5,5,7', *common],
    }


def limited(command, address_kib=None, processes=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if address_kib is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_kib * KIB, address_kib * KIB))
        if processes is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    # The driver of an accelerator needs more address space for its own start than these runs.
    return run(command, preexec_fn=limit, env={**os.environ, 'LARCH_DEVICE': 'cpu'})


def least(low, high, works):
    """The least number above `low` for which `works`, to 1 %."""
    while high - low > max(high // 100, 64):
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return high


def check(step, what, done, folder, reference):
    step.count(f'{" ".join(what.split()[:2])} exit {done.returncode}')
    if done.returncode == 0:
        for name in different(folder, reference, is_over=True):
            step.violation(f'{what}: {name}')
    elif done.returncode != 5:
        step.violation(f'{what}: exit code {done.returncode}: {done.stdout[-500:]}')
    elif not any(character.isdigit() for character in done.stdout):
        step.violation(f'{what}: no numbers in the message: {done.stdout}')
    if temporaries(folder):
        step.violation(f'{what}: left {temporaries(folder)}')


def trial(step, name, reference, what, **limits):
    """One run under limits in an empty folder that everybody may write to."""
    folder = step.folder('out')
    os.chmod(folder, 0o777)
    try:
        check(step, what, limited(commands(step, folder)[name], **limits), folder, reference)
    finally:
        shutil.rmtree(folder)


def steps_of_memory(step, name, reference, count):
    folder = step.folder('probe')
    command = commands(step, folder)[name]
    low = least(KIB, MOST, lambda kib: limited([command[0], '--version'], kib).returncode == 0)
    high = least(low, MOST, lambda kib: limited(command, kib).returncode == 0)
    shutil.rmtree(folder)
    done = 0
    for number in range(count):
        if not step.in_time():
            break
        kib = low + (high - low) * (number + 1) // count
        trial(step, name, reference, f'{name} -v {kib}', address_kib=kib)
        done += 1
    return done


def steps_of_threads(step, name, reference, count):
    done = 0
    for processes in range(1, count + 1):
        if not step.in_time():
            break
        trial(step, name, reference, f'{name} -u {processes}', processes=processes)
        done += 1
    return done


def steps_of_groups(step):
    """A forest in a group of the control groups that has too little memory: the kernel ends nothing."""
    root, limit = '/sys/fs/cgroup/memory', 'memory.limit_in_bytes'
    if not os.path.exists(f'{root}/{limit}'):
        root, limit = '/sys/fs/cgroup', 'memory.max'
    group = f'{root}/larch-{os.getpid()}'
    try:
        os.mkdir(group)
        with open(f'{group}/{limit}', 'w') as file:
            file.write('max' if limit == 'memory.max' else '-1')
    except OSError as error:
        shutil.rmtree(group, ignore_errors=True)
        return step.count(f'control groups skipped: {error}')
    command = [step.app('pbt-train'), '--list', f'{step.work}/scenes/train.tsv', '--force', '--output',
               f'{step.work}/m.forest', '--forest.trees', '2', '--threads', str(THREADS), '--config',
               os.path.join(os.path.dirname(__file__), '../../configs/pbt-train.decision-forest.json')]
    run([step.app('make-samples'), '--output-dir', f'{step.work}/scenes', '--kind', 'scenes'])

    def join():
        with open(f'{group}/cgroup.procs', 'w') as procs:
            procs.write(str(os.getpid()))
    try:
        for mib in (24, 32, 48, 80):
            with open(f'{group}/{limit}', 'w') as file:
                file.write(str(mib << 20))
            done = run(command, preexec_fn=join)
            step.count(f'group exit {done.returncode}')
            if done.returncode not in (0, 5):
                step.violation(f'group of {mib} MiB: exit code {done.returncode}: {done.stdout[-500:]}')
    finally:
        os.rmdir(group)
    if step.outcomes['group exit 5'] == 0:
        step.violation('no forest ended with 5: the groups say nothing')


def main():
    step = Step('limits', __doc__)
    # Another user has to come as far as the samples.
    for folder in (os.path.dirname(step.work), step.work):
        os.chmod(folder, os.stat(folder).st_mode | 0o055)
    images = [f'{step.samples}/images/case_{number:03}.nii.gz' for number in range(3)]
    write_list(f'{step.work}/list.tsv', 'image', images, 'abc')
    for_memory, for_threads = (2, 1) if step.quick else (48, 12)
    is_root = os.geteuid() == 0
    done, wanted = 0, 0
    for name in commands(step, ''):
        wanted += for_memory + (for_threads if is_root else 0)
        if not is_root:
            step.count('commands whose limits of processes were skipped, since they need root')
        reference = step.folder('reference', name)
        plain = limited(commands(step, reference)[name])
        if plain.returncode != 0:
            step.violation(f'{name} without a limit: exit code {plain.returncode}: {plain.stdout}')
            continue
        done += steps_of_memory(step, name, reference, for_memory)
        if is_root:
            done += steps_of_threads(step, name, reference, for_threads)
        for limit in ['-v', '-u'] if is_root else ['-v']:
            # With one process evaluate and make-samples may still manage.
            must_end = limit == '-v' or not step.quick and name in ('detect', 'list', 'train')
            if must_end and step.outcomes[f'{name} {limit} exit 5'] == 0:
                step.violation(f'no {name} ended with 5: the limits {limit} say nothing')
    steps_of_groups(step)
    if done < wanted:
        step.violation(f'only {done} of {wanted} runs in the time given')
    step.finish(done)


if __name__ == '__main__':
    main()
