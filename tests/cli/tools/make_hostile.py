# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""make_hostile.py cases|hostile FOLDER: small volumes for the tests of pbt-train and pbt-detect.

cases    three training cases and one more of a noisy ball, as lists and as files that a reader has
         to turn around: flipped, oblique
hostile  what may be wrong with an image, a label map or a file
"""
import gzip
import os
import struct
import sys

import nibabel
import numpy

SHAPE = (22, 20, 16)
SPACING = numpy.diag([2.0, 2.0, 3.0, 1.0])


def save(name, voxels, affine=SPACING):
    nibabel.save(nibabel.Nifti1Image(voxels, affine), name)


def ball(seed):
    """An image of a ball whose brightness the noise reaches, and its labels (1; its core is 2)."""
    random = numpy.random.default_rng(seed)
    at = numpy.stack(numpy.meshgrid(*map(numpy.arange, SHAPE), indexing="ij"), axis=-1)
    centre = numpy.array(SHAPE) / 2 + random.uniform(-2, 2, 3)
    radius = numpy.linalg.norm((at - centre) * [2, 2, 3], axis=-1)
    image = 200 + 200 / (1 + numpy.exp((radius - 12) / 2)) + random.normal(0, 60, SHAPE)
    return image.astype(numpy.int16), numpy.uint8(radius < 12) + (radius < 5)


def cases():
    lines = []
    for case in range(4):
        image, label = ball(case)
        save(f"image_{case}.nii.gz", image)
        save(f"label_{case}.nii.gz", label)
        lines.append((f"image_{case}.nii.gz", f"label_{case}.nii.gz"))
    for name, order in {"train.tsv": (0, 1, 2), "permuted.tsv": (2, 0, 1)}.items():
        rows = [("image", "label")] + [lines[i] for i in order]
        open(name, "w").writelines("\t".join(row) + "\n" for row in rows)
    open("train.csv", "w").writelines(
        f'{label},"{image}"\n' for image, label in [("image", "label")] + lines[:3])

    image, label = ball(3)
    flipped = numpy.diag([-2.0, 2.0, 3.0, 1.0])  # first axis backwards, and its first voxel last
    flipped[0, 3] = 2.0 * (SHAPE[0] - 1)
    save("flipped.nii.gz", image[::-1], flipped)
    turn = numpy.radians(20)
    oblique = numpy.eye(4)
    oblique[:2, :2] = [[numpy.cos(turn), -numpy.sin(turn)], [numpy.sin(turn), numpy.cos(turn)]]
    save("oblique.nii.gz", image, oblique @ SPACING)
    roi = numpy.zeros(SHAPE, numpy.uint8)
    roi[:11] = 1
    save("roi.nii.gz", roi)
    save("roi_short.nii.gz", roi[:, :, 1:])
    save("roi_moved.nii.gz", roi, SPACING + [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0] * 4])


def header_with(raw, changes):
    """The bytes of an uncompressed NIfTI file with other fields: (offset, struct format, value)."""
    out = bytearray(raw)
    for offset, kind, value in changes:
        struct.pack_into("<" + kind, out, offset, value)
    return bytes(out)


TIFF_DIRECTORY = 8 + 192


def tiff(length=12, next_directory=0):
    """A TIFF picture of 16x12 grey pixels, with another length or a directory after it."""
    fields = [(256, 4, 16), (257, 4, length), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8),
              (277, 3, 1), (278, 4, 12), (279, 4, 192)]
    return (b"II" + struct.pack("<HI", 42, TIFF_DIRECTORY) + bytes(range(192)) +
            struct.pack("<H", len(fields)) +
            b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields) +
            struct.pack("<I", next_directory))


def broken_files(image):
    save("good.nii", image)
    save("good.nii.gz", image)
    raw, packed = open("good.nii", "rb").read(), open("good.nii.gz", "rb").read()
    os.makedirs("broken", exist_ok=True)
    files = {}
    for keep in (0, 1, 100, 347, 351, 352, 353, len(raw) // 2, len(raw) - 1):
        files[f"cut_{keep}.nii"] = raw[:keep]
    for keep in (1, 5, 30, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        files[f"cut_{keep}.nii.gz"] = packed[:keep]
    for at in (20, len(packed) // 2, len(packed) - 6):
        files[f"flip_{at}.nii.gz"] = packed[:at] + bytes([packed[at] ^ 4]) + packed[at + 1:]
    headers = {
        "huge": [(42, "h", 32767), (44, "h", 32767), (46, "h", 32767)],
        "negative": [(42, "h", -5)],
        "zero": [(44, "h", 0)],
        "dimensions": [(40, "h", 9)],
        "no_dimensions": [(40, "h", 0)],
        "float128": [(70, "h", 1536), (72, "h", 128)],
        "rgb": [(70, "h", 128), (72, "h", 24)],
        "complex": [(70, "h", 32), (72, "h", 64)],
        "unknown_type": [(70, "h", 77)],
        "other_bits": [(72, "h", 64)],
        "offset_negative": [(108, "f", -1000.0)],
        "offset_nan": [(108, "f", float("nan"))],
        "offset_far": [(108, "f", 1e30)],
        "magic": [(344, "4s", b"abc\0")],
        "slope_nan": [(112, "f", float("nan"))],
        "slope_inf": [(112, "f", float("inf"))],
        "spacing_nan": [(80, "f", float("nan")), (252, "h", 1), (254, "h", 0)],
        "spacing_zero": [(80, "f", 0.0), (252, "h", 1), (254, "h", 0)],
        "matrix_nan": [(280, "f", float("nan"))],
        "matrix_singular": [(280 + 4 * i, "f", 0.0) for i in range(12)],
        "offset_in_header": [(108, "f", 348.0)],
        "origin_far": [(292, "f", 1e38)],
        "axis_long": [(312, "f", 1e6)],
        "spacing_huge": [(84, "f", 3e38), (252, "h", 0), (254, "h", 0)],
        "axis_sheared": [(312, "f", 9.9e3)],
    }
    for name, changes in headers.items():
        files[f"header_{name}.nii"] = header_with(raw, changes)
    files["text.nii.gz"] = gzip.compress(b"Dear reader, this is no image.\n" * 20)
    files["text.nii"] = b"Dear reader, this is no image.\n" * 20
    files["text.png"] = files["text.nrrd"] = files["text.mha"] = files["text.dcm"] = files["text.nii"]
    for field in ("type", "encoding"):  # words longer than any that the format has
        fields = {"type": "short", "dimension": "3", "sizes": "12 10 8", "endian": "little",
                  "encoding": "raw", field: "A" * 1100}
        lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
        files[f"long_{field}.nrrd"] = f"NRRD0004\n{lines}\n".encode() + bytes(1920)
    files["ring.tif"] = tiff(next_directory=TIFF_DIRECTORY)
    files["tall.tif"] = tiff(length=0x7fffffff)
    for name, content in files.items():
        open(os.path.join("broken", name), "wb").write(content)

    # One bit of the header, in each byte that says how the voxels are stored and in some of the
    # others: whatever the value then means, it must not crash.
    os.makedirs("flipped", exist_ok=True)
    places = {*range(0, 348, 29), *range(40, 56, 2), *range(68, 124, 4), *range(252, 256, 2),
              *range(280, 328, 7), *range(344, 348, 2)}
    for at in sorted(places):
        bit = 1 << (at * 5 % 8)
        open(f"flipped/bit_{at:03d}.nii", "wb").write(
            raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1:])


def hostile():
    image, label = ball(0)
    save("image.nii.gz", image)
    save("label.nii.gz", label)
    for name, value in {"nan": numpy.nan, "inf": -numpy.inf}.items():
        voxels = image.astype(numpy.float32)
        voxels[3, 4, 5] = value
        save(f"{name}.nii.gz", voxels)
    save("4d.nii.gz", numpy.stack([image, image], axis=-1))
    save("4d_label.nii.gz", numpy.stack([label, label], axis=-1))
    save("label_empty.nii.gz", label * 0)
    save("label_full.nii.gz", label * 0 + 1)
    save("label_fraction.nii.gz", label.astype(numpy.float32) + 0.5)
    save("constant.nii.gz", image * 0 + 7)
    save("small.nii.gz", image[10:13, 9:12, 8:10])
    save("small_label.nii.gz", numpy.arange(18).reshape(3, 3, 2).astype(numpy.uint8) % 2)
    save("voxel.nii.gz", image[:1, :1, :1])
    save("voxel_label.nii.gz", label[:1, :1, :1] * 0 + 1)
    save("slice.nii.gz", image[:, :, :1])
    broken_files(image)


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    os.chdir(sys.argv[2])
    {"cases": cases, "hostile": hostile}[sys.argv[1]]()
