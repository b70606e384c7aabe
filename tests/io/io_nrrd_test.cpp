// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// NRRD headers of every kind, sound and hostile.
#include <sstream>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

constexpr const char* kType = "type: uint8\n";
constexpr const char* kSizes = "dimension: 3\nsizes: 4 3 2\n";
constexpr const char* kRaw = "encoding: raw\n";

std::string nrrd(const std::string& fields, const std::string& data) {
  return "NRRD0004\n" + fields + "\n" + data;
}

/// A sound file with one more line.
std::string nrrd_with(const std::string& line) {
  return nrrd(std::string(kType) + kSizes + kRaw + line, counted(24));
}

Volume<float> read(const TemporaryFolder& folder, const std::string& bytes,
                   const std::string& name = "image.nrrd") {
  write_file(folder / name, bytes);
  return read_volume<float>(folder / name);
}

bool holds_values(const Volume<float>& volume) {
  bool same = volume.voxels() == 24;
  for (int64_t i = 0; same && i < 24; ++i) same = volume[i] == static_cast<float>(i);
  return same;
}

}  // namespace

TEST_CASE("NRRD: no length of any word of a header is more than an error") {
  const TemporaryFolder folder;
  for (const size_t length : {250, 1100, 70000}) {
    const std::string word(length, 'A');
    INFO(length);
    std::istringstream names(
        "type|encoding|endian|space|kinds|centers|sizes|dimension|spacings|axis mins|space "
        "directions|space origin|line skip|byte skip|data file|space dimension|units|space "
        "units|unheard of||");
    for (std::string field; std::getline(names, field, '|');) {
      INFO(field);
      std::string fields = std::string(kType) + kSizes + kRaw + "space: LPS\n";
      const size_t old = fields.find(field + ": ");
      if (!field.empty() && old != std::string::npos) {
        fields.erase(old, fields.find('\n', old) + 1 - old);
      }
      reading_error(folder, nrrd(fields + field + ": " + word + "\n", counted(24)), "long.nrrd");
      reading_error(folder, nrrd(fields + field + ": uint8" + word + " 3\n", counted(24)),
                    "long.nrrd");
    }
    // What says nothing about the voxels may be as long as it likes.
    const std::string harmless = "content: " + word + "\nlabels: \"" + word + "\" \"y\" \"z\"\n" +
                                 word + ":=" + word + "\n# " + word + "\n";
    CHECK(holds_values(read(folder, nrrd_with(harmless))));
    reading_error(folder, "NRRD" + word + "\n" + nrrd_with(""), "magic.nrrd");
  }
}

TEST_CASE("Text headers of MiBs are read as a whole, or refused") {
  const TemporaryFolder folder;
  const auto with_keys = [](size_t bytes) {
    std::string lines;
    while (lines.size() < bytes) lines += "key:=" + std::string(1000, 'v') + "\n";
    return nrrd_with(lines);
  };
  CHECK(holds_values(read(folder, with_keys(2 << 20))));
  CHECK_THAT(reading_error(folder, with_keys(17 << 20), "long.nrrd"),
             Catch::Contains("longer than 16 MiB"));
  std::string lines;
  for (int i = 0; i < 300000; ++i) lines += "a\n";
  CHECK_THAT(reading_error(folder, nrrd_with(lines), "long.nrrd"), Catch::Contains("is damaged"));
}

TEST_CASE("MetaImage: numbers with rubbish behind them are refused") {
  const TemporaryFolder folder;
  const auto meta = [](const std::string& spacing, const std::string& sizes = "4 3 2") {
    return mha_of(sizes, "ElementSpacing = " + spacing + "\n", counted(24));
  };
  CHECK(read(folder, meta("0.7 0.7  1.5"), "a.mha").grid().spacing_mm.z == 1.5);
  for (const char* spacing : {"0.7 0.7 1,5", "0.7 0.7 1.5mm", "0.7 0.7 1.5 mm", "1 1 1 1"}) {
    check_refused(folder, {{"a.mha", meta(spacing), "'elementspacing' is damaged"}});
  }
  check_refused(folder, {{"a.mha", meta("1 1 1", "4 3 2,5"), "the sizes"}});
}

