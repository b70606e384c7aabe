// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/data/pose.h"
#include "larch/files/file.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/formats/formats.h"

namespace larch::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kBytes1 = 348, kBytes2 = 540;
/// Rounding of quaternions and float32 moves voxels by less than this share of one.
constexpr double kSameVoxels = 0.1;
/// After the header of a single file come four bytes that say whether extensions follow.
constexpr int kExtender = 4;
constexpr int kExtensionHead = 8;             ///< size and code
constexpr int64_t kMaximumComponents = 4096;  ///< of a vector, which are its fifth dimension
/// Says what a file says about its values.
constexpr int kIntentDisplacement = 1006, kIntentVector = 1007;

struct Type {
  int code;
  Component component;
  int channels = 1;

  int bits() const { return 8 * bytes_of(component) * channels; }
};
constexpr Type kTypes[] = {
    {2, Component::kUint8},     {256, Component::kInt8},     {512, Component::kUint16},
    {4, Component::kInt16},     {768, Component::kUint32},   {8, Component::kInt32},
    {1280, Component::kUint64}, {1024, Component::kInt64},   {16, Component::kFloat32},
    {64, Component::kFloat64},  {128, Component::kUint8, 3}, {2304, Component::kUint8, 4}};

/// The first bytes of the fields of a header that matter here.
struct Layout {
  int dim, pixdim, datatype, bitpix, offset, slope, intercept, units, intent, first_frame, qform,
      sform, quatern, qoffset, srow, mark;
};
constexpr Layout kLayout1{40, 76,  70,  72,  108, 112, 116, 123,
                          68, 136, 252, 254, 256, 268, 280, 344};
constexpr Layout kLayout2{16,  104, 12,  14,  168, 176, 184, 500,
                          504, 216, 344, 348, 352, 376, 400, 4};

/// These fields, still in RAS and in the units of the file.
struct Fields {
  std::string path;  ///< of the header
  int64_t dim[8] = {};
  double pixdim[8] = {};
  int datatype = 0, bitpix = 0, units = 0, intent = 0;
  double first_frame = 0;  ///< toffset
  double data_offset = 0, slope = 0, intercept = 0;
  int qform_code = 0, sform_code = 0;
  double quatern[3] = {}, qoffset[3] = {}, srow[3][4] = {};
  bool single_file = false;
};

template <class Size, class Real, class Code, class Units, class Offset>
Fields parse(const FieldReader& in, const Layout& at) {
  constexpr int kSize = sizeof(Size), kReal = sizeof(Real);
  Fields f;
  for (int i = 0; i < 8; ++i) f.dim[i] = in.get<Size>(at.dim + kSize * i);
  for (int i = 0; i < 8; ++i) f.pixdim[i] = in.get<Real>(at.pixdim + kReal * i);
  f.datatype = in.get<int16_t>(at.datatype);
  f.bitpix = in.get<int16_t>(at.bitpix);
  f.data_offset = static_cast<double>(in.get<Offset>(at.offset));
  f.slope = in.get<Real>(at.slope);
  f.intercept = in.get<Real>(at.intercept);
  f.units = in.get<Units>(at.units);
  f.intent = in.get<Code>(at.intent);
  f.first_frame = in.get<Real>(at.first_frame);
  f.qform_code = in.get<Code>(at.qform);
  f.sform_code = in.get<Code>(at.sform);
  for (int i = 0; i < 3; ++i) {
    f.quatern[i] = in.get<Real>(at.quatern + kReal * i);
    f.qoffset[i] = in.get<Real>(at.qoffset + kReal * i);
    for (int j = 0; j < 4; ++j) f.srow[i][j] = in.get<Real>(at.srow + kReal * (4 * i + j));
  }
  f.single_file = in.get<uint8_t>(at.mark + 1) == '+';
  return f;
}

