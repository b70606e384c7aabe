// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/nifti.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/data/rotation.h"
#include "larch/files/file.h"
#include "larch/io/formats/analyze.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kBytes1 = 348, kBytes2 = 540;
/// Rounding of quaternions and float32 moves voxels by less than this share of one.
constexpr double kSameVoxels = 0.1;
/// After the header of a single file come four bytes that say whether extensions follow.
constexpr int kExtender = 4;
constexpr int kExtensionHead = 8;          ///< size and code
constexpr int64_t kMostComponents = 4096;  ///< of a vector, which are its fifth dimension

// The fields of both versions that matter here, still in RAS and in the units of the file.
struct Fields {
  int64_t dim[8] = {};
  double pixdim[8] = {};
  int datatype = 0, bitpix = 0, units = 0, intent = 0;
  double first_frame = 0;  ///< toffset
  double data_offset = 0, slope = 0, intercept = 0;
  int qform_code = 0, sform_code = 0;
  double quatern[3] = {}, qoffset[3] = {}, srow[3][4] = {};
  bool single_file = false;
};

Fields parse1(const FieldReader& in) {
  Fields f;
  for (int i = 0; i < 8; ++i) f.dim[i] = in.get<int16_t>(40 + 2 * i);
  for (int i = 0; i < 8; ++i) f.pixdim[i] = in.get<float>(76 + 4 * i);
  f.datatype = in.get<int16_t>(70);
  f.bitpix = in.get<int16_t>(72);
  f.data_offset = in.get<float>(108);
  f.slope = in.get<float>(112);
  f.intercept = in.get<float>(116);
  f.units = in.get<uint8_t>(123);
  f.intent = in.get<int16_t>(68);
  f.first_frame = in.get<float>(136);
  f.qform_code = in.get<int16_t>(252);
  f.sform_code = in.get<int16_t>(254);
  for (int i = 0; i < 3; ++i) {
    f.quatern[i] = in.get<float>(256 + 4 * i);
    f.qoffset[i] = in.get<float>(268 + 4 * i);
    for (int j = 0; j < 4; ++j) f.srow[i][j] = in.get<float>(280 + 16 * i + 4 * j);
  }
  f.single_file = in.get<uint8_t>(345) == '+';
  return f;
}

/// Those of ANALYZE; where NIfTI has more, ANALYZE has other things.
Fields parse_analyze(const FieldReader& in) {
  const Fields all = parse1(in);
  Fields f;
  std::copy(all.dim, all.dim + 8, f.dim);
  std::copy(all.pixdim, all.pixdim + 4, f.pixdim);
  f.datatype = all.datatype;
  f.bitpix = all.bitpix;
  f.data_offset = all.data_offset;
  return f;
}

Fields parse2(const FieldReader& in) {
  Fields f;
  for (int i = 0; i < 8; ++i) f.dim[i] = in.get<int64_t>(16 + 8 * i);
  for (int i = 0; i < 8; ++i) f.pixdim[i] = in.get<double>(104 + 8 * i);
  f.datatype = in.get<int16_t>(12);
  f.bitpix = in.get<int16_t>(14);
  f.data_offset = static_cast<double>(in.get<int64_t>(168));
  f.slope = in.get<double>(176);
  f.intercept = in.get<double>(184);
  f.units = in.get<int32_t>(500);
  f.intent = in.get<int32_t>(504);
  f.first_frame = in.get<double>(216);
  f.qform_code = in.get<int32_t>(344);
  f.sform_code = in.get<int32_t>(348);
  for (int i = 0; i < 3; ++i) {
    f.quatern[i] = in.get<double>(352 + 8 * i);
    f.qoffset[i] = in.get<double>(376 + 8 * i);
    for (int j = 0; j < 4; ++j) f.srow[i][j] = in.get<double>(400 + 32 * i + 8 * j);
  }
  f.single_file = in.get<uint8_t>(5) == '+';
  return f;
}