TEST_CASE("NRRD: headers that contradict themselves or claim too much are refused") {
  const TemporaryFolder folder;
  const std::string type = kType, rest = type + kRaw, three = rest + "dimension: 3\nsizes: ";
  const std::string axes = "space: LPS\nspace directions: (1,0,0) (0,1,0) ";
  check_refusals(
      [&](const std::string& lines) {
        return reading_error(folder, nrrd(lines, counted(24)), "bad.nhdr");
      },
      {{rest + "dimension: 16\nsizes: 1 1 1\n", "16 dimensions; 1 to 5 are supported"},
       {rest + "dimension: 3abc\nsizes: 4 3 2\n", "'3abc' dimensions"},
       {three + "2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n", "sizes"},
       {three + "2000 2000 2000\n", "more than the file can hold"},
       {three + "4 3 2 junk\n", "the sizes '4 3 2 junk'"},
       {three + "4 3 2,5\n", "the sizes '4 3 2,5'"},
       {three + "4 3 2mm\n", "the sizes '4 3 2mm'"},
       {three + "4,3,2\n", "the sizes '4,3,2'"},
       {type + kSizes + "encoding: gzip\n", "damaged or truncated"}});
  check_refusals(
      [&](const std::string& lines) { return reading_error(folder, nrrd_with(lines), "bad.nhdr"); },
      {{"sizes: 9 9 9\n", "twice"},
       {"spacings: 1 1\n", "'spacings'"},
       {"spacings: 1 1x 1\n", "'spacings'"},
       {"spacings: 1 -1 1\n", "spacing"},
       {"kinds: domain domain\n", "'kinds'"},
       {"space: LPS\nspace directions: (1,0,0) (0,1,0)\n", "'space directions'"},
       {axes + "(0,0\n", "'space directions'"},
       {axes + "( ,0,1)\n", "'space directions'"},
       {axes + "none\n", "no direction"},
       {axes + "(0,0,1)\nspace units: \"mm\" \"mm\" \"parsec\"\n", "parsec"},
       {axes + "(0,0,1)\nspace units: \"cm\"\n", "'space units'"},
       {axes + "(0,0,1)\nspace units: cm cm cm\n", "'space units'"},
       {axes + "(0,0,1)\nspace units: \"cm\" \"cm\" \"cm\" \"cm\"\n", "'space units'"},
       {axes + "(0,0,1)\nspace units: \n", "'space units'"},
       {"units: \"cm\" \"cm\"\n", "'units'"},
       {"units: \"cm\" \"cm\" \"inch\"\n", "inch"},
       {"byte skip: -2\n", "'byte skip'"},
       {"byte skip: 1000000000000\n", "truncated"},
       {"line skip: 1000000000000\n", "truncated"},
       {"data file: none.raw\n", "none.raw"}});
}

TEST_CASE("NRRD: voxels behind lines and bytes, of either byte order, beside the header") {
  const TemporaryFolder folder;
  const std::string head = std::string(kType) + kSizes + kRaw;
  std::string big, windows = nrrd_with("");
  for (int i = 0; i < 24; ++i) big += std::string(1, '\0') + static_cast<char>(i);
  // Windows ends lines with two characters.
  for (size_t at = 0; (at = windows.find('\n', at)) < windows.size() - 24; at += 2) {
    windows.insert(at, "\r");
  }
  write_file(folder / "all.raw", counted(24));
  for (const std::string& bytes :
       {nrrd_with(""), nrrd(head + "byte skip: 3\n", "abc" + counted(24)),
        nrrd(head + "byte skip: -1\n", "abcde" + counted(24)),
        nrrd(head + "line skip: 2\n", "ab\nc\n" + counted(24)),
        nrrd_with("type:=evil\n# sizes: 9 9 9\nkey:=a: b\n"),
        nrrd("type: short\nendian: big\n" + std::string(kSizes) + kRaw, big), windows,
        "NRRD0004\n" + head + "data file: all.raw\n"}) {
    INFO(bytes);
    CHECK(holds_values(read(folder, bytes)));
  }
}

