// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "larch/data/vec.h"
#include "larch/data/volume.h"
#include "larch/io/dicom/dicom_codec.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::fuzz {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kWrittenBack = 1 << 14;  // voxels; larger images would only cost time

struct Folder {
  std::string path;
  Folder()
      : path((fs::temp_directory_path() / ("larch-fuzz-" + std::to_string(::getpid()))).string()) {
    fs::create_directories(path);
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

void require_same(const Volume<float>& a, const Volume<float>& b) {
  require(a.voxels() == b.voxels(), "an image that was written has another size");
  require(std::equal(a.begin(), a.end(), b.begin()), "an image that was written has other voxels");
  require_close(a.grid(), b.grid());
}

void write_and_read(const Volume<float>& image) {
  if (image.voxels() > kWrittenBack) return;
  // Of axes that are nearly parallel, single precision may make parallel ones.
  if (std::abs(determinant(image.grid().direction)) < 1e-3) return;
  const Vec3i size = image.grid().size;
  for (const char* ending : {".nii", ".mha"}) {
    if (std::max({size.x, size.y, size.z}) > 32767 && ending[1] == 'n') continue;
    const std::string path = folder() + "/back" + ending;
    write_volume(path, image);
    require_same(image, read_volume<float>(path));
  }
}

}  // namespace

void finding(const std::string& what) {
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

const std::string& folder() {
  static const Folder own;
  return own.path;
}

std::string file_of(const std::string& name, std::string_view bytes) {
  std::string path = folder() + "/" + name;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    std::fprintf(stderr, "cannot write %s: is the disk full?\n", path.c_str());
    std::_Exit(1);
  }
  return path;
}

void require_expected(const Error& error, std::initializer_list<ExitCode> codes,
                      const std::string& subject) {
  const std::string message = error.what();
  if (std::find(codes.begin(), codes.end(), error.code()) == codes.end()) {
    finding("exit code " + std::to_string(static_cast<int>(error.code())) + ": " + message);
  }
  if (message.find(subject) == std::string::npos) {
    finding("the message does not name '" + subject + "': " + message);
  }
}

void require_sound(const Grid& grid) {
  bool finite = true, positive = true;
  for (int axis = 0; axis < 3; ++axis) {
    positive = positive && grid.size[axis] > 0 && grid.spacing_mm[axis] > 0;
    for (int row = 0; row < 3; ++row) finite = finite && std::isfinite(grid.direction.m[row][axis]);
  }
  require(positive, "a size or spacing that is not positive was read");
  const Vec3d last{grid.size.x - 1.0, grid.size.y - 1.0, grid.size.z - 1.0};
  for (const Vec3d& corner : {Vec3d{0, 0, 0}, last}) {
    const Vec3d at = world_from_index(grid, corner);
    // An output in NIfTI has it in single precision.
    for (int axis = 0; axis < 3; ++axis) {
      finite = finite && std::isfinite(static_cast<float>(at[axis]));
    }
  }
  require(finite, "a geometry that is not finite in single precision was read");
}

void require_close(const Grid& a, const Grid& b) {
  bool close = a.size == b.size;
  for (int axis = 0; axis < 3; ++axis) {
    close = close && std::abs(a.spacing_mm[axis] - b.spacing_mm[axis]) <= 1e-5 * a.spacing_mm[axis];
    close = close && std::abs(a.origin_mm[axis] - b.origin_mm[axis]) <=
                         1e-6 * std::abs(a.origin_mm[axis]) + 1e-30;
    for (int row = 0; row < 3; ++row) {
      close = close && std::abs(a.direction.m[row][axis] - b.direction.m[row][axis]) <= 1e-5;
    }
  }
  require(close, "a geometry that was written reads back as another");
}

void read_image_file(const std::string& name, const std::string& subject) {
  const std::string path = folder() + "/" + name;
  ImageInfo info;
  ReadOptions options;
  options.nan_value = 0;
  const bool probed =
      accepts({ExitCode::kInput}, subject, [&] { info = probe_image(path, options); });
  if (probed) require_sound(info.grid);
  Volume<float> image;
  if (accepts({ExitCode::kInput}, subject, [&] { image = read_volume<float>(path, options); })) {
    require(probed, "voxels were read of an image whose header is refused");
    require(image.grid().size == info.grid.size,
            "the header and the voxels disagree about the size");
    require_sound(image.grid());
    require(std::all_of(image.begin(), image.end(), [](float v) { return std::isfinite(v); }),
            "a voxel that is not finite was read");
    write_and_read(image);
  }
  accepts({ExitCode::kInput}, subject, [&] { read_labels(path, label_options(options)); });
}

void decode_codestream(std::string_view bytes, io::TransferSyntax syntax) {
  constexpr int64_t kMaximumSamples = 1 << 20;  // larger images would only cost time
  const std::optional<io::Codestream> stream = io::read_codestream_header(bytes);
  const auto is_size = [](int64_t edge) { return edge > 0 && edge < 65536; };
  if (!stream || !is_size(stream->columns) || !is_size(stream->rows)) return;
  const int64_t samples = stream->columns * stream->rows * stream->samples;
  if (samples > kMaximumSamples) return;
  io::DicomObject object;
  object.path = "case";
  object.format.samples = stream->samples;
  object.format.bits_stored = stream->precision;
  object.format.high_bit = stream->precision - 1;
  object.format.representation = stream->is_signed ? 1 : 0;
  object.planes.resize(1);
  object.planes[0].size = {static_cast<int>(stream->columns), static_cast<int>(stream->rows), 1};
  accepts({ExitCode::kInput}, "case", [&] {
    const io::DecodedFrame frame = io::decode_frame(bytes, syntax, object);
    require(static_cast<int64_t>(frame.bytes.size()) == samples * (frame.container_bits / 8),
            "a frame of another size was decoded");
    require(frame.bytes == io::decode_frame(bytes, syntax, object).bytes,
            "a frame was decoded to two results");
  });
}

void read_image_bytes(const std::string& name, std::string_view bytes) {
  file_of(name, bytes);
  read_image_file(name, name);
}

void read_mesh_bytes(const std::string& name, std::string_view bytes) {
  constexpr size_t kMaximum = 1 << 12;  // triangles of what is written; more would only cost time
  const std::string path = file_of(name, bytes);
  Mesh mesh;
  if (!accepts({ExitCode::kInput}, name, [&] { mesh = read_mesh(path); })) return;
  require(!mesh.triangles.empty(), "a surface without triangles was read");
  const auto at = [&](int32_t v) { return mesh.vertices_mm.at(static_cast<size_t>(v)); };
  for (const Vec3i& t : mesh.triangles) {
    require(norm(at(t.x)) + norm(at(t.y)) + norm(at(t.z)) < 1e9, "a vertex is too far off");
  }
  if (mesh.triangles.size() > kMaximum) return;
  write_mesh(path, mesh);
  const Mesh back = read_mesh(path);
  require(back.triangles.size() == mesh.triangles.size(), "triangles were lost");
  for (size_t i = 0; i < mesh.triangles.size(); ++i) {
    const Vec3d was = at(mesh.triangles[i].x);
    const Vec3d is = back.vertices_mm.at(static_cast<size_t>(back.triangles[i].x));
    require(norm(was - is) <= 1e-6 * norm(was) + 1e-30, "a vertex was written as another");
  }
}

}  // namespace larch::fuzz