void set_type(const Fields& f, Header& header) {
  for (const Type& type : kTypes) {
    if (type.code != f.datatype) continue;
    if (type.bits() != f.bitpix) {
      bad(f.path, "the header contradicts itself: data type " + std::to_string(f.datatype) +
                      " does not have " + std::to_string(f.bitpix) + " bits; it is damaged");
    }
    header.component = type.component;
    header.channels = type.channels;
    header.colour = type.channels > 1;
    return;
  }
  if (f.datatype == 32 || f.datatype == 1792) {
    bad(f.path, "complex voxels (2 components); take the magnitude first");
  }
  bad(f.path, "NIfTI data type " + std::to_string(f.datatype) +
                  " is not supported; convert to float32 or an integer type");
}

void set_size(const Fields& f, StoredHeader& out) {
  if (f.dim[0] < 1 || f.dim[0] > 7) {
    bad(f.path, "the header gives " + std::to_string(f.dim[0]) + " dimensions; it is damaged");
  }
  if (f.dim[0] >= 5 && f.dim[5] > 1 && f.intent == kIntentDisplacement) {
    bad(f.path,
        "vectors of the intent 'displacement' (1006), about whose axes readers differ; write them "
        "as LPS with the intent 'vector' (1007)");
  }
  int64_t frames = 1;
  for (int i = 1; i <= 7; ++i) {
    const int64_t n = i <= f.dim[0] ? f.dim[i] : 1;
    if (n < 1 || n > INT32_MAX) {
      bad(f.path, "the header gives a size of " + std::to_string(n) + " along axis " +
                      std::to_string(i) + "; the file is empty or damaged");
    }
    if (i <= 3) out.header.grid.size[i - 1] = static_cast<int32_t>(n);
    if (i == 5 && f.intent == kIntentVector && n > 1 && n <= kMaximumComponents &&
        !out.header.colour) {
      out.header.channels = static_cast<int>(n);
      continue;
    }
    if (i > 3 && __builtin_mul_overflow(frames, n, &frames)) frames = INT64_MAX;
  }
  out.header.frames = static_cast<int>(std::min<int64_t>(frames, INT32_MAX));
  if (out.header.frames > 1 && out.header.channels > 1 && !out.header.colour) {
    bad(f.path, "a vector for each voxel and several frames; write one frame to a file of its own");
  }
}

/// Returns the quaternion of nifti1.h, "method 2".
Mat3 rotation(const Vec3d& q) {
  const double rest = 1 - dot(q, q);
  if (rest >= 1e-7) return rotation_matrix({std::sqrt(rest), q.x, q.y, q.z});
  const double length = norm(q);  // a rotation by 180 degrees, up to rounding
  return rotation_matrix({0, q.x / length, q.y / length, q.z / length});
}

// Spacings of qform and of no form at all. A missing spacing of a missing axis is 1.
Vec3d header_spacing(const Fields& f) {
  Vec3d spacing{};
  for (int axis = 0; axis < 3; ++axis) {
    const double value = std::abs(f.pixdim[axis + 1]);
    const bool absent = axis >= f.dim[0] || f.dim[axis + 1] == 1;
    if (!std::isfinite(value)) bad(f.path, "a voxel spacing in the header is not finite");
    if (value == 0 && !absent)
      bad(f.path, "a voxel spacing in the header is zero; repair the header");
    spacing[axis] = value > 0 ? value : 1;
  }
  return spacing;
}

/// The codes of transforms that the format has are 0 to this one.
constexpr int kMaximumFrameCode = 5;

/// Codes that later versions of the format may add say at least that there is an orientation.
WorldFrame frame_of(int code) {
  return code <= kMaximumFrameCode ? static_cast<WorldFrame>(std::max(code, 0))
                                   : WorldFrame::kAligned;
}

/// Which of the two transforms counts.
enum class Form { kSform, kQform, kNone };

