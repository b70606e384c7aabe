// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch {

/// Makes the programs that use ITK read and write images as Larch does: itk::ImageFileReader and
/// itk::ImageFileWriter take Larch's classes for DICOM (files and folders), NIfTI, NRRD, MetaImage,
/// TIFF, PNG and JPEG, whatever else is registered. Files that end in .dcm are written by ITK's own
/// class. To be called once, before the first image; again it does nothing.
void register_image_io();

}  // namespace larch
