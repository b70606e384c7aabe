// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// NRRD headers of every kind, sound and hostile.
#include <fstream>
#include <numeric>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

constexpr const char* kType = "type: uint8\n";
constexpr const char* kSizes = "dimension: 3\nsizes: 4 3 2\n";
constexpr const char* kRaw = "encoding: raw\n";

/// The values 0 to 23, as bytes.
std::string values() {
  std::string bytes(24, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

std::string nrrd(const std::string& fields, const std::string& data) {
  return "NRRD0004\n" + fields + "\n" + data;
}

/// A sound file with one more line.
std::string nrrd_with(const std::string& line) {
  return nrrd(std::string(kType) + kSizes + kRaw + line, values());
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
    for (const std::string field : {"type",
                                    "encoding",
                                    "endian",
                                    "space",
                                    "kinds",
                                    "centers",
                                    "sizes",
                                    "dimension",
                                    "spacings",
                                    "axis mins",
                                    "space directions",
                                    "space origin",
                                    "line skip",
                                    "byte skip",
                                    "data file",
                                    "space dimension",
                                    "units",
                                    "space units",
                                    "unheard of",
                                    ""}) {
      INFO(field);
      std::string fields = std::string(kType) + kSizes + kRaw + "space: LPS\n";
      const size_t old = fields.find(field + ": ");
      if (!field.empty() && old != std::string::npos) {
        fields.erase(old, fields.find('\n', old) + 1 - old);
      }
      reading_error(folder, nrrd(fields + field + ": " + word + "\n", values()), "long.nrrd");
      reading_error(folder, nrrd(fields + field + ": uint8" + word + " 3\n", values()),
                    "long.nrrd");
    }
    // What says nothing about the voxels may be as long as it likes.
    const std::string harmless = "content: " + word + "\nlabels: \"" + word + "\" \"y\" \"z\"\n" +
                                 word + ":=" + word + "\n# " + word + "\n";
    CHECK(holds_values(read(folder, nrrd_with(harmless))));
    reading_error(folder, "NRRD" + word + "\n" + nrrd_with(""), "magic.nrrd");
    reading_error(folder, nrrd_with("data file: " + word + "%d.raw 1 2 1\n"), "pattern.nhdr");
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
  CHECK_THAT(reading_error(folder, "NRRD0004\n# " + std::string(17 << 20, 'c'), "long.nrrd"),
             Catch::Contains("longer than 16 MiB"));
  std::string lines;
  for (int i = 0; i < 300000; ++i) lines += "a\n";
  CHECK_THAT(reading_error(folder, nrrd_with(lines), "long.nrrd"), Catch::Contains("is damaged"));
}

TEST_CASE("MetaImage: numbers with rubbish behind them are refused") {
  const TemporaryFolder folder;
  const auto meta = [](const std::string& sizes, const std::string& spacing) {
    return "NDims = 3\nDimSize = " + sizes + "\nElementSpacing = " + spacing +
           "\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n" + values();
  };
  CHECK(read(folder, meta("4 3 2", "0.7 0.7  1.5"), "a.mha").grid().spacing_mm.z == 1.5);
  for (const std::string spacing : {"0.7 0.7 1,5", "0.7 0.7 1.5mm", "0.7 0.7 1.5 mm", "1 1 1 1"}) {
    INFO(spacing);
    CHECK_THAT(reading_error(folder, meta("4 3 2", spacing), "a.mha"),
               Catch::Contains("'elementspacing' is damaged"));
  }
  CHECK_THAT(reading_error(folder, meta("4 3 2,5", "1 1 1"), "a.mha"),
             Catch::Contains("the sizes"));
}

TEST_CASE("NRRD: headers that contradict themselves or claim too much are refused") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& bytes) {
    return reading_error(folder, bytes, "bad.nhdr");
  };
  const std::string rest = std::string(kType) + kRaw;
  CHECK_THAT(error(nrrd(rest + "dimension: 16\nsizes: 1 1 1\n", values())),
             Catch::Contains("dimensions"));
  CHECK_THAT(error(nrrd(rest + "dimension: 3\nsizes: 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n", "")),
             Catch::Contains("sizes"));
  CHECK_THAT(error(nrrd(rest + "dimension: 3\nsizes: 2000 2000 2000\n", values())),
             Catch::Contains("more than the file can hold"));
  CHECK_THAT(error(nrrd_with("sizes: 9 9 9\n")), Catch::Contains("twice"));
  CHECK_THAT(error(nrrd_with("spacings: 1 1\n")), Catch::Contains("'spacings'"));
  CHECK_THAT(error(nrrd_with("spacings: 1 1x 1\n")), Catch::Contains("'spacings'"));
  CHECK_THAT(error(nrrd_with("spacings: 1 -1 1\n")), Catch::Contains("spacing"));
  CHECK_THAT(error(nrrd_with("kinds: domain domain\n")), Catch::Contains("'kinds'"));
  CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0)\n")),
             Catch::Contains("'space directions'"));
  CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0) (0,0\n")),
             Catch::Contains("'space directions'"));
  CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0) none\n")),
             Catch::Contains("no direction"));
  CHECK_THAT(error(nrrd_with("space: RAS\nspacings: 1 1 1\n")), Catch::Contains("no directions"));
  CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0) ( ,0,1)\n")),
             Catch::Contains("'space directions'"));
  CHECK_THAT(error(nrrd_with("units: \"cm\" \"cm\"\n")), Catch::Contains("'units'"));
  CHECK_THAT(error(nrrd_with("units: \"cm\" \"cm\" \"inch\"\n")), Catch::Contains("inch"));
  for (const std::string units : {"\"cm\"", "cm cm cm", "\"cm\" \"cm\" \"cm\" \"cm\"", ""}) {
    INFO(units);
    CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0) (0,0,1)\n"
                               "space units: " +
                               units + "\n")),
               Catch::Contains("'space units'"));
  }
  for (const std::string sizes : {"4 3 2 junk", "4 3 2,5", "4 3 2mm", "4,3,2"}) {
    INFO(sizes);
    CHECK_THAT(error(nrrd(rest + "dimension: 3\nsizes: " + sizes + "\n", values())),
               Catch::Contains("the sizes '" + sizes + "'"));
  }
  CHECK_THAT(error(nrrd(rest + "dimension: 3abc\nsizes: 4 3 2\n", values())),
             Catch::Contains("'3abc' dimensions"));
  CHECK_THAT(error(nrrd_with("byte skip: -2\n")), Catch::Contains("'byte skip'"));
  CHECK_THAT(error(nrrd_with("byte skip: 1000000000000\n")), Catch::Contains("truncated"));
  CHECK_THAT(error(nrrd_with("line skip: 1000000000000\n")), Catch::Contains("truncated"));
  CHECK_THAT(error(nrrd_with("data file: bad.nhdr\n")), Catch::Contains("names itself"));
  CHECK_THAT(error(nrrd_with("data file: none.raw\n")), Catch::Contains("none.raw"));
  CHECK_THAT(error(nrrd_with("data file: LIST\n")), Catch::Contains("'data file'"));
  for (const std::string pattern : {"%s", "%n", "%d%d", "%d%s", "%999999999d", "%", "%5", "%*d"}) {
    INFO(pattern);
    CHECK_THAT(error(nrrd_with("data file: a" + pattern + ".raw 1 2 1\n")),
               Catch::Contains("'data file'"));
  }
  CHECK_THAT(error(nrrd_with("data file: a%d.raw 1 2000000000 1\n")),
             Catch::Contains("'data file'"));
  CHECK_THAT(error(nrrd_with("data file: a%d.raw 1 2 0\n")), Catch::Contains("'data file'"));
  const std::string shorts = "type: short\n" + std::string(kSizes);
  CHECK_THAT(error(nrrd(shorts + kRaw, values() + values())), Catch::Contains("endian"));
  CHECK_THAT(error(nrrd(kType + std::string(kSizes) + "encoding: bzip2\n", values())),
             Catch::Contains("bzip2"));
  CHECK_THAT(error(nrrd(kType + std::string(kSizes) + "encoding: gzip\n", values())),
             Catch::Contains("gzip"));
  CHECK_THAT(error(nrrd(kType + std::string(kSizes) + "encoding: text\n",
                        "1 2 3 300" + std::string(90, ' '))),
             Catch::Contains("'300'"));
  CHECK_THAT(error(nrrd(kType + std::string(kSizes) + "encoding: hex\n", std::string(48, 'g'))),
             Catch::Contains("hexadecimal"));
  CHECK_THAT(error(nrrd_with("space: LPS\nspace directions: (1,0,0) (0,1,0) (0,0,1)\n"
                             "space units: \"mm\" \"mm\" \"parsec\"\n")),
             Catch::Contains("parsec"));
}

