# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""The equation of lib/larch/levelset in float64 on a whole grid, beside which scripts/levelset-accuracy sets the
program. Nothing is shared with it: no active set, no dead zone, no snap, no rounded speeds. Lengths are in voxels.
Needs python3-numpy."""
import numpy

CLAMP = 3.0  # without it central differences of a steep field carry the curvature across walls of one voxel
UNIT = numpy.eye(3, dtype=int)


def window_speed(intensities, lower, upper):
    half = 0.5 * (upper - lower)
    return numpy.maximum(1 - numpy.abs(intensities - (lower + half)) / half, -1)


def change_rate(phi, speed, weight):
    """d phi / dt; beyond the border the value at the border counts."""
    padded = numpy.pad(phi, 1, mode='edge')

    def shifted(by):
        return padded[tuple(slice(1 + b, 1 + b + size) for b, size in zip(by, phi.shape))]

    ahead, behind = [shifted(UNIT[i]) for i in range(3)], [shifted(-UNIT[i]) for i in range(3)]
    outwards = sum(numpy.maximum(phi - b, 0)**2 + numpy.minimum(a - phi, 0)**2 for a, b in zip(ahead, behind))
    inwards = sum(numpy.minimum(phi - b, 0)**2 + numpy.maximum(a - phi, 0)**2 for a, b in zip(ahead, behind))
    first = [0.5 * (a - b) for a, b in zip(ahead, behind)]
    second = [a + b - 2 * phi for a, b in zip(ahead, behind)]
    bent = sum(first[i]**2 * (sum(second) - second[i]) for i in range(3))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        mixed = shifted(UNIT[i] + UNIT[j]) - shifted(UNIT[i] - UNIT[j]) - shifted(UNIT[j] - UNIT[i])
        bent -= 0.5 * first[i] * first[j] * (mixed + shifted(-UNIT[i] - UNIT[j]))
    curvature = bent / (sum(d**2 for d in first) + 1e-6)
    return weight * curvature - (1 - weight) * speed * numpy.sqrt(numpy.where(speed > 0, outwards, inwards))


def grow(speed, seed, radius, weight, most_steps=10000, unchanged_steps=300):
    """The voxels inside once none has changed its side for so many steps, and the number of steps."""
    places = numpy.indices(speed.shape)
    phi = numpy.sqrt(sum((places[i] - seed[i])**2 for i in range(3))) - radius
    phi = numpy.clip(phi, -CLAMP, CLAMP)
    step = 0.9 * min(1 / ((1 - weight) * 3**0.5 + 6 * weight), CLAMP / 6 / (1 - weight))
    last_flip = 0
    for number in range(1, most_steps + 1):
        # Beyond this box every stencil holds nothing but the clamp and does not change.
        near = numpy.argwhere(phi < CLAMP)
        box = tuple(slice(max(0, low - 1), high + 2) for low, high in zip(near.min(axis=0), near.max(axis=0)))
        before = phi[box]
        after = numpy.clip(before + step * change_rate(before, speed[box], weight), -CLAMP, CLAMP)
        if ((before < 0) != (after < 0)).any():
            last_flip = number
        phi[box] = after
        if number - last_flip >= unchanged_steps:
            break
    return phi < 0, number