void set_type(const Fields& f, const std::string& path, Header& header) {
  struct Row {
    int code, bits;
    Component component;
    int channels;
  };
  constexpr Row kRows[] = {{2, 8, Component::kUint8, 1},      {4, 16, Component::kInt16, 1},
                           {8, 32, Component::kInt32, 1},     {16, 32, Component::kFloat32, 1},
                           {64, 64, Component::kFloat64, 1},  {128, 24, Component::kUint8, 3},
                           {256, 8, Component::kInt8, 1},     {512, 16, Component::kUint16, 1},
                           {768, 32, Component::kUint32, 1},  {1024, 64, Component::kInt64, 1},
                           {1280, 64, Component::kUint64, 1}, {2304, 32, Component::kUint8, 4}};
  for (const Row& row : kRows) {
    if (row.code != f.datatype) continue;
    if (row.bits != f.bitpix) {
      bad(path, "the header contradicts itself: data type " + std::to_string(f.datatype) +
                    " does not have " + std::to_string(f.bitpix) + " bits; it is damaged");
    }
    header.component = row.component;
    header.channels = row.channels;
    header.colour = row.channels > 1;
    return;
  }
  if (f.datatype == 32 || f.datatype == 1792) {
    bad(path, "complex voxels (2 components); take the magnitude first");
  }
  bad(path, "NIfTI data type " + std::to_string(f.datatype) +
                " is not supported; convert to float32 or an integer type");
}

void set_size(const Fields& f, const std::string& path, NiftiHeader& out) {
  if (f.dim[0] < 1 || f.dim[0] > 7) {
    bad(path, "the header gives " + std::to_string(f.dim[0]) + " dimensions; it is damaged");
  }
  if (f.dim[0] >= 5 && f.dim[5] > 1 && f.intent == static_cast<int>(NiftiIntent::kDisplacement)) {
    bad(path,
        "vectors of the intent 'displacement' (1006), about whose axes readers differ; write them "
        "as "
        "LPS with the intent 'vector' (1007)");
  }
  int64_t frames = 1;
  for (int i = 1; i <= 7; ++i) {
    const int64_t n = i <= f.dim[0] ? f.dim[i] : 1;
    if (n < 1 || n > INT32_MAX) {
      bad(path, "the header gives a size of " + std::to_string(n) + " along axis " +
                    std::to_string(i) + "; the file is empty or damaged");
    }
    if (i <= 3) out.header.grid.size[i - 1] = static_cast<int32_t>(n);
    if (i == 5 && f.intent == static_cast<int>(NiftiIntent::kVector) && n > 1 &&
        n <= kMostComponents && !out.header.colour) {
      out.header.channels = static_cast<int>(n);
      continue;
    }
    if (i > 3 && __builtin_mul_overflow(frames, n, &frames)) frames = INT64_MAX;
  }
  out.frames = static_cast<int>(std::min<int64_t>(frames, INT32_MAX));
  if (out.frames > 1 && out.header.channels > 1 && !out.header.colour) {
    bad(path, "a vector for each voxel and several frames; write one frame to a file of its own");
  }
}

// The quaternion of nifti1.h, "method 2".
Mat3 rotation(const double* q) {
  double b = q[0], c = q[1], d = q[2];
  double a = 1 - (b * b + c * c + d * d);
  if (a < 1e-7) {  // a rotation by 180 degrees, up to rounding
    const double length = std::sqrt(b * b + c * c + d * d);
    b /= length;
    c /= length;
    d /= length;
    a = 0;
  } else {
    a = std::sqrt(a);
  }
  return rotation_matrix({a, b, c, d});
}

// Spacings of qform and of no form at all. A missing spacing of a missing axis is 1.
Vec3d header_spacing(const Fields& f, const std::string& path) {
  Vec3d spacing{};
  for (int axis = 0; axis < 3; ++axis) {
    const double value = std::abs(f.pixdim[axis + 1]);
    const bool absent = axis >= f.dim[0] || f.dim[axis + 1] == 1;
    if (!std::isfinite(value)) bad(path, "a voxel spacing in the header is not finite");
    if (value == 0 && !absent)
      bad(path, "a voxel spacing in the header is zero; repair the header");
    spacing[axis] = value > 0 ? value : 1;
  }
  return spacing;
}

/// The codes of transforms that the format has are 0 to this one.
constexpr int kMostFrameCode = 5;

bool is_frame_code(int code) {
  return code >= 0 && code <= kMostFrameCode;
}

/// Codes that later versions of the format may add say at least that there is an orientation.
WorldFrame frame_of(int code) {
  return code <= kMostFrameCode ? static_cast<WorldFrame>(std::max(code, 0)) : WorldFrame::kAligned;
}