/// Returns the geometry by one of the transforms, in LPS mm.
Grid grid_by(Form form, const Fields& f, const Vec3i& size) {
  Grid grid;
  grid.size = size;
  const int spatial_units = f.units & 7;
  const double mm = spatial_units == 1 ? 1000.0 : spatial_units == 3 ? 0.001 : 1.0;
  if (form == Form::kSform) {
    grid.frame = frame_of(f.sform_code);
    for (int axis = 0; axis < 3; ++axis) {
      const double length = norm(Vec3d{f.srow[0][axis], f.srow[1][axis], f.srow[2][axis]});
      if (!std::isfinite(length) || length <= 0) {
        bad(f.path,
            "the sform of the header cannot be inverted; repair it, or set sform_code to 0 "
            "to use the qform");
      }
      grid.spacing_mm[axis] = length;
      for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = f.srow[row][axis] / length;
    }
    grid.origin_mm = {f.srow[0][3], f.srow[1][3], f.srow[2][3]};
  } else {
    grid.spacing_mm = header_spacing(f);
    grid.frame = form == Form::kQform ? frame_of(f.qform_code) : WorldFrame::kUnknown;
    if (form == Form::kQform) {
      const Vec3d q{f.quatern[0], f.quatern[1], f.quatern[2]};
      if (!(norm(q) < 1.01)) bad(f.path, "the quaternion of the qform is longer than 1; repair it");
      grid.direction = rotation(q);
      if (f.pixdim[0] < 0) {
        for (auto& row : grid.direction.m) row[2] = -row[2];
      }
      grid.origin_mm = {f.qoffset[0], f.qoffset[1], f.qoffset[2]};
    }
  }
  grid.spacing_mm = grid.spacing_mm * mm;
  grid.origin_mm = {-grid.origin_mm.x * mm, -grid.origin_mm.y * mm, grid.origin_mm.z * mm};
  for (int column = 0; column < 3; ++column) {  // RAS to LPS
    for (int row = 0; row < 2; ++row) grid.direction.m[row][column] *= -1;
  }
  for (auto& row : grid.direction.m) {
    for (double& value : row) value += 0.0;  // no negative zeros
  }
  grid.origin_mm += Vec3d{0, 0, 0};
  return grid;
}

/// How far a transform moves the corners of `grid`, in voxels; NaN if it is damaged.
double moved_by(Form form, const Fields& f, const Grid& grid) {
  double farthest = 0;
  try {
    const Grid other = grid_by(form, f, grid.size);
    for (int corner = 0; corner < 8; ++corner) {
      const Vec3d at{corner & 1 ? grid.size.x - 1.0 : 0, corner & 2 ? grid.size.y - 1.0 : 0,
                     corner & 4 ? grid.size.z - 1.0 : 0};
      farthest = std::max(farthest, norm(world_from_index(grid, at) - world_from_index(other, at)));
    }
  } catch (const InputError&) {
    return std::nan("");
  }
  return farthest / std::min({grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z});
}

/// Names codes that the format does not have. Throws InputError if one of the transforms leads to
/// other places than the grid of the header: such a code does not tell which of them counts.
void check_frame_codes(const Fields& f, Header& header) {
  const auto [lowest, highest] = std::minmax(f.sform_code, f.qform_code);
  if (lowest >= 0 && highest <= kMaximumFrameCode) return;
  const std::string codes = "sform_code " + std::to_string(f.sform_code) + " and qform_code " +
                            std::to_string(f.qform_code) + ": NIfTI has codes from 0 to 5";
  for (const Form form : {Form::kSform, Form::kQform}) {
    const int code = form == Form::kSform ? f.sform_code : f.qform_code;
    if (code == 0 || !(moved_by(form, f, header.grid) > kSameVoxels)) continue;
    bad(f.path, codes +
                    ", and sform and qform lead to different places, so that it is not known which "
                    "counts; repair the codes, with 0 for what does not count");
  }
  header.warnings.push_back("'" + f.path + "': " + codes +
                            "; higher ones are taken for 2 (aligned), lower ones for 0");
}

void set_geometry(const Fields& f, Header& header) {
  Grid& grid = header.grid;
  const Form form = f.sform_code > 0 ? Form::kSform : f.qform_code > 0 ? Form::kQform : Form::kNone;
  grid = grid_by(form, f, grid.size);
  check_geometry(grid, f.path);
  if (form == Form::kNone) {
    header.warnings.push_back(
        "'" + f.path +
        "': sform_code and qform_code are 0, so that neither sides nor positions are known: the "
        "axes are taken to run to the right, to the front and upwards, and pictures have no "
        "letters");
  }
  check_frame_codes(f, header);
  // With two codes they may well be two worlds; with one, one of the transforms is wrong.
  if (form != Form::kSform || f.qform_code != f.sform_code) return;
  if (moved_by(Form::kQform, f, grid) <= kSameVoxels) return;
  header.warnings.push_back("'" + f.path +
                            "': sform and qform have one code and lead to different places; the "
                            "sform is used");
}

