#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM at many moments of a detection on a large volume: answered within ten seconds.

The volume has half a gigavoxel, or what a third of the free memory can take. Whatever stage the
signal meets, the process ends with 143 in time and leaves neither outputs nor temporaries; a run
that is over before its moment has all outputs.
"""
import gzip
import os
import shutil
import signal
import struct
import subprocess
import time

from faults import Step, temporaries

ANSWER_SECONDS = 10
MOMENTS = [0.5, 1, 2, 4, 7, 11, 16, 22, 30, 40]
QUICK_MOMENTS = [0.05, 0.2]
BYTES_PER_VOXEL = 30  # with labels, mesh and picture
OUTPUTS = ['s.nii.gz', 'p.nii.gz', 's.vtk', 's.png']


def free_bytes():
    with open('/proc/meminfo', encoding='ascii') as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith('MemAvailable'))


def write_zeros(path, edge):
    """A NIfTI volume of edge^3 zeros of one byte, 1 mm."""
    header = struct.pack('<i36x8h12x', 348, 3, edge, edge, edge, 1, 1, 1, 1)
    header += struct.pack('<4h', 0, 2, 8, 0) + struct.pack('<8f', 1, 1, 1, 1, 1, 1, 1, 1)
    header += struct.pack('<f', 352) + bytes(252 - 112)
    header += struct.pack('<2h', 0, 1) + bytes(24) + struct.pack('<12f', 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)
    header += bytes(16) + b'n+1\0' + bytes(4)
    with gzip.open(path, 'wb', compresslevel=1) as file:
        file.write(header)
        for _ in range(edge):
            file.write(bytes(edge * edge))


def stop_at(step, image, moment):
    """Whether the signal met the run."""
    folder = step.folder('out')
    command = [step.app('pbt-detect'), '--model', step.model, '--input', image, '--quiet',
               '--output', f'{folder}/s.nii.gz', '--probability', f'{folder}/p.nii.gz',
               '--mesh', f'{folder}/s.vtk', '--qc', f'{folder}/s.png']
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    took = time.monotonic() - start
    there = [name for name in OUTPUTS if os.path.exists(f'{folder}/{name}')]
    # -15: the signal came before the program had its handler. 7: nothing is found in zeros.
    if not over and (process.returncode not in (143, -15, 0, 7) or took > ANSWER_SECONDS):
        step.violation(f'after {moment} s: exit code {process.returncode}, {took:.1f} s after SIGTERM')
    whole = process.returncode in (0, 7)
    if len(there) != (len(OUTPUTS) if whole else 0) or temporaries(folder):
        step.violation(f'after {moment} s: left {there + temporaries(folder)}')
    if not over:
        print(f'signals: at {moment} s answered in {took:.1f} s with {process.returncode}', flush=True)
    step.count('over before the signal' if over else 'answered')
    shutil.rmtree(folder)
    return not over


def main():
    step = Step('signals', __doc__)
    fits = int((free_bytes() / 3 / BYTES_PER_VOXEL) ** (1 / 3))
    edge = min(160 if step.quick else 800, fits)
    image = f'{step.work}/zeros.nii.gz'
    write_zeros(image, edge)
    done = 0
    for moment in QUICK_MOMENTS if step.quick else MOMENTS:
        if not step.in_time() or not stop_at(step, image, moment):
            break
        done += 1
    print(f'signals: {edge}^3 voxels', flush=True)
    if done == 0:
        step.violation('no signal met a run')
    step.finish(done)


if __name__ == '__main__':
    main()
