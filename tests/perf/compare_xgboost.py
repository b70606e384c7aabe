#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""One boosting round of larch beside one depth-1 round of XGBoost (hist, 64 bins), same size, same run.

Needs python3-xgboost, which nothing else in this project does. The matrix of XGBoost is random; its time
does not depend on the values. Usage: compare_xgboost.py LARCH_BENCHMARKS [THREADS]
"""
import json
import statistics
import subprocess
import sys
import time

import numpy
import xgboost

SAMPLES, FEATURES, BINS, ROUNDS, REPEAT = 5000, 50000, 64, 11, 7


def xgboost_rounds(threads):
    random = numpy.random.default_rng(1)
    data = xgboost.QuantileDMatrix(random.integers(0, BINS, (SAMPLES, FEATURES)).astype('float32'),
                                   random.integers(0, 2, SAMPLES), max_bin=BINS, nthread=threads)
    settings = {'tree_method': 'hist', 'max_depth': 1, 'max_bin': BINS, 'nthread': threads,
                'objective': 'binary:logistic'}

    def seconds(rounds):
        begin = time.perf_counter()
        xgboost.train(settings, data, rounds)
        return time.perf_counter() - begin

    seconds(1)
    return [(seconds(ROUNDS) - seconds(1)) / (ROUNDS - 1) for _ in range(REPEAT)]


def larch_rounds(program, threads):
    out = subprocess.run([program, f'--benchmark_filter=boost/features:{FEATURES}/.*cpu/threads:{threads}/',
                          f'--benchmark_repetitions={REPEAT}', '--benchmark_min_time=3',
                          '--benchmark_format=json'], stdout=subprocess.PIPE, check=True).stdout
    rows = [row for row in json.loads(out)['benchmarks'] if row['run_type'] == 'iteration']

    def times(rounds):
        return [row['real_time'] / 1e3 for row in rows if f'/rounds:{rounds}/' in row['name']]

    return [(more - one) / (ROUNDS - 1) for more, one in zip(times(ROUNDS), times(1))]


def main():
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    ours, theirs = larch_rounds(sys.argv[1], threads), xgboost_rounds(threads)
    figures = {name: {'median_s': round(statistics.median(t), 4), 'min_s': round(min(t), 4), 'max_s': round(max(t), 4)}
               for name, t in (('larch', ours), (f'xgboost {xgboost.__version__}', theirs))}
    figures['ratio'] = round(statistics.median(theirs) / statistics.median(ours), 2)
    print(json.dumps(figures, indent=2))


if __name__ == '__main__':
    main()
