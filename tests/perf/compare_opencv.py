#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Whole-pixel block matching of larch beside that of OpenCV, on the same frames, in the same run, on the CPU.

The frames are those of larch-benchmarks: a mask and a contrast frame of 1024 x 1024 pixels. OpenCV searches the same
256 blocks of 64 x 64 pixels in the same window of +-10 pixels by matchTemplate with the sum of squared differences
(TM_SQDIFF), which it computes by Fourier transforms; blocks are shared by the threads. larch: the patent's search by
conjugate directions (literal), with steps of 0.1 pixel (literal_tenths), and the full search by histograms. Also how
many blocks of the frame are wrong by more than a pixel by OpenCV. Needs python3-opencv, which nothing else in this
project does. Usage: compare_opencv.py BUILD_FOLDER [THREADS]
"""
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import cv2
import numpy

EDGE, BLOCK, RANGE, REPEAT = 1024, 64, 10, 7


def meta_image(path, kind, channels):
    with open(path, 'rb') as file:
        head, _, body = file.read().partition(b'ElementDataFile = LOCAL\n')
    body = zlib.decompress(body) if b'CompressedData = True' in head else body
    return numpy.frombuffer(body, kind).reshape(2, EDGE, EDGE, channels)


def make_frames(make_samples):
    """Mask, contrast frame and true motion in pixels, drawn as larch-benchmarks draws them."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {'size': f'{EDGE},{EDGE}', 'frames': 2, 'mask_frames': 1, 'course': 'constant', 'stored': 'lin',
                    'spacing_mm': 1}
        subprocess.run([make_samples, '--output-dir', folder, '--kind', 'angiography', '--format', 'mha', '--seed', '1',
                        '--force', '--quiet', '--no-sidecar',
                        *(f'--angiography.{key}={value}' for key, value in settings.items())], check=True)
        frames = meta_image(f'{folder}/images/case_000.mha', '<u2', 1)[..., 0].astype(numpy.float32)
        field = meta_image(f'{folder}/fields/case_000.mha', '<f4', 2)[1]
    return frames[0], frames[1], field


def match_row(mask, contrast, top):
    """Displacements of the blocks of a row; mask has a border of RANGE pixels."""
    found = []
    for left in range(0, EDGE, BLOCK):
        scores = cv2.matchTemplate(mask[top:top + BLOCK + 2 * RANGE, left:left + BLOCK + 2 * RANGE],
                                   contrast[top:top + BLOCK, left:left + BLOCK], cv2.TM_SQDIFF)
        x, y = cv2.minMaxLoc(scores)[2]
        found.append((x - RANGE, y - RANGE))
    return found


def opencv_frames(mask, contrast, field, threads):
    """Seconds per frame, and how many blocks are wrong."""
    cv2.setNumThreads(1)
    padded = cv2.copyMakeBorder(mask, RANGE, RANGE, RANGE, RANGE, cv2.BORDER_REPLICATE)
    tops = range(0, EDGE, BLOCK)
    times = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEAT + 1):
            begin = time.perf_counter()
            found = numpy.array(list(pool.map(lambda top: match_row(padded, contrast, top), tops)))
            times.append(time.perf_counter() - begin)
    truth = field[BLOCK // 2::BLOCK, BLOCK // 2::BLOCK]
    return times[1:], int((numpy.hypot(*numpy.moveaxis(found - truth, -1, 0)) > 1).sum())


def larch_frames(program, threads):
    """Seconds per frame by search."""
    which = f'dsa/(literal|literal_tenths|full_whole_pixels)/.*cpu/threads:{threads}'
    out = subprocess.run([program, f'--benchmark_filter={which}', f'--benchmark_repetitions={REPEAT}',
                          '--benchmark_min_time=0.3', '--benchmark_format=json'],
                         stdout=subprocess.PIPE, check=True).stdout
    times = {}
    for row in json.loads(out)['benchmarks']:
        if row['run_type'] == 'iteration':
            times.setdefault(row['name'].split('/')[1], []).append(1 / row['frames/s'])
    return times


def main():
    build, threads = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    mask, contrast, field = make_frames(os.path.join(build, 'apps', 'make-samples'))
    theirs, wrong = opencv_frames(mask, contrast, field, threads)
    ours = larch_frames(os.path.join(build, 'tests', 'perf', 'larch-benchmarks'), threads)
    result = {'threads': threads, f'opencv {cv2.__version__}':
              {'frames_per_s': round(1 / statistics.median(theirs), 1), 'blocks_wrong_of_256': wrong}}
    for name, times in ours.items():
        result[name] = {'frames_per_s': round(1 / statistics.median(times), 1),
                        'ratio': round(statistics.median(theirs) / statistics.median(times), 2)}
    print(json.dumps(result, indent=2))


if __name__ == '__main__':
    main()