/// Which of the two transforms counts: see read_volume.
enum class Form { kSform, kQform, kNone };

/// The geometry by one of the transforms, in LPS mm.
Grid grid_by(Form form, const Fields& f, const Vec3i& size, const std::string& path) {
  Grid grid;
  grid.size = size;
  const int spatial_units = f.units & 7;
  const double mm = spatial_units == 1 ? 1000.0 : spatial_units == 3 ? 0.001 : 1.0;
  if (form == Form::kSform) {
    grid.frame = frame_of(f.sform_code);
    for (int axis = 0; axis < 3; ++axis) {
      const double length = norm(Vec3d{f.srow[0][axis], f.srow[1][axis], f.srow[2][axis]});
      if (!std::isfinite(length) || length <= 0) {
        bad(path,
            "the sform of the header cannot be inverted; repair it, or set sform_code to 0 "
            "to use the qform");
      }
      grid.spacing_mm[axis] = length;
      for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = f.srow[row][axis] / length;
    }
    grid.origin_mm = {f.srow[0][3], f.srow[1][3], f.srow[2][3]};
  } else {
    grid.spacing_mm = header_spacing(f, path);
    grid.frame = form == Form::kQform ? frame_of(f.qform_code) : WorldFrame::kUnknown;
    if (form == Form::kQform) {
      const Vec3d q{f.quatern[0], f.quatern[1], f.quatern[2]};
      if (!(norm(q) < 1.01)) bad(path, "the quaternion of the qform is longer than 1; repair it");
      grid.direction = rotation(f.quatern);
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

/// How far the corners of two grids of one size are apart, in voxels of the first.
double distance_in_voxels(const Grid& a, const Grid& b) {
  double farthest = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3d at{corner & 1 ? a.size.x - 1.0 : 0, corner & 2 ? a.size.y - 1.0 : 0,
                   corner & 4 ? a.size.z - 1.0 : 0};
    farthest = std::max(farthest, norm(world_from_index(a, at) - world_from_index(b, at)));
  }
  return farthest / std::min({a.spacing_mm.x, a.spacing_mm.y, a.spacing_mm.z});
}

/// Tells whether a transform leads to other places than `grid`; none if it is damaged.
std::optional<bool> leads_elsewhere(Form form, const Fields& f, const Grid& grid,
                                    const std::string& path) {
  try {
    return !(distance_in_voxels(grid, grid_by(form, f, grid.size, path)) <= kSameVoxels);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Names codes that the format does not have. Throws InputError if one of the transforms leads to
/// other places than the grid of the header: such a code does not tell which of them counts.
void check_frame_codes(const Fields& f, const std::string& path, Header& header) {
  if (is_frame_code(f.sform_code) && is_frame_code(f.qform_code)) return;
  const std::string codes = "sform_code " + std::to_string(f.sform_code) + " and qform_code " +
                            std::to_string(f.qform_code) + ": NIfTI has codes from 0 to 5";
  for (const auto& [form, code] :
       {std::pair(Form::kSform, f.sform_code), std::pair(Form::kQform, f.qform_code)}) {
    if (code == 0 || leads_elsewhere(form, f, header.grid, path) != true) continue;
    bad(path, codes +
                  ", and sform and qform lead to different places, so that it is not known which "
                  "counts; repair the codes, with 0 for what does not count");
  }
  header.warnings.push_back("'" + path + "': " + codes +
                            "; higher ones are taken for 2 (aligned), lower ones for 0");
}

void set_geometry(const Fields& f, const std::string& path, Header& header) {
  Grid& grid = header.grid;
  const Form form = f.sform_code > 0 ? Form::kSform : f.qform_code > 0 ? Form::kQform : Form::kNone;
  grid = grid_by(form, f, grid.size, path);
  check_geometry(grid, path);
  if (form == Form::kNone) {
    header.warnings.push_back(
        "'" + path +
        "': sform_code and qform_code are 0, so that neither sides nor positions are known: the "
        "axes are taken to run to the right, to the front and upwards, and pictures have no "
        "letters");
  }
  check_frame_codes(f, path, header);
  // With two codes they may well be two worlds; with one, one of the transforms is wrong.
  if (form != Form::kSform || f.qform_code != f.sform_code) return;
  if (leads_elsewhere(Form::kQform, f, grid, path) == false) return;
  header.warnings.push_back("'" + path +
                            "': sform and qform have one code and lead to different places; the "
                            "sform is used");
}

/// Of frames along the fourth dimension; of further ones pixdim[4] says nothing.
void set_times(const Fields& f, int frames, Header& header) {
  if (frames > 1 && (f.dim[0] < 4 || f.dim[4] != frames)) return;
  const int unit = f.units & 56;
  const double unit_ms = unit == 8 ? 1e3 : unit == 16 ? 1 : unit == 24 ? 1e-3 : 0;
  if (!(f.pixdim[4] > 0) || !std::isfinite(f.pixdim[4]) || !std::isfinite(f.first_frame)) return;
  header.times = {f.pixdim[4], f.first_frame, unit_ms};
}

void set_scaling(const Fields& f, const std::string& path, Header& header) {
  if (f.slope == 0 || header.colour) return;  // nifti1.h: zero means that there is no scaling
  if (!std::isfinite(f.slope) || !std::isfinite(f.intercept)) {
    // Other software writes NaN for "no scaling".
    if (std::isnan(f.slope) && (std::isnan(f.intercept) || f.intercept == 0)) return;
    bad(path, "scl_slope or scl_inter of the header is not finite; repair the header");
  }
  header.slope = f.slope;
  header.intercept = f.intercept;
}

/// `given`: the file that was asked for, the header itself or one with voxels.
void set_data(const Fields& f, const std::string& path, const std::string& given,
              NiftiHeader& out) {
  // A single file may leave vox_offset at zero. Of the bytes 348 to 351 readers differ about what
  // stands there (some begin the voxels at once), so that such a file is not guessed at.
  const int least = f.single_file ? out.header_bytes + kExtender : 0;
  const double offset = f.data_offset == 0 ? least : f.data_offset;
  const bool inside = offset >= 0 && offset < least && guarded(Guard::kNiftiOffset);
  if (inside) {
    bad(path, "the header places the voxels at byte " +
                  std::to_string(static_cast<int64_t>(f.data_offset)) +
                  ", inside the header itself, which takes " + std::to_string(least) +
                  " bytes; repair vox_offset, or convert the file again");
  }
  if (!(offset >= 0 && offset < 1e15) || offset != std::floor(offset)) {
    bad(path, "the header places the voxels at an impossible offset; it is damaged");
  }
  out.data_offset = static_cast<int64_t>(offset);
  out.data_path = path;
  if (f.single_file) return;
  if (given != path) {  // there may be another one, compressed or not
    out.data_path = given;
    return;
  }
  std::filesystem::path data = path;
  const bool compressed = data.extension() == ".gz";
  if (compressed) data.replace_extension();
  const std::string ending = data.extension().string();
  data.replace_extension(ending == ".HDR" || ending == ".IMG" ? ".IMG" : ".img");
  for (const char* suffix : {"", ".gz"}) {
    if (is_file(data.string() + suffix)) {
      out.data_path = data.string() + suffix;
      return;
    }
  }
  bad(path, "the voxels should stand in '" + data.string() + "', which is missing");
}

struct Extension {
  int64_t size;
  int32_t code;
  bool sound() const { return size >= 16 && size % 16 == 0; }
};

/// The next extension without its content; nothing at the end of the file.
std::optional<Extension> read_extension(ZReader& in, bool swapped) {
  char bytes[kExtensionHead] = {};
  if (in.read(bytes, kExtensionHead) < kExtensionHead) return std::nullopt;
  const FieldReader reader{bytes, swapped};
  return Extension{reader.get<int32_t>(0), reader.get<int32_t>(4)};
}

/// Extensions stand between the header of a single file and its voxels. One that reaches beyond
/// vox_offset would be read as voxels, or vox_offset is wrong. All else between them changes no
/// voxel: padding, a mark without extensions, and extensions whose size is no multiple of 16.
void check_extensions(ZReader& in, const NiftiHeader& nifti) {
  const std::string& path = nifti.header_path;
  char mark[kExtender] = {};
  if (nifti.data_path != path) return;
  if (in.read(mark, kExtender) < kExtender || mark[0] == 0) return;
  constexpr int kMostCode = 1000;
  const int64_t end = nifti.data_offset;
  int64_t at = nifti.header_bytes + kExtender;
  do {
    const auto next = read_extension(in, nifti.swapped);
    if (!next || next->code < 0 || next->code > kMostCode) return;
    // Where there is no room for an extension, only one without a flaw is told from voxels.
    const bool likely = next->sound() || (at < end && next->size >= kExtensionHead);
    if (likely && next->size > end - at) {
      bad(path, "the header places the voxels at byte " + std::to_string(end) +
                    ", inside a header extension of " + std::to_string(next->size) +
                    " bytes; repair vox_offset, or convert the file again");
    }
    if (!next->sound()) return;
    in.skip(next->size - kExtensionHead);
    at += next->size;
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

bool has_mark(const std::array<char, kBytes2>& bytes, bool version2) {
  const char* mark = bytes.data() + (version2 ? 4 : 344);
  const char number = version2 ? '2' : '1';
  return mark[0] == 'n' && (mark[1] == '+' || mark[1] == 'i') && mark[2] == number;
}

}  // namespace

NiftiHeader read_nifti_header(const std::string& given_path) {
  const std::string path = header_path_of(given_path);
  ZReader in(path, 0, 4096);
  std::array<char, kBytes2> bytes{};
  if (in.read(bytes.data(), kBytes1) < kBytes1) {
    bad(path, "not a NIfTI file: shorter than its header of 348 bytes; truncated?");
  }
  int32_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 4);
  NiftiHeader out;
  out.swapped = header_size != kBytes1 && header_size != kBytes2;
  if (out.swapped) header_size = byte_swapped(header_size);
  if (header_size != kBytes1 && header_size != kBytes2) {
    bad(path, "not a NIfTI file: the header does not start with 348 or 540");
  }
  const bool version2 = header_size == kBytes2;
  if (version2 && in.read(bytes.data() + kBytes1, kBytes2 - kBytes1) < kBytes2 - kBytes1) {
    bad(path, "shorter than its NIfTI-2 header of 540 bytes; truncated?");
  }
  const bool marked = has_mark(bytes, version2);
  const bool analyze = !marked && !version2 && is_analyze(path, bytes.data());
  if (!marked && !analyze) bad(path, "a damaged NIfTI header: it has no 'n+1' or 'ni1' mark");
  out.header_path = path;
  out.header_bytes = header_size;
  const FieldReader reader{bytes.data(), out.swapped};
  if (analyze) check_analyze(path, reader);
  const Fields fields = version2  ? parse2(reader)
                        : analyze ? parse_analyze(reader)
                                  : parse1(reader);
  set_type(fields, path, out.header);
  set_size(fields, path, out);
  if (analyze) {
    out.header.grid.spacing_mm = header_spacing(fields, path);
    set_analyze_geometry(path, out.header);
    check_geometry(out.header.grid, path);
  } else {
    set_geometry(fields, path, out.header);
  }
  set_scaling(fields, path, out.header);
  set_times(fields, out.frames, out.header);
  set_data(fields, path, given_path, out);
  out.header.most_bytes = ZReader(out.data_path).most_bytes() - out.data_offset;
  if (guarded(Guard::kNiftiOffset)) check_extensions(in, out);
  return out;
}

RawImage read_nifti(const std::string& path, const Selection& selection) {
  const NiftiHeader nifti = read_nifti_header(path);
  const FrameRange range = chosen_frames(path, nifti.frames, selection);
  require_components(path, nifti.header);
  ZReader in(nifti.data_path);
  const int64_t frame_bytes = checked_bytes(nifti.header, nifti.data_path, nifti.frames);
  const int64_t bytes = frame_bytes * range.count;
  RawImage raw{nifti.header, allocate_voxels(bytes, path)};
  in.skip(nifti.data_offset + range.first * frame_bytes);
  const int64_t got = in.read(raw.voxels.data(), bytes);
  if (got < bytes) {
    bad(nifti.data_path, "truncated: " + std::to_string(got) + " of " + std::to_string(bytes) +
                             " bytes of voxels are there; copy or export the file again");
  }
  in.finish();
  if (nifti.swapped) swap_all(raw.voxels, bytes_of(nifti.header.component));
  return raw;
}

}  // namespace larch::io
