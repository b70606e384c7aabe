// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/formats/image_file.h"

namespace larch::io {

/// Volumes, by the definitions of their formats (README.md says why ITK's readers are not used).
/// Readers give the header in LPS mm and throw InputError for one that is not sound; frames are
/// what is beyond three dimensions of space. Writers are not atomic and throw OutputError, or
/// UsageError for what the format cannot hold; the same pixels give the same bytes.

/// A .nii, .nii.gz, .hdr or .img file of NIfTI-1 or -2.
StoredHeader read_nifti_header(const std::string& path);

/// A .nrrd or .nhdr file. Positions in the spaces RAS and LAS are turned; other spaces are taken
/// for LPS, as by ITK.
StoredHeader read_nrrd_header(const std::string& path);

/// A MetaImage: .mha, or .mhd with one raw or zlib-compressed data file.
StoredHeader read_meta_header(const std::string& path);

/// The bytes before the raw voxels of a .nii, .nrrd or .mha file. Of NRRD and MetaImage frames
/// are the third axis of pictures.
std::string nifti_header(const std::string& path, const Pixels& pixels);
std::string nrrd_header(const std::string& path, const Pixels& pixels);
std::string meta_header(const std::string& path, const Pixels& pixels);

/// Whole files. Voxels of NIfTI are compressed if the path ends in .gz, those of NRRD by gzip,
/// those of MetaImage by zlib.
void write_nifti(const std::string& path, const Pixels& pixels);
void write_nrrd(const std::string& path, const Pixels& pixels);
void write_meta(const std::string& path, const Pixels& pixels);

}  // namespace larch::io