TEST_CASE("NRRD: positions are turned to LPS mm") {
  const TemporaryFolder folder;
  const auto grid_of = [&](const std::string& fields) {
    return read(folder, nrrd_with(fields)).grid();
  };
  const std::string axes = "space directions: (2,0,0) (0,3,0) (0,0.3,4)\nspace origin: (1,2,3)\n";
  const Vec3d same{1, 1, 1}, ras{-1, -1, 1};
  for (const auto& [space, sign] : {std::pair("left-posterior-superior", same),
                                    {"LPS", same},
                                    {"RAS", ras},
                                    {"right-anterior-superior", ras},
                                    {"LAS", Vec3d{1, -1, 1}},
                                    {"scanner-xyz", same}}) {
    INFO(space);
    const Grid grid = grid_of("space: " + std::string(space) + "\n" + axes);
    CHECK(grid.origin_mm == Vec3d{sign.x, 2 * sign.y, 3});
    CHECK(grid.spacing_mm.x == 2);
    CHECK(grid.direction.m[0][0] == sign.x);
    CHECK(grid.direction.m[1][1] == sign.y);
    CHECK(grid.direction.m[1][2] * grid.spacing_mm.z == Approx(0.3 * sign.y));
  }
  CHECK(grid_of("space: LPS\n" + axes + "space units: \"um\" \"um\" \"um\"\n").origin_mm.x == 1e-3);
  CHECK(grid_of("spacings: 1 2 3\naxis mins: 5 5 5\n").origin_mm == Vec3d{5.5, 6, 6.5});
  const Grid in_cm = grid_of("spacings: 1 2 3\naxis mins: 5 5 5\nunits: \"cm\" \"mm\" \"cm\"\n");
  CHECK(in_cm.spacing_mm == Vec3d{10, 2, 30});
  CHECK(in_cm.origin_mm == Vec3d{55, 6, 65});
  CHECK(grid_of("spacings: 1 2 3\naxis mins: 5 5 5\ncenters: node node node\n").origin_mm ==
        Vec3d{5, 5, 5});
  CHECK(grid_of("axis mins: 0 0 0\naxis maxs: 8 9 8\n").spacing_mm == Vec3d{2, 3, 4});
  // A slice in space.
  const std::string two_axes = "space: LPS\nspace directions: (0,2,0) (0,0,-3)\n";
  const Grid slice = read(folder, nrrd_of("6 4", two_axes, counted(24))).grid();
  CHECK(slice.size == Vec3i{6, 4, 1});
  CHECK(slice.direction.column(2) == Vec3d{-1, 0, 0});
}

TEST_CASE(
    "NRRD: colours are luminance wherever their axis stands, components and frames are told") {
  const TemporaryFolder folder;
  const auto of_kinds = [&](const std::string& sizes, const std::string& kinds,
                            const std::string& data = counted(24)) {
    return read(folder, nrrd_of(sizes, "kinds: " + kinds + "\n", data));
  };
  std::string planes(24, '\0');
  for (size_t i = 0; i < 24; ++i) planes[i % 3 * 8 + i / 3] = static_cast<char>(i);
  const auto first = of_kinds("3 4 2", "RGB-color domain domain");
  const auto last = of_kinds("4 2 3", "domain domain RGB-color", planes);
  CHECK(first.size() == Vec3i{4, 2, 1});
  CHECK(same_values(first, last));
  CHECK(first[7] == Approx(0.2126 * 21 + 0.7152 * 22 + 0.0722 * 23).margin(0.5));
  check_refused(folder, {{"bad.nrrd", nrrd_of("3 2 2 2", "", counted(24)), "2 frames"}});
  CHECK(probe_image(folder / "bad.nrrd").frames == 2);
  CHECK(of_kinds("1 4 3 2", "list domain domain domain").size() == Vec3i{4, 3, 2});
  CHECK(read(folder, nrrd_of("4 3 2 1 1", "", counted(24))).voxels() == 24);
}