/// Of frames along the fourth dimension; of further ones pixdim[4] says nothing.
void set_times(const Fields& f, Header& header) {
  const int frames = header.frames;
  if (frames > 1 && (f.dim[0] < 4 || f.dim[4] != frames)) return;
  const int unit = f.units & 56;
  const double unit_ms = unit == 8 ? 1e3 : unit == 16 ? 1 : unit == 24 ? 1e-3 : 0;
  if (!(f.pixdim[4] > 0) || !std::isfinite(f.pixdim[4]) || !std::isfinite(f.first_frame)) return;
  header.times = {f.pixdim[4], f.first_frame, unit_ms};
}

void set_scaling(const Fields& f, Header& header) {
  if (f.slope == 0 || header.colour) return;  // nifti1.h: zero means that there is no scaling
  if (!std::isfinite(f.slope) || !std::isfinite(f.intercept)) {
    // Other software writes NaN for "no scaling".
    if (std::isnan(f.slope) && (std::isnan(f.intercept) || f.intercept == 0)) return;
    bad(f.path, "scl_slope or scl_inter of the header is not finite; repair the header");
  }
  header.slope = f.slope;
  header.intercept = f.intercept;
}

/// `given`: the file that was asked for, the header itself or one with voxels.
void set_data(const Fields& f, const std::string& given, int header_bytes, StoredHeader& out) {
  const std::string& path = out.path;
  // A single file may leave vox_offset at zero. Of the bytes 348 to 351 readers differ about what
  // stands there (some begin the voxels at once), so that such a file is not guessed at.
  const int least = f.single_file ? header_bytes + kExtender : 0;
  const double offset = f.data_offset == 0 ? least : f.data_offset;
  if (offset >= 0 && offset < least && guarded(Guard::kNiftiOffset)) {
    bad(path, "the header places the voxels at byte " +
                  std::to_string(static_cast<int64_t>(f.data_offset)) +
                  ", inside the header itself, which takes " + std::to_string(least) +
                  " bytes; repair vox_offset, or convert the file again");
  }
  if (!(offset >= 0 && offset < 1e15) || offset != std::floor(offset)) {
    bad(path, "the header places the voxels at an impossible offset; it is damaged");
  }
  out.place.byte = static_cast<int64_t>(offset);
  out.place.path = path;
  if (f.single_file) return;
  if (given != path) {  // there may be another one, compressed or not
    out.place.path = given;
    return;
  }
  std::filesystem::path data = path;
  const bool compressed = data.extension() == ".gz";
  if (compressed) data.replace_extension();
  const std::string ending = data.extension().string();
  data.replace_extension(ending == ".HDR" || ending == ".IMG" ? ".IMG" : ".img");
  for (const char* suffix : {"", ".gz"}) {
    if (is_file(data.string() + suffix)) {
      out.place.path = data.string() + suffix;
      return;
    }
  }
  bad(path, "the voxels should stand in '" + data.string() + "', which is missing");
}

