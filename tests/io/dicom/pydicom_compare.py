# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""A DICOM set as dump-image reads it and as pydicom and numpy do: the same values at the same places."""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pydicom
from pydicom.pixel_data_handlers.util import apply_color_lut, apply_modality_lut, convert_color_space

DUMP = sys.argv[1]


def dump(path, *allow):
    with tempfile.TemporaryDirectory() as out:
        raw = pathlib.Path(out, "x.raw")
        done = subprocess.run([DUMP, path, raw, *allow], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return done.returncode, done.stderr, None, None
        told = json.loads(done.stdout)
        values = np.fromfile(raw, np.float32).reshape(told["size"][::-1])
        return 0, done.stderr, told, values


def stored_numbers(d):
    """Frames, rows, columns (and colours): bits moved to the lower end, with their sign."""
    if not hasattr(d, "decoded") and not d.file_meta.TransferSyntaxUID.is_compressed:
        kind = np.dtype(f"u{d.BitsAllocated // 8}")
        if not d.file_meta.TransferSyntaxUID.is_little_endian:
            kind = kind.newbyteorder(">")
        count = d.Rows * d.Columns * d.SamplesPerPixel * int(d.get("NumberOfFrames", 1) or 1)
        raw = np.frombuffer(d.PixelData, kind, count).astype(np.int64)
        raw = raw >> (d.HighBit + 1 - d.BitsStored) & ((1 << d.BitsStored) - 1)
        if d.PixelRepresentation:
            raw -= (raw >> (d.BitsStored - 1)) << d.BitsStored
        if d.HighBit + 1 == d.BitsStored == d.BitsAllocated and d.SamplesPerPixel == 1:
            assert (raw == d.pixel_array.ravel()).all(), "pydicom disagrees with this test"
        if d.SamplesPerPixel == 3 and d.PlanarConfiguration == 1:
            raw = raw.reshape(-1, 3, d.Rows, d.Columns).transpose(0, 2, 3, 1)
        shape = (-1, d.Rows, d.Columns) + ((3,) if d.SamplesPerPixel == 3 else ())
        return raw.reshape(shape)
    array = d.decoded if hasattr(d, "decoded") else d.pixel_array
    return array.reshape((-1, d.Rows, d.Columns) + ((3,) if d.SamplesPerPixel == 3 else ()))


def values_of(d):
    """Frames of real values."""
    numbers = stored_numbers(d)
    luminance = np.array([0.2126, 0.7152, 0.0722])
    if d.PhotometricInterpretation.startswith("YBR_FULL"):
        numbers = convert_color_space(numbers.astype(np.uint8), "YBR_FULL", "RGB", per_frame=True)
    if d.PhotometricInterpretation == "PALETTE COLOR":
        return apply_color_lut(numbers, d).astype(float) @ luminance
    if d.SamplesPerPixel == 3:
        return numbers @ luminance
    if "ModalityLUTSequence" in d:
        return apply_modality_lut(numbers, d).astype(float)
    frames = numbers.astype(float)
    for k in range(len(frames)):
        group = functional(d, k, "PixelValueTransformationSequence") or d
        frames[k] = frames[k] * float(group.get("RescaleSlope") or 1) + float(
            group.get("RescaleIntercept") or 0)
        if d.get("DoseGridScaling"):
            frames[k] *= float(d.DoseGridScaling)
    return frames


def functional(d, frame, name):
    groups = [d.get("PerFrameFunctionalGroupsSequence", []), d.get("SharedFunctionalGroupsSequence", [])]
    for sequence, index in zip(groups, (frame, 0)):
        if len(sequence) > index and name in sequence[index]:
            return sequence[index][name].value[0]
    return None


def planes_of(datasets):
    """(position, orientation, spacing, thickness, values) of each plane, in order along the normal."""
    planes = []
    for d in datasets:
        frames = values_of(d)
        for k, values in enumerate(frames):
            position = functional(d, k, "PlanePositionSequence") or d
            orientation = functional(d, k, "PlaneOrientationSequence") or d
            measures = functional(d, k, "PixelMeasuresSequence") or d
            place = np.array(position.get("ImagePositionPatient") or [0, 0, 0], float)
            axes = np.array(orientation.get("ImageOrientationPatient") or [1, 0, 0, 0, 1, 0], float)
            if "DetectorInformationSequence" in d:
                detector = d.DetectorInformationSequence[0]
                axes = np.array(detector.ImageOrientationPatient, float)
                place = np.array(detector.ImagePositionPatient, float) + np.cross(axes[:3], axes[3:]) * (
                    float(d.SpacingBetweenSlices) * (d.SliceVector[k] - 1))
            if "GridFrameOffsetVector" in d:  # relative to the first frame
                place += np.cross(axes[:3], axes[3:]) * (
                    float(d.GridFrameOffsetVector[k]) - float(d.GridFrameOffsetVector[0]))
            planes.append((
                place, axes,
                np.array(measures.get("PixelSpacing") or d.get("ImagerPixelSpacing") or d.get("PixelAspectRatio")
                         or [1, 1], float),
                float(measures.get("SliceThickness") or 1), values))
    normal = np.cross(planes[0][1][:3], planes[0][1][3:])
    return sorted(planes, key=lambda plane: plane[0] @ normal)


def compare(name, path, datasets, *allow):
    code, text, told, values = dump(path, *allow)
    assert code == 0, f"{name}: exit code {code}: {text}"
    planes = planes_of(datasets)
    wanted = np.stack([plane[4] for plane in planes]).astype(np.float32)
    assert values.shape == wanted.shape, f"{name}: {values.shape} instead of {wanted.shape}"
    colour = datasets[0].PhotometricInterpretation in ("RGB", "PALETTE COLOR") or datasets[0].SamplesPerPixel == 3
    differ = np.abs(values - wanted) > (1e-6 * max(255, wanted.max()) if colour else 0)
    assert not differ.any(), f"{name}: {differ.sum()} values differ, first {np.argwhere(differ)[0]}"
    rows, columns = wanted.shape[1:]
    corners = []
    for k, j, i in itertools.product((0, len(planes) - 1), (0, rows - 1), (0, columns - 1)):
        position, o, spacing, thickness, _ = planes[k]
        corners.append(position + o[:3] * spacing[1] * i + o[3:] * spacing[0] * j)
    off = np.abs(np.array(told["corners"]) - np.array(corners)).max()
    size = np.abs(np.array(corners[7]) - np.array(corners[0])).max()
    rounded = 0.1 if "rounded to 0.1 mm" in text else 0
    assert off <= 1e-3 + rounded + 1e-3 * size * (len(planes) > 1), f"{name}: a corner is {off} mm off"
    if len(planes) == 1:
        assert told["spacing"][2] == planes[0][3], f"{name}: thickness"
    return text
