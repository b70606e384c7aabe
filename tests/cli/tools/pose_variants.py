# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""Writes an image of make-samples --kind poses (axes LPS, cubes, the centre is the origin of the world) in other ways:

    pose_variants.py IMAGE POSES

turned_<way>.nii.gz: the same with axes RAS, permuted, flipped, or on a grid that is turned by 20 degrees;
noise.nii.gz: without any object; flat.nii.gz: without noise, too; crop.nii.gz: as far as the first object
goes, so that the second one lies beyond.
"""
import json
import sys

import nibabel
import numpy
from scipy.ndimage import map_coordinates

image = nibabel.load(sys.argv[1])
voxels, affine = numpy.asarray(image.dataobj), image.affine
size = affine[2, 2]
with open(sys.argv[2], encoding='utf-8') as file:
    box = json.load(file)['markups'][0]


def save(name, data, where=affine):
    nibabel.save(nibabel.Nifti1Image(numpy.rint(data).astype('int16'), where), f'{name}.nii.gz')


def flipped(data, where, axis):
    back = numpy.eye(4)
    back[axis, axis], back[axis, 3] = -1, data.shape[axis] - 1
    return numpy.flip(data, axis), where @ back


save('turned_ras', *flipped(*flipped(voxels, affine, 0), 1))
save('turned_flipped', *flipped(voxels, affine, 2))
save('turned_permuted', voxels.transpose(2, 0, 1), affine[:, [2, 0, 1, 3]])

axis, angle = numpy.array([1, 2, 3]) / 14 ** 0.5, numpy.radians(20)
cross = numpy.cross(numpy.eye(3), axis)
turn = numpy.eye(4)
turn[:3, :3] += numpy.sin(angle) * cross + (1 - numpy.cos(angle)) * cross @ cross
places = numpy.stack([*numpy.indices(voxels.shape).reshape(3, -1), numpy.ones(voxels.size)])
at = numpy.linalg.inv(affine) @ turn @ affine @ places
background = numpy.median(voxels)
oblique = map_coordinates(voxels.astype(float), at[:3], order=1, cval=background)
save('turned_oblique', oblique.reshape(voxels.shape), turn @ affine)

save('noise', numpy.random.default_rng(1).normal(background, 3, voxels.shape))
save('flat', numpy.full(voxels.shape, background))
save('crop', voxels[:, :, :int(round((box['center'][2] - affine[2, 3]) / size)) + 3])
