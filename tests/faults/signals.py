#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM at many moments of a detection on a large volume: answered within ten seconds.

The volume is one that keeps this machine busy for about half a minute, of half a gigavoxel at most
and of what a third of the free memory can take. Whatever stage the signal meets, the process ends
with 143 in time and leaves neither outputs nor temporaries; a run that is over before its moment has
all outputs.
"""
import os
import shutil
import signal
import subprocess
import time

from faults import Step, temporaries, write_volume

ANSWER_SECONDS = 10
# The moments, as parts of an undisturbed run.
PARTS = [0.02, 0.08, 0.16, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85]
QUICK_PARTS = [0.3, 0.6]
SMALL_EDGE, MOST_EDGE = 160, 800
RUN_SECONDS = 25
BYTES_PER_VOXEL = 30  # with labels, mesh and picture
WELL = (0, 7)  # 7: nothing is found in zeros
OUTPUTS = ['s.nii.gz', 'p.nii.gz', 's.vtk', 's.png']


def free_bytes():
    with open('/proc/meminfo', encoding='ascii') as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith('MemAvailable'))


def detect(step, image, folder):
    return subprocess.Popen(
        [step.app('pbt-detect'), '--model', step.model, '--input', image, '--quiet',
         '--output', f'{folder}/s.nii.gz', '--probability', f'{folder}/p.nii.gz',
         '--mesh', f'{folder}/s.vtk', '--qc', f'{folder}/s.png'],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check_outputs(step, folder, code, what):
    """All of them after a run that ended well, none after one that did not, and never a temporary."""
    there = [name for name in OUTPUTS if os.path.exists(f'{folder}/{name}')]
    if len(there) != (len(OUTPUTS) if code in WELL else 0) or temporaries(folder):
        step.violation(f'{what}: left {there + temporaries(folder)} and ended with {code}')


def undisturbed(step, image):
    """The seconds of a whole run."""
    folder, start = step.folder('whole'), time.monotonic()
    code = detect(step, image, folder).wait(300)
    seconds = time.monotonic() - start
    if code not in WELL:
        raise SystemExit(f'the undisturbed run ended with {code}')
    check_outputs(step, folder, code, 'without a signal')
    shutil.rmtree(folder)
    return seconds


def stop_at(step, image, moment):
    """SIGTERM at that moment of a run, or after its end should it be over before."""
    folder = step.folder('out')
    process = detect(step, image, folder)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        pass
    over = process.poll() is not None
    process.send_signal(signal.SIGTERM)
    start = time.monotonic()
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    code, took = process.returncode, time.monotonic() - start
    if over:
        outcome, allowed = 'over before the signal', WELL
    elif code == 143:
        outcome, allowed = 'answered', (143,)
    else:
        outcome, allowed = 'before the handler or after the work', (-signal.SIGTERM, *WELL)
    if code not in allowed or took > ANSWER_SECONDS:
        step.violation(f'after {moment:.2f} s: exit code {code}, {took:.1f} s after SIGTERM')
    check_outputs(step, folder, code, f'after {moment:.2f} s')
    if not over:
        print(f'signals: at {moment:.2f} s answered in {took:.1f} s with {code}', flush=True)
    step.count(outcome)
    shutil.rmtree(folder)


def main():
    step = Step('signals', __doc__)
    fits = int((free_bytes() / 3 / BYTES_PER_VOXEL) ** (1 / 3))
    edge = min(SMALL_EDGE, fits)
    image = f'{step.work}/zeros.nii.gz'
    write_volume(image, edge, 0)
    seconds, parts = undisturbed(step, image), QUICK_PARTS
    if not step.quick:
        edge = max(edge, min(MOST_EDGE, fits, int(edge * (RUN_SECONDS / seconds) ** (1 / 3))))
        write_volume(image, edge, 0)
        seconds, parts = undisturbed(step, image), PARTS
    print(f'signals: {edge}^3 voxels, {seconds:.1f} s', flush=True)
    done = 0
    for part in parts:
        if not step.in_time():
            step.violation(f'only {done} of {len(parts)} moments in the time given')
            break
        stop_at(step, image, part * seconds)
        done += 1
    if step.outcomes['answered'] < (1 if step.quick else len(parts) / 2):
        step.violation(f'only {step.outcomes["answered"]} of {done} runs were at work and answered')
    step.finish(done)


if __name__ == '__main__':
    main()