TEST_CASE("NRRD: a file of voxels that is named twice is refused") {
  const TemporaryFolder folder;
  write_file(folder / "one.raw", std::string(1, '\1'));
  write_file(folder / "two.raw", std::string(1, '\2'));
  const auto list = [](const std::string& names, const std::string& sizes) {
    return nrrd(
        kType + ("dimension: 3\nsizes: " + sizes + "\n") + kRaw + "data file: LIST\n" + names, "");
  };
  std::string all;
  for (int i = 0; i < 100000; ++i) all += "one.raw\n";
  CHECK_THAT(reading_error(folder, list(all, "100000 1 1"), "a.nhdr"),
             Catch::Contains("'one.raw' twice"));
  CHECK_THAT(reading_error(folder, list("one.raw\ntwo.raw\n./one.raw\n", "1 1 3"), "a.nhdr"),
             Catch::Contains("one.raw' twice"));
  write_file(folder / "b.nhdr", list("one.raw\ntwo.raw\n", "1 1 2"));
  CHECK(read_volume<uint8_t>(folder / "b.nhdr")({0, 0, 1}) == 2);
}

TEST_CASE("NRRD: more dimensions than are read are said to be that, not damage") {
  const TemporaryFolder folder;
  const auto of_dimensions = [](int count) {
    std::string sizes;
    for (int i = 0; i < count; ++i) sizes += i < 3 ? " 2" : " 1";
    return nrrd(kType + ("dimension: " + std::to_string(count) + "\nsizes:" + sizes + "\n") + kRaw,
                std::string(8, '\1'));
  };
  write_file(folder / "five.nrrd", of_dimensions(5));
  CHECK(read_volume<uint8_t>(folder / "five.nrrd").voxels() == 8);
  for (const int count : {6, 16}) {
    CHECK_THAT(reading_error(folder, of_dimensions(count), "many.nrrd"),
               Catch::Contains(std::to_string(count) + " dimensions; 1 to 5 are supported") &&
                   !Catch::Contains("damaged"));
  }
}