/// Extensions stand between the header of a single file and its voxels. One that reaches beyond
/// vox_offset would be read as voxels, or vox_offset is wrong. All else between them changes no
/// voxel: padding, a mark without extensions, and extensions whose size is no multiple of 16.
void check_extensions(ZReader& in, int header_bytes, const StoredHeader& nifti) {
  if (nifti.place.path != nifti.path) return;
  char head[kExtensionHead] = {};
  if (in.read(head, kExtender) < kExtender || head[0] == 0) return;
  constexpr int kMaximumCode = 1000;
  const int64_t end = nifti.place.byte;
  int64_t at = header_bytes + kExtender;
  do {
    if (in.read(head, kExtensionHead) < kExtensionHead) return;
    const FieldReader fields{head, nifti.place.swapped};
    const int64_t size = fields.get<int32_t>(0);
    const int code = fields.get<int32_t>(4);
    if (code < 0 || code > kMaximumCode) return;
    const bool sound = size >= 16 && size % 16 == 0;
    // Where there is no room for an extension, only one without a flaw is told from voxels.
    const bool likely = sound || (at < end && size >= kExtensionHead);
    if (likely && size > end - at) {
      bad(nifti.path, "the header places the voxels at byte " + std::to_string(end) +
                          ", inside a header extension of " + std::to_string(size) +
                          " bytes; repair vox_offset, or convert the file again");
    }
    if (!sound) return;
    in.skip(size - kExtensionHead);
    at += size;
  } while (end - at >= kExtensionHead);
}

std::string header_path_of(const std::string& path) {
  const std::string ending = file_extension(path);
  if (ending != ".img" && ending != ".img.gz") return path;
  for (const char* candidate : {".hdr", ".hdr.gz", ".HDR"}) {
    std::string header = path.substr(0, path.size() - ending.size()) + candidate;
    if (is_file(header)) return header;
  }
  bad(path, "the header file (.hdr) beside it is missing");
}

}  // namespace

StoredHeader read_nifti_header(const std::string& given_path) {
  const std::string path = header_path_of(given_path);
  ZReader in(path, 0, 4096);
  std::array<char, kBytes2> bytes{};
  if (in.read(bytes.data(), kBytes1) < kBytes1) {
    bad(path, "not a NIfTI file: shorter than its header of 348 bytes; truncated?");
  }
  int32_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 4);
  StoredHeader out;
  const bool swapped = header_size != kBytes1 && header_size != kBytes2;
  out.place.swapped = swapped;
  if (swapped) header_size = byte_swapped(header_size);
  if (header_size != kBytes1 && header_size != kBytes2) {
    bad(path, "not a NIfTI file: the header does not start with 348 or 540");
  }
  const bool version2 = header_size == kBytes2;
  if (version2 && in.read(bytes.data() + kBytes1, kBytes2 - kBytes1) < kBytes2 - kBytes1) {
    bad(path, "shorter than its NIfTI-2 header of 540 bytes; truncated?");
  }
  const std::string mark(bytes.data() + (version2 ? kLayout2 : kLayout1).mark, 3);
  const std::string number = version2 ? "2" : "1";
  if (mark != "n+" + number && mark != "ni" + number) {
    const bool pair = file_extension(path).starts_with(".hdr");
    // The older format of a pair has no mark; half of one is damage.
    if (!pair || bytes[344] == 'n') {
      bad(path, "a damaged NIfTI header: it has no 'n+1' or 'ni1' mark");
    }
    bad(path,
        "this is ANALYZE 7.5, which does not say which side is left; convert it with the program "
        "that wrote it, or with SPM or FSL, to NIfTI");
  }
  out.path = path;
  const FieldReader reader{bytes.data(), swapped};
  Fields fields = version2 ? parse<int64_t, double, int32_t, int32_t, int64_t>(reader, kLayout2)
                           : parse<int16_t, float, int16_t, uint8_t, float>(reader, kLayout1);
  fields.path = path;
  set_type(fields, out.header);
  set_size(fields, out);
  set_geometry(fields, out.header);
  set_scaling(fields, out.header);
  set_times(fields, out.header);
  set_data(fields, given_path, header_size, out);
  if (guarded(Guard::kNiftiOffset)) check_extensions(in, header_size, out);
  std::optional<ZReader> of_voxels;
  if (out.place.path != path) of_voxels.emplace(out.place.path);
  const ZReader& data = of_voxels ? *of_voxels : in;
  out.header.most_bytes = data.most_bytes() - out.place.byte;
  out.place.values_between = out.header.colour ? 1 : out.header.grid.voxels();
  if (data.compressed()) {  // the header is in the stream
    out.place.packing = Packing::kGzip;
    std::swap(out.place.byte, out.place.skipped);
  }
  return out;
}

}  // namespace larch::io
