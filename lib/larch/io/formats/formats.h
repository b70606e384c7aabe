// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "larch/io/formats/image_file.h"

namespace larch::io {

/// Volumes, by the definitions of their formats (README.md says why ITK's readers are not used).
/// Readers give the header in LPS mm and throw InputError for one that is not sound; frames are
/// what is beyond three dimensions of space. Writers are not atomic and throw OutputError, or
/// UsageError for what the format cannot hold; the same pixels give the same bytes.

/// Returns a .nii, .nii.gz, .hdr or .img file of NIfTI-1 or -2.
StoredHeader read_nifti_header(const std::string& path);

/// Returns a .nrrd or .nhdr file. Positions in the spaces RAS and LAS are turned; other spaces are
/// taken for LPS, as by ITK.
StoredHeader read_nrrd_header(const std::string& path);

/// Returns a MetaImage: .mha, or .mhd with one raw or zlib-compressed data file.
StoredHeader read_meta_header(const std::string& path);

/// Returns the bytes before the raw voxels of a .nii, .nrrd or .mha file. Of NRRD and MetaImage
/// frames are the third axis of pictures.
std::string nifti_header(const std::string& path, const Pixels& pixels);
std::string nrrd_header(const std::string& path, const Pixels& pixels);
std::string meta_header(const std::string& path, const Pixels& pixels);

/// Whole files. Voxels of NIfTI are compressed if the path ends in .gz, those of NRRD by gzip,
/// those of MetaImage by zlib.
void write_nifti(const std::string& path, const Pixels& pixels);
void write_nrrd(const std::string& path, const Pixels& pixels);
void write_meta(const std::string& path, const Pixels& pixels);

/// Readers of pictures, by the libraries of their formats. They have a spacing of 1 mm and the
/// identity direction. Throw InputError and MemoryError.

/// Without alpha; grey of fewer than 8 bits is stretched to 0..255 unless indices are kept.
std::unique_ptr<ImageFile> open_png(const std::string& path, const OpenOptions& options);
std::unique_ptr<ImageFile> open_jpeg(const std::string& path, const OpenOptions& options);

/// TIFF and BigTIFF. Several pages of one kind make a volume; thumbnails and masks behind the first
/// page are passed over. Rows of 8, 16 or 32 bits keep their numbers (white may be 0), palettes of
/// 8 or 16 bits become grey or colours, everything else red, green, blue and alpha of 8 bits. Takes
/// time in proportion to the bytes of the file and of its voxels.
std::unique_ptr<ImageFile> open_tiff(const std::string& path, const OpenOptions& options);

/// Writes a picture of uint8, grey or colours, not atomically. Throws OutputError, UsageError.
void write_png(const std::string& path, const Pixels& pixels);

/// Writes a picture of one component, deflated, and reads it back to be sure. Not atomic. Throws
/// OutputError, UsageError.
void write_tiff(const std::string& path, const Pixels& pixels);

/// Returns the pixels of a JPEG codestream from the file `path`, of 8 bits and one or three
/// components, which are red, green and blue whatever its markers say if `is_rgb`, or become so.
/// Damaged or missing data and more than 500 scans are an error. Throws InputError and MemoryError.
std::vector<std::byte> decode_colour_jpeg(const std::string& path, std::string bytes, bool is_rgb);

/// True if a sequential JPEG codestream of Huffman coding (SOF0, SOF1) holds exactly the coded
/// samples that its header promises: every scan is decoded down to its codes, and each must end
/// where the next marker stands (ITU-T T.81, annexes B and F). Decoders fill up what is missing,
/// most of them without a word.
bool is_whole_jpeg(std::string_view data);

/// Decodes a lossless JPEG codestream of Huffman coding (SOF3; T.81, annex H) that holds exactly
/// `samples`, components interleaved. False if it is damaged, or holds more or less, or components
/// that are sampled differently. Samples of at most 8 bits are cut to 8, others may be as large as
/// the coded differences make them.
bool decode_lossless_jpeg(std::string_view data, std::span<uint16_t> samples);

}  // namespace larch::io