TEST_CASE("NRRD: every encoding and arrangement of files gives the same voxels") {
  const TemporaryFolder folder;
  const std::string head = std::string(kType) + kSizes;
  std::string text, hex;
  for (int i = 0; i < 24; ++i) {
    text += std::to_string(i) + (i % 5 == 0 ? ",\n" : " ");
    hex += std::string(1, "0123456789abcdef"[i / 16]) + "0123456789ABCDEF"[i % 16];
  }
  CHECK(holds_values(read(folder, nrrd_with(""))));
  CHECK(holds_values(read(folder, nrrd(head + "encoding: ascii\n", text))));
  CHECK(holds_values(read(folder, nrrd(head + "encoding: hex\n", hex))));
  CHECK(holds_values(read(folder, nrrd(head + kRaw + "byte skip: 3\n", "abc" + values()))));
  CHECK(holds_values(read(folder, nrrd(head + kRaw + "byte skip: -1\n", "abcde" + values()))));
  CHECK(holds_values(read(folder, nrrd(head + kRaw + "line skip: 2\n", "ab\nc\n" + values()))));
  CHECK(holds_values(read(folder, nrrd_with("type:=evil\n# sizes: 9 9 9\nkey:=a: b\n"))));
  std::string big;
  for (int i = 0; i < 24; ++i) big += std::string(1, '\0') + static_cast<char>(i);
  CHECK(holds_values(
      read(folder, nrrd("type: short\nendian: big\n" + std::string(kSizes) + kRaw, big))));
  // Windows ends lines with two characters.
  std::string windows = nrrd_with("");
  for (size_t at = 0; (at = windows.find('\n', at)) < windows.size() - 24; at += 2) {
    windows.insert(at, "\r");
  }
  CHECK(holds_values(read(folder, windows)));

  write_file(folder / "all.raw", values());
  write_file(folder / "s008.raw", values().substr(0, 12));
  write_file(folder / "s009.raw", values().substr(12));
  for (const std::string data : {"all.raw\n", "LIST\ns008.raw\ns009.raw\n", "s%03d.raw 8 9 1\n",
                                 "s%03d.raw 8 9 1 2\n", "LIST 2\ns008.raw\ns009.raw\n"}) {
    INFO(data);
    write_file(folder / "a.nhdr", "NRRD0004\n" + head + kRaw + "data file: " + data);
    CHECK(holds_values(read_volume<float>(folder / "a.nhdr")));
  }
  CHECK(read(folder, "NRRD0004\n" + head + kRaw + "data file: s%03d.raw 9 8 -1\n", "b.nhdr")[0] ==
        12);
}

