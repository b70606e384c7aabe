#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""make_broad.py FOLDER: two volumes of 3 million voxels in which a classifier is unsure nearly
everywhere, and their list broad.tsv: what a batch's bound of memory is tested with."""
import os
import sys

import nibabel
import numpy

SHAPE = (144, 144, 144)


def main(folder):
    os.chdir(folder)
    at = (numpy.indices(SHAPE).T - (numpy.array(SHAPE) - 1) / 2).T
    distance = numpy.sqrt((at**2).sum(0))
    with open("broad.tsv", "w", encoding="utf-8") as table:
        table.write("image\n")
        for case in range(2):
            random = numpy.random.default_rng(100 + case)
            image = 100 + 40 * numpy.cos(distance / (7 + case)) + random.normal(0, 5, SHAPE)
            name = f"broad_{case}.nii"
            nibabel.save(nibabel.Nifti1Image(image.astype(numpy.int16), numpy.eye(4)), name)
            table.write(name + "\n")


main(sys.argv[1])
