#!/usr/bin/python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The log-loss on held-out half-moons that tests/unit/tree/tree_half_moons_test.cpp compares with: histogram-based
gradient boosting of depth-1 trees (scikit-learn) with the same samples, rounds and bins. And the accuracy of one
decision tree, for tests/unit/tree/tree_forest_test.cpp.

Needs numpy and scikit-learn, which nothing else here does (Debian: python3-sklearn). Usage:
half_moons_reference.py. Prints one line per number of rounds; the test holds the constants.
"""
import math

import numpy
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

SAMPLES, BINS, SPREAD, UNIT = 4000, 64, 0.25, 10000
MASK = (1 << 64) - 1


def mix(x):
    x ^= x >> 30
    x = (x * 0xBF58476D1CE4E5B9) & MASK
    x ^= x >> 27
    x = (x * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash64(seed, stream, index):
    """As lib/larch/core/random_math.h."""
    golden = 0x9E3779B97F4A7C15
    h = mix((seed + golden) & MASK)
    h = mix(h ^ ((stream + golden) & MASK))
    return mix(h ^ ((index + golden) & MASK))


def half_moons(samples, seed):
    rows, classes = [], []
    for i in range(samples):
        def uniform(stream):
            return (hash64(seed, stream, i) >> 11) * 2.0 ** -53

        def normal(stream):
            total = -6.0
            for k in range(12):
                total += uniform(stream + k)
            return SPREAD * total

        positive = uniform(0) < 0.5
        t = math.pi * uniform(1)
        x = 1 - math.cos(t) if positive else math.cos(t)
        y = 0.5 - math.sin(t) if positive else math.sin(t)
        row = [math.floor(UNIT * (x + normal(100))), math.floor(UNIT * (y + normal(200)))]
        row += [math.floor(UNIT * uniform(300 + c)) for c in range(2, 8)]
        rows.append(row)
        classes.append(int(positive))
    return numpy.array(rows, dtype=float), numpy.array(classes)


def main():
    x, y = half_moons(SAMPLES, 1)
    test_x, test_y = half_moons(SAMPLES, 2)
    print("checksum", int(x.sum()), int(y.sum()), int(test_x.sum()), int(test_y.sum()))
    for rounds in (20, 40, 100, 200):
        for rate in (0.1, 0.3, 1.0):
            model = HistGradientBoostingClassifier(max_depth=1, max_iter=rounds, max_bins=BINS, learning_rate=rate,
                                                   early_stopping=False)
            model.fit(x, y)
            print(f"rounds {rounds} rate {rate}: {log_loss(test_y, model.predict_proba(test_x)[:, 1]):.5f}")
    for depth in (4, 6, 8):
        tree = DecisionTreeClassifier(criterion="entropy", max_depth=depth, random_state=0).fit(x, y)
        print(f"one tree of depth {depth}: accuracy {tree.score(test_x, test_y):.5f}")


if __name__ == "__main__":
    main()
