# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
"""DICOM sets that pydicom makes: for every row of the DICOM table of apps/reading-images.md one or more."""
import pathlib
import struct

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import (DeflatedExplicitVRLittleEndian, ExplicitVRBigEndian,
                         ExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless)

SHAPE = (5, 7)  # rows, columns
random = np.random.default_rng(5)


def made(stored=None, position=(-10.0, 20.0, 30.0), orientation=(1, 0, 0, 0, 1, 0), **changes):
    """One slice; `changes` are attributes by keyword, None removes one."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = changes.pop("syntax", ExplicitVRLittleEndian)
    meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    d = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
    d.SOPClassUID, d.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    d.Modality, d.SeriesInstanceUID, d.StudyInstanceUID = "CT", "1.2.3.4", "1.2.3"
    d.PatientID, d.PatientName, d.FrameOfReferenceUID = "P1", "Doe^Jane", "1.2.3.9"
    d.ImagePositionPatient, d.ImageOrientationPatient = list(position), list(orientation)
    d.PixelSpacing, d.SliceThickness = [1.5, 0.75], 4
    d.SamplesPerPixel, d.PhotometricInterpretation = 1, "MONOCHROME2"
    d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 16, 16, 15, 1
    if stored is None:
        stored = random.integers(-1000, 3000, SHAPE, dtype=np.int16)
    d.Rows, d.Columns = stored.shape[-2:] if stored.ndim < 3 or stored.shape[-1] != 3 else stored.shape[:2]
    d.PixelData = stored.tobytes() + b"\0" * (stored.nbytes % 2)
    d["PixelData"].VR = "OW" if stored.itemsize > 1 else "OB"
    for name, value in changes.items():
        if value is None:
            delattr(d, name)
        else:
            setattr(d, name, value)
    return d


def stack(n=4, step=(0, 0, 2.5), **changes):
    first = np.array([-10.0, 20.0, 30.0])
    return [made(position=list(first + k * np.array(step)), **changes) for k in range(n)]


def with_text(dataset, tag, vr, text):
    """An element with a value that pydicom would refuse to write."""
    element = pydicom.dataelem.RawDataElement(
        pydicom.tag.Tag(tag), vr, len(text) + len(text) % 2, text.encode() + b" " * (len(text) % 2),
        0, dataset.file_meta.TransferSyntaxUID.is_implicit_VR, True)
    dataset._dict[element.tag] = element
    return dataset


def save(folder, datasets):
    for i, d in enumerate(datasets):
        syntax = d.file_meta.TransferSyntaxUID
        d.is_little_endian, d.is_implicit_VR = syntax.is_little_endian, syntax.is_implicit_VR
        if not syntax.is_little_endian:  # pydicom writes the pixels as they are
            if d.BitsAllocated == 16:
                d.PixelData = np.frombuffer(d.PixelData, np.uint16).byteswap().tobytes()
        name = f"{(7 * i + 3) % 10}{i}.dcm"  # the order of names is not that of the slices
        d.save_as(folder / name, write_like_original=False)


def lut(first, entries, bits=16, signed=False):
    item = Dataset()
    item.add_new((0x0028, 0x3002), "SS" if signed else "US", [len(entries), first, bits])
    item.add_new((0x0028, 0x3003), "LO", "made up")
    item.add_new((0x0028, 0x3004), "LO", "US")
    item.add_new((0x0028, 0x3006), "OW", np.array(entries, np.uint16).tobytes())
    return Sequence([item])


def enhanced(positions, slopes):
    shared, frames = Dataset(), []
    measures, orientation = Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.8, 0.6], 3
    orientation.ImageOrientationPatient = [0, 1, 0, 0, 0, -1]
    shared.PixelMeasuresSequence = Sequence([measures])
    shared.PlaneOrientationSequence = Sequence([orientation])
    for p, slope in zip(positions, slopes):
        frame, position, value = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [p, 1, 2]
        value.RescaleSlope, value.RescaleIntercept, value.RescaleType = slope, 5, "US"
        frame.PlanePositionSequence = Sequence([position])
        frame.PixelValueTransformationSequence = Sequence([value])
        frames.append(frame)
    stored = random.integers(0, 4000, (len(frames),) + SHAPE, dtype=np.int16)
    return made(stored, NumberOfFrames=len(frames), PixelSpacing=None, ImagePositionPatient=None,
                ImageOrientationPatient=None, SliceThickness=None,
                SharedFunctionalGroupsSequence=Sequence([shared]),
                PerFrameFunctionalGroupsSequence=Sequence(frames))


def bits(allocated, stored, high, signed, others=0, **changes):
    """Samples with the bits of `others`, beside the stored ones, set at random."""
    low = high + 1 - stored
    raw = random.integers(0, 1 << allocated, SHAPE, dtype=np.uint64)
    raw = raw & np.uint64((((1 << stored) - 1) << low) | others)
    if signed and not others:  # some encoders fill the bits above with the sign
        above = np.uint64((1 << allocated) - (1 << (high + 1)))
        raw[1] |= np.where(raw[1] >> np.uint64(high) & np.uint64(1), above, np.uint64(0))
    return made(raw.astype(f"u{allocated // 8}"), BitsAllocated=allocated, BitsStored=stored,
                HighBit=high, PixelRepresentation=int(signed), **changes)


def overlaid(others, *positions, data=False, **changes):
    d = bits(16, 10, 11, False, others, **changes)
    for k, position in enumerate(positions):
        d.add_new((0x6000 + 2 * k, 0x0100), "US", 16)
        d.add_new((0x6000 + 2 * k, 0x0102), "US", position)
        if data:
            d.add_new((0x6000 + 2 * k, 0x3000), "OW", bytes(8))
    return [d]


def rgb(planar=0, photometric="RGB"):
    pixels = random.integers(0, 256, SHAPE + (3,), dtype=np.uint8)
    d = made(pixels, SamplesPerPixel=3, PlanarConfiguration=planar, BitsAllocated=8, BitsStored=8,
             HighBit=7, PixelRepresentation=0, PhotometricInterpretation=photometric)
    if planar:
        d.PixelData = pixels.transpose(2, 0, 1).tobytes() + b"\0"
    return d


def ybr(datasets, photometric="YBR_FULL"):
    return changed(datasets, 0, PhotometricInterpretation=photometric)


def shared_colours(syntax=ExplicitVRLittleEndian):
    """Two pixels have one colour: Y Y CB CR."""
    pixels = random.integers(0, 256, (4, 6, 3), dtype=np.uint8)
    pixels[:, 1::2, 1:] = pixels[:, ::2, 1:]
    d = made(pixels, SamplesPerPixel=3, PlanarConfiguration=0, BitsAllocated=8, BitsStored=8, HighBit=7,
             PixelRepresentation=0, PhotometricInterpretation="YBR_FULL_422", syntax=syntax)
    pairs = pixels.reshape(-1, 2, 3)
    d.PixelData = np.stack([pairs[:, 0, 0], pairs[:, 1, 0], pairs[:, 0, 1], pairs[:, 0, 2]], 1).tobytes()
    d.decoded = pixels
    return [d]


def jpeg_2000_colours():
    d = ybr(encapsulated("1.2.840.10008.1.2.4.90", [JPEG_2000.read_bytes()], 3), "YBR_RCT")
    y, x, channel = np.indices((8, 8, 3))
    d[0].decoded = (x * x + 3 * y + 40 * channel) % 200
    return d


def palette(bits=8, entries=256, first=0, signed=False):
    stored = random.integers(-100 if signed else 0, 256, SHAPE, dtype=np.int16)
    d = made(stored, PixelRepresentation=int(signed), PhotometricInterpretation="PALETTE COLOR")
    for colour in ("Red", "Green", "Blue"):
        values = random.integers(0, 1 << bits, entries, dtype=np.uint16)
        setattr(d, colour + "PaletteColorLookupTableDescriptor", [entries, first, bits])
        setattr(d, colour + "PaletteColorLookupTableData", values.astype(np.uint8 if bits == 8 else np.uint16).tobytes())
    return [d]


def spect(spacing, order=(1, 2, 3), **changes):
    detector = Dataset()
    detector.ImagePositionPatient, detector.ImageOrientationPatient = [-10, 20, 30], [0, 1, 0, 0, 0, -1]
    return [made(random.integers(0, 99, (3,) + SHAPE, dtype=np.int16), NumberOfFrames=3, SpacingBetweenSlices=spacing,
                 ImagePositionPatient=None, ImageOrientationPatient=None, SliceVector=list(order),
                 ImageType=["ORIGINAL", "PRIMARY", "RECON TOMO", "EMISSION"],
                 DetectorInformationSequence=Sequence([detector]), **changes)]


def changed(datasets, index, **values):
    for name, value in values.items():
        setattr(datasets[index], name, value)
    return datasets


def without(datasets, *indices):
    return [d for i, d in enumerate(datasets) if i not in indices]


def rle():
    d = made()
    d.compress(RLELossless)
    return [d]


def truncated():
    d = made()
    d.PixelData = d.PixelData[:-4]
    return [d]


def no_pixels():
    d = made()
    for name in ("Rows", "Columns", "PixelData"):
        delattr(d, name)
    return [d]


def no_bits_allocated():
    d = made()
    del d.BitsAllocated
    return [d]


def float_pixels():
    d = made(BitsAllocated=32, BitsStored=32, HighBit=31)
    del d.PixelData
    d.FloatPixelData = np.zeros(SHAPE, np.float32).tobytes()
    return [d]


def csa(private=True):
    d = made()
    if private:
        name = b"NumberOfImagesInMosaic".ljust(64, b"\0")
        entry = name + struct.pack("<i4s3i", 1, b"IS", 6, 6, 77) + struct.pack("<4i", 3, 3, 77, 3) + b"36\0\0"
        d.add_new((0x0029, 0x0010), "LO", "SIEMENS CSA HEADER")
        d.add_new((0x0029, 0x1010), "OB", b"SV10\4\3\2\1" + entry)
    else:
        d.add_new((0x0019, 0x0010), "LO", "SIEMENS MR HEADER")
        d.add_new((0x0019, 0x100a), "US", 36)
    return [d]


def segment(marker, body):
    return bytes((0xff, marker)) + struct.pack(">H", len(body) + 2) + body


def coded(syntax, process, ids=b"\1", factors=0x11, before=b"", missing=0):
    """A picture of 8 x 8 in JPEG; all codes are zero bits, which say "no difference"."""
    lossless = process == 3
    frame = struct.pack(">BHHB", 8, 8, 8, len(ids)) + b"".join(
        bytes((k, 0x11 if i else factors, 0)) for i, k in enumerate(ids))
    parts = bytes((len(ids),)) + b"".join(bytes((k, 0)) for k in ids)
    bits = (64 if lossless else 2) * len(ids)
    data = bytes((bits + 7) // 8)
    stream = (b"\xff\xd8" + before + segment(0xdb, b"\0" + b"\x10" * 64) + segment(0xc0 + process, frame) +
              segment(0xc4, b"\0\1" + bytes(16)) + segment(0xc4, b"\x10\1" + bytes(16)) +
              segment(0xda, parts + (b"\1\0\0" if lossless else b"\0\x3f\0")) + data[missing:] + b"\xff\xd9")
    return encapsulated(syntax, [stream], len(ids))


def runs(value):
    """A frame of 8 x 8 in run-length coding: 64 times one value."""
    return struct.pack("<2I", 1, 64) + bytes(56) + bytes((257 - 64, value))


def run_frames(fragments, table=b"", frames=2):
    d = encapsulated(RLELossless, fragments, table=table)[0]
    if frames > 1:
        shared = enhanced(range(frames), [1] * frames)
        for name in ("PixelSpacing", "ImagePositionPatient", "ImageOrientationPatient", "SliceThickness"):
            delattr(d, name)
        d.NumberOfFrames = frames
        d.SharedFunctionalGroupsSequence = shared.SharedFunctionalGroupsSequence
        d.PerFrameFunctionalGroupsSequence = shared.PerFrameFunctionalGroupsSequence
    d.decoded = np.stack([np.full((8, 8), 3 + 2 * k) for k in range(frames)])
    return [d]


A, B = runs(3), runs(5)
HALVES_A, HALVES_B = (A[:64], A[64:]), (B[:64], B[64:])


def one_bit_runs():
    d = run_frames([runs(3)], frames=1)[0]
    d.BitsAllocated, d.BitsStored, d.HighBit = 1, 1, 0
    return [d]


def encapsulated(syntax, fragments, samples=1, table=b"", **changes):
    d = made(np.zeros((8, 8, 3) if samples == 3 else (8, 8), np.uint8), SamplesPerPixel=samples, BitsAllocated=8,
             BitsStored=8, HighBit=7, PixelRepresentation=0, syntax=pydicom.uid.UID(syntax), **changes)
    if samples == 3:
        d.PhotometricInterpretation, d.PlanarConfiguration = "RGB", 0
    d.PixelData = b"".join(
        b"\xfe\xff\0\xe0" + struct.pack("<I", len(f) + len(f) % 2) + f + bytes(len(f) % 2) for f in [table] + fragments)
    d["PixelData"].VR, d["PixelData"].is_undefined_length = "OB", True
    # What the test compares with, where pydicom has no decoder.
    d.decoded = np.full((1, 8, 8) + ((3,) if samples == 3 else ()), 128)
    return [d]


BASELINE, EXTENDED, LOSSLESS = (f"1.2.840.10008.1.2.4.{n}" for n in (50, 51, 70))
JPEG_2000 = pathlib.Path(__file__).parents[2] / "fuzz/seeds/j2k/rgb.j2k"  # 8 x 8
ADOBE = b"Adobe\0\x64" + bytes(4)
BROKEN = ("abc", "1,5", "1e400", "nan", "1\\2", "0x1")
SLOPE, INTERCEPT, DOSE = (0x0028, 0x1053), (0x0028, 0x1052), (0x3004, 0x000E)
SPACING, POSITION, ORIENTATION = (0x0028, 0x0030), (0x0020, 0x0032), (0x0020, 0x0037)


def sloped(**changes):
    return made(RescaleSlope=2, RescaleIntercept=-1024, **changes)


def renamed(before, after):
    """Changes the transfer syntax that a file names, and nothing else."""
    def element(uid):
        value = uid.encode() + b"\0" * (len(uid) % 2)
        return b"\2\0\x10\0UI" + struct.pack("<H", len(value)) + value
    return lambda content: content.replace(element(before), element(after))


def dose(offsets, **changes):
    return [made(random.integers(0, 99, (3,) + SHAPE, dtype=np.int16), NumberOfFrames=3,
                 DoseGridScaling="1e-3", GridFrameOffsetVector=offsets, **changes)]


def words(d):
    d["PixelData"].VR = "OW"
    return d


def without_rows():
    d = made()
    d.Rows = None
    return [d]


# The first words of a row of the page, and functions that make its sets, some with another one that
# changes the bytes of the files.
ROWS = {
    "slices in any order": [
        stack, lambda: stack(6, (0, 0, -1.25)), lambda: stack(3, (2, 0, 0), orientation=(0, 1, 0, 0, 0, -1)),
        lambda: stack(3, (0, -3, 0), orientation=(1, 0, 0, 0, 0, -1)),
        lambda: stack(3, (0, -1.2, 1.6), orientation=(1, 0, 0, 0, 0.8, 0.6)),
        lambda: stack(syntax=ImplicitVRLittleEndian), lambda: stack(syntax=ExplicitVRBigEndian),
        lambda: stack(syntax=DeflatedExplicitVRLittleEndian), rle] + [
            lambda n=n, s=s: stack(n, (0, 0, 6), SpacingBetweenSlices=s) for n, s in ((5, 6), (2, -6), (5, 0), (5, 5))],
    "RescaleSlope and RescaleIntercept, per slice": [
        lambda: [sloped()], lambda: [made(RescaleSlope="0.37", RescaleIntercept="-3.5e-2")],
        lambda: [made(position=[0, 0, k], RescaleSlope=k + 0.5, RescaleIntercept=-7 * k) for k in range(5)],
        lambda: [made(DoseGridScaling="1.5e-5")],
        lambda: [enhanced([4, 0, 2], [1, 10, 0.5])], lambda: [enhanced([0, 2, 4], [1, 1, 1])]],
    "RescaleSlope, RescaleIntercept, DoseGridScaling that": [
        lambda text=text, tag=tag: [with_text(sloped(), tag, "DS", text)]
        for text in BROKEN for tag in (SLOPE, INTERCEPT, DOSE)],
    "RescaleSlope or DoseGridScaling of 0": [
        lambda: [made(RescaleSlope="0", RescaleIntercept=1)], lambda: [made(DoseGridScaling="0.0")]],
    "RescaleIntercept without": [
        lambda: [made(RescaleIntercept=-1024)], lambda: [made(RescaleSlope=2)],
        lambda: [with_text(sloped(), SLOPE, "DS", "")]],
    "Modality LUT Sequence": [
        lambda: [made(ModalityLUTSequence=lut(-200, random.integers(0, 65536, 700).tolist(), signed=True))],
        lambda: [made(random.integers(0, 900, SHAPE, dtype=np.uint16), PixelRepresentation=0,
                      ModalityLUTSequence=lut(100, random.integers(0, 65536, 500).tolist()))],
        lambda: [made(random.integers(0, 256, SHAPE, dtype=np.uint16), PixelRepresentation=0,
                      syntax=ImplicitVRLittleEndian, ModalityLUTSequence=lut(0, list(range(256)), 8))]],
    "Modality LUT that is incomplete": [
        lambda: [made(ModalityLUTSequence=lut(0, [1, 2, 3], 17))],
        lambda: [made(ModalityLUTSequence=lut(0, [1, 2, 300], 8))]],
    "Modality LUT of": [lambda: changed([rgb()], 0, ModalityLUTSequence=lut(0, [1, 2, 3]))],
    "Modality LUT beside": [lambda: [sloped(ModalityLUTSequence=lut(0, [1, 2, 3]))]],
    "VOI LUT, window": [lambda: [sloped(WindowCenter=40, WindowWidth=80, RescaleType="OD",
                                        PresentationLUTShape="INVERSE")]],
    "PixelPaddingValue": [lambda: [sloped(PixelPaddingValue=-2000)]],
    "MONOCHROME1 |": [lambda: [made(PhotometricInterpretation="MONOCHROME1")]],
    "MONOCHROME1 and": [lambda: changed(stack(), 2, PhotometricInterpretation="MONOCHROME1")],
    "32-bit numbers": [lambda: [bits(32, 32, 31, True)], lambda: [bits(32, 20, 24, True)]],
    "RGB,": [lambda: [rgb()], lambda: [rgb(1)]],
    "YBR_FULL, and": [
        lambda: [rgb(0, "YBR_FULL")], lambda: [rgb(1, "YBR_FULL")], shared_colours,
        lambda: shared_colours(ExplicitVRBigEndian),
        lambda: ybr(coded(BASELINE, 0, b"\1\2\3")), lambda: ybr(coded(BASELINE, 0, b"\0\1\2", 0x21), "YBR_FULL_422"),
        lambda: ybr(coded(BASELINE, 0, b"\1\2\3", before=segment(0xee, ADOBE + b"\1"))),
        lambda: ybr(coded(LOSSLESS, 3, b"\1\2\3")), jpeg_2000_colours],
    "other YBR": [lambda: [rgb(0, "YBR_PARTIAL_422")], lambda: [made(PhotometricInterpretation="RGB")]],
    "YBR_RCT or": [
        lambda: [rgb(0, "YBR_RCT")],
        lambda: ybr(encapsulated("1.2.840.10008.1.2.4.90", [JPEG_2000.read_bytes()], 3))],
    "JPEG with such": [
        lambda: ybr(coded(BASELINE, 0, b"RGB")),
        lambda: ybr(coded(BASELINE, 0, b"\1\2\3", before=segment(0xee, ADOBE + b"\0")))],
    "palette": [palette, lambda: palette(16), lambda: palette(16, signed=True), lambda: palette(8, 200, first=20)],
    "a palette": [
        lambda: [made(PhotometricInterpretation="PALETTE COLOR")],
        lambda: changed(palette(), 0, BluePaletteColorLookupTableDescriptor=[255, 0, 8]),
        lambda: changed(palette(), 0, BluePaletteColorLookupTableData=b"abcd")],
    "BitsStored below": [
        lambda a=a, s=s, h=h, signed=signed: [bits(a, s, h, signed)]
        for a, s, h in ((16, 12, 11), (16, 12, 15), (16, 12, 13), (16, 1, 7), (16, 16, 15), (8, 8, 7),
                        (8, 5, 4), (8, 5, 6), (8, 1, 7)) for signed in (False, True)],
    "overlays in": [
        lambda: overlaid(0xf000, 12, 13, 14, 15), lambda: overlaid(0x2002, 1, 13),
        lambda: overlaid(0x1000, 12, syntax=ExplicitVRBigEndian)],
    "other bits": [
        lambda: [bits(16, 12, 11, False, 0x1000)], lambda: [bits(16, 12, 11, True, 0xf000)],
        lambda: [bits(16, 12, 15, False, 0x0001)], lambda: [bits(32, 20, 24, True, 1 << 31)],
        lambda: overlaid(0xf000, 12, 13, 14), lambda: overlaid(0xf000, 12, 13, 14, 15, data=True)],
    "no BitsAllocated": [no_bits_allocated],
    "BitsAllocated other": [lambda b=b: [made(BitsAllocated=b)] for b in (0, 2, 12, 24, 64)],
    "BitsStored 0": [lambda b=b: [made(BitsStored=b, HighBit=b - 1)] for b in (17, 4095)] + [
        lambda: changed([rgb()], 0, BitsStored=3)],
    "HighBit below": [lambda h=h: [made(BitsStored=12, HighBit=h)] for h in (0, 10, 16, 4095)],
    "PixelRepresentation other": [lambda: [made(PixelRepresentation=2)]],
    "big-endian words": [
        lambda: [words(bits(8, 8, 7, False, syntax=ExplicitVRBigEndian))],
        lambda: [bits(32, 32, 31, False, syntax=ExplicitVRBigEndian)]],
    "JPEG of another": [
        lambda p=p, s=s: coded(s, p) for p, s in ((2, BASELINE), (9, BASELINE), (3, BASELINE), (1, BASELINE), (0, LOSSLESS))],
    "JPEG with fewer": [
        lambda p=p, s=s: coded(s, p, missing=1) for p, s in ((0, BASELINE), (1, EXTENDED), (3, LOSSLESS))],
    "JPEG 2000 with tiles": [
        lambda n=n: encapsulated("1.2.840.10008.1.2.4.90", [JPEG_2000.read_bytes()[:n] + b"\xff\xd9"], 3)
        for n in (100, 140)],
    "lossy JPEG of colours with an": [
        lambda: coded(BASELINE, 0, b"\1\2\3", before=segment(0xee, ADOBE + b"\0")),
        lambda: coded(BASELINE, 0, b"RGB")],
    "lossy JPEG of colours without": [lambda: coded(BASELINE, 0, b"\0\1\2")],
    "JPEG of colours": [
        lambda: coded(BASELINE, 0, b"\1\2\3"), lambda: coded(BASELINE, 0, b"\1\2\3", 0x22),
        lambda: coded(BASELINE, 0, b"\0\1\2", 0x21),
        lambda: coded(BASELINE, 0, b"RGB", before=segment(0xee, ADOBE + b"\1")),
        lambda: coded(BASELINE, 0, b"RGB", before=segment(0xe0, b"JFIF\0\1\1\0\0\1\0\1\0\0"))],
    "floating-point": [float_pixels],
    "pixel data shorter": [truncated],
    "pixel data of a whole": [
        lambda: [made(PixelData=bytes(2 * 2 * 35))], lambda: [made(BitsAllocated=8, BitsStored=8, HighBit=7)]],
    "compressed images for more": [
        lambda: run_frames([runs(3), runs(5)], frames=1), lambda: run_frames([runs(3), runs(5), runs(7)])],
    "compressed images for fewer": [lambda: run_frames([runs(3)])],
    "a frame in several": [lambda: run_frames([runs(3)[:40], runs(3)[40:]], frames=1)] + [
        lambda f=f, t=t: run_frames(f, struct.pack(f"<{len(t)}I", *t)) for f, t in (
            ([A, B], ()), ([*HALVES_A, *HALVES_B], ()), ([A, b"", B], ()), ([*HALVES_A, b"", *HALVES_B], ()),
            ([A, B], (0, 74)), ([*HALVES_A, *HALVES_B], (0, 82)), ([A, b"", B], (0, 82)), ([*HALVES_A, b"", B], (0, 90)))],
    "an offset table": [
        lambda f=f, t=t: run_frames(f, struct.pack(f"<{len(t)}I", *t)) for f, t in (
            *(([A, B], t) for t in ((0, 4), (8, 74), (0, 0), (74, 0), (0,), (0, 74, 0, 0))), ([A, A, B], (74, 148)))],
    "run-length coding of one": [one_bit_runs],
    "no pixels": [no_pixels],
    "PixelSpacing, or": [
        lambda: [made()], lambda: [made(ImagerPixelSpacing=[9, 9])],
        lambda: [made(PixelSpacing=None, ImagerPixelSpacing=[0.2, 0.3])]],
    "a PixelAspectRatio": [lambda: [made(PixelSpacing=None, PixelAspectRatio=[2, 1])],
                           lambda: stack(PixelSpacing=None, PixelAspectRatio=[3, 4])],
    "neither of them": [lambda: [made(PixelSpacing=None, PixelAspectRatio=[1, 1])], lambda: [made(PixelSpacing=None)], lambda: stack(PixelSpacing=None)],
    "a spacing of one": [lambda t=t: [with_text(made(), SPACING, "DS", t)] for t in ("0.7", "1\\1\\1", "1\\")],
    "a spacing of 0": [lambda s=s: [made(PixelSpacing=s)] for s in ([0, 1], [1, -1])],
    "ImagePositionPatient or": [
        lambda: [with_text(made(), POSITION, "DS", "1\\2")],
        lambda: [with_text(made(), POSITION, "DS", "1\\2\\nan")],
        lambda: [with_text(made(), ORIENTATION, "DS", "1\\0\\0\\0\\1\\1e999")]],
    "ImageOrientationPatient that": [
        lambda: [made(orientation=(1, 0, 0, 1, 0, 0))], lambda: [made(orientation=(2, 0, 0, 0, 2, 0))]],
    "a single slice": [
        lambda: [made()], lambda: [made(SliceThickness=None)],
        lambda: [made(ImagePositionPatient=None, ImageOrientationPatient=None)]],
    "SliceThickness of several": [lambda: stack(SliceThickness=99)],
    "SliceThickness below": [lambda: [made(SliceThickness=-1)]],
    "tilted gantry": [lambda: stack(5, (0, 0.6, 2)), lambda: stack(4, (0.1, -0.9, -2.3))],
    "a missing slice": [lambda: without(stack(6), 3), lambda: without(stack(7), 4, 5)],
    "positions that": [
        lambda step=step: [made(position=[round(c + k * s, 1) for c, s in zip((-10, 20, 30), step)])
                           for k in range(12)] for step in ((0, 0, 1.25), (0, 0, -0.725), (0, 0.03, 0.75))],
    "slices reconstructed": [
        lambda: spect(4), lambda: spect(-4), lambda: spect(3, [2, 3, 1]), lambda: spect(3, syntax=ImplicitVRLittleEndian)],
    "a slice that is shifted": [
        lambda: changed(stack(5), 2, ImagePositionPatient=[-9, 20, 35])],
    "two slices at one": [
        lambda: changed(stack(), 1, ImagePositionPatient=[-10, 20, 30]), lambda: stack(2, (0, 0, 0))],
    "several files without positions": [lambda: stack(ImagePositionPatient=None)],
    "several frames in one file": [
        lambda: [enhanced([4, 4, 4], [1, 1, 1])],
        lambda: [made(random.integers(0, 9, (3,) + SHAPE, dtype=np.int16), NumberOfFrames=3)]],
    "slices that differ in orientation": [
        lambda: changed(stack(), 2, ImageOrientationPatient=[0, 1, 0, 0, 0, -1])],
    "slices that differ in matrix": [lambda: stack()[:3] + [
        made(np.zeros((6, 7), np.int16), position=[-10, 20, 37.5])]],
    "slices that differ in PixelSpacing": [lambda: changed(stack(), 1, PixelSpacing=[1.5, 0.8])],
    "two slices whose": [
        lambda: stack(2, (0, 0, 6), SpacingBetweenSlices=3), lambda: stack(5, (0, 0, 6), SpacingBetweenSlices=3),
        lambda: stack(2, (0, 0, 5), SpacingBetweenSlices=4), lambda: stack(5, (0, 0, 6), SpacingBetweenSlices=2)],
    "several series": [lambda: changed(stack(), 1, SeriesInstanceUID="1.2.3.5")],
    "one series with two patients": [
        lambda: changed(stack(), 3, PatientID="P2"), lambda: changed(stack(), 2, PatientID=""),
        lambda: changed(stack(), 3, StudyInstanceUID="1.2.9")],
    "one series with two frames": [lambda: changed(stack(), 3, FrameOfReferenceUID="1.2.3.10")],
    "a Siemens mosaic": [
        lambda: [made(ImageType=["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"])], csa, lambda: csa(False)],
    "NumberOfFrames that": [
        lambda t=t: [with_text(made(), (0x0028, 0x0008), "IS", t)] for t in ("0", "-1")],
    "functional groups": [
        lambda n=n: changed([enhanced([0, 2, 4], [1, 1, 1])], 0, NumberOfFrames=n) for n in (1, 2)],
    "one element twice": [(stack, lambda content: content + b"\x28\0\x10\0US\2\0\1\0")],
    "more elements": [(lambda: [made()], lambda content: content + b"\x09\0\x10\0LO\0\0" * 1000000)],
    "elements that are implicit": [
        (stack, renamed(ExplicitVRLittleEndian, ImplicitVRLittleEndian)),
        (lambda: stack(syntax=ImplicitVRLittleEndian),
         renamed(ImplicitVRLittleEndian, ExplicitVRLittleEndian))],
    "zeros, spaces": [(stack, lambda content, padding=padding: content + padding)
                      for padding in (b"\0", b"\0\0", b"\0" * 512, b"    ", b"\n", b"\r\n")],
    "a dose of": [lambda: dose([0, 2.5, 5]), lambda: dose([30, 32.5, 35]), lambda: dose([0, -3, -6]),
                 lambda: dose([0, 2.5, 5], orientation=(0, 1, 0, 0, 0, 1))],
    "a GridFrameOffsetVector": [
        lambda: dose([7, 9, 11]), lambda: dose([30, 32.5, 35], orientation=(0, 1, 0, 0, 0, 1))],
    "pixel data without Rows": [without_rows],
    "other transfer": [(lambda: [made()], renamed(ExplicitVRLittleEndian, uid)) for uid in (
        "1.2.840.10008.1.2.4.201", "1.2.840.10008.1.2.4.110", "1.2.840.10008.1.2.8.1")],
    "a file of a folder that": [(stack, lambda content: b"")],
    "a file of a folder with": [(stack, lambda content: bytes(2000)), (stack, lambda content: b"\x1f\x8b" + content)],
    "a file that is cut": [(stack, lambda content: content[:400])],
}