TEST_CASE("NRRD: positions are turned to LPS mm") {
  const TemporaryFolder folder;
  const auto grid_of = [&](const std::string& fields) {
    return read(folder, nrrd_with(fields)).grid();
  };
  const std::string axes = "space directions: (2,0,0) (0,3,0) (0,0.3,4)\nspace origin: (1,2,3)\n";
  struct Row {
    const char* space;
    double x, y;  // signs
  };
  for (const Row& row : {Row{"left-posterior-superior", 1, 1},
                         {"LPS", 1, 1},
                         {"RAS", -1, -1},
                         {"right-anterior-superior", -1, -1},
                         {"LAS", 1, -1},
                         {"scanner-xyz", 1, 1}}) {
    INFO(row.space);
    const Grid grid = grid_of("space: " + std::string(row.space) + "\n" + axes);
    CHECK(grid.origin_mm == Vec3d{row.x, 2 * row.y, 3});
    CHECK(grid.spacing_mm.x == 2);
    CHECK(grid.direction.m[0][0] == row.x);
    CHECK(grid.direction.m[1][1] == row.y);
    CHECK(grid.direction.m[1][2] * grid.spacing_mm.z == Approx(0.3 * row.y));
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
  const Grid slice = read(folder, nrrd(std::string(kType) + kRaw +
                                           "dimension: 2\nsizes: 6 4\nspace: LPS\n"
                                           "space directions: (0,2,0) (0,0,-3)\n",
                                       values()))
                         .grid();
  CHECK(slice.size == Vec3i{6, 4, 1});
  CHECK(slice.direction.column(2) == Vec3d{-1, 0, 0});
}

TEST_CASE(
    "NRRD: colours are luminance wherever their axis stands, components and frames are told") {
  const TemporaryFolder folder;
  const auto colour = [&](const std::string& fields, const std::string& data) {
    return read(folder, nrrd(std::string(kType) + kRaw + fields, data));
  };
  const auto first =
      colour("dimension: 3\nsizes: 3 4 2\nkinds: RGB-color domain domain\n", values());
  std::string planes(24, '\0');
  for (size_t i = 0; i < 24; ++i) planes[i % 3 * 8 + i / 3] = static_cast<char>(i);
  const auto last = colour("dimension: 3\nsizes: 4 2 3\nkinds: domain domain RGB-color\n", planes);
  CHECK(first.size() == Vec3i{4, 2, 1});
  CHECK(same_values(first, last));
  CHECK(first[7] == Approx(0.2126 * 21 + 0.7152 * 22 + 0.0722 * 23).margin(0.5));
  const auto error = [&](const std::string& fields) {
    return reading_error(folder, nrrd(std::string(kType) + kRaw + fields, values()), "bad.nrrd");
  };
  CHECK_THAT(error("dimension: 3\nsizes: 3 4 2\nkinds: vector domain domain\n"),
             Catch::Contains("3 components"));
  CHECK_THAT(error("dimension: 4\nsizes: 3 2 2 2\n"), Catch::Contains("2 frames"));
  CHECK(probe_image(folder / "bad.nrrd").frames == 2);
  CHECK(
      colour("dimension: 4\nsizes: 1 4 3 2\nkinds: list domain domain domain\n", values()).size() ==
      Vec3i{4, 3, 2});
}
