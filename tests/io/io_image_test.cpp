// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <fstream>
#include <limits>

#include <sys/resource.h>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

template <class T>
void check_round_trip(const TemporaryFolder& folder, const std::string& extension, double lowest,
                      double highest) {
  for (const bool left_handed : {false, true}) {
    const auto volume = random_volume<T>(oblique_grid({5, 4, 3}, left_handed), lowest, highest);
    const std::string path = folder / ("round" + extension);
    write_volume(path, volume);
    const auto back = read_volume<float>(path);
    INFO(path << " left-handed " << left_handed);
    CHECK(describe_difference(volume.grid(), back.grid(), 1e-4).empty());
    CHECK(same_values(volume, back));
    CHECK(determinant(back.grid().direction) * determinant(volume.grid().direction) > 0);
  }
}

}  // namespace

TEST_CASE("volumes come back from every format as they were written") {
  const TemporaryFolder folder;
  for (const std::string extension : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    check_round_trip<uint8_t>(folder, extension, 0, 255);
    check_round_trip<int16_t>(folder, extension, -32768, 32767);
    check_round_trip<uint16_t>(folder, extension, 0, 65535);
    check_round_trip<int32_t>(folder, extension, -9e6, 9e6);
    check_round_trip<float>(folder, extension, -1, 1);
  }
}

TEST_CASE("one voxel and single slices are volumes") {
  const TemporaryFolder folder;
  for (const Vec3i size : {Vec3i{1, 1, 1}, Vec3i{7, 5, 1}, Vec3i{1, 1, 9}}) {
    for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
      const auto volume = random_volume<int16_t>(oblique_grid(size), -9, 9);
      write_volume(folder / ("x" + extension), volume);
      const auto back = read_volume<int16_t>(folder / ("x" + extension));
      CHECK(describe_difference(volume.grid(), back.grid(), 1e-4).empty());
      CHECK(same_values(volume, back));
    }
  }
}

TEST_CASE("pictures come back") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {6, 5, 1};
  const auto bytes = random_volume<uint8_t>(grid, 0, 255);
  for (const std::string extension : {".png", ".tif"}) {
    write_volume(folder / ("p" + extension), bytes);
    const auto back = read_volume<uint8_t>(folder / ("p" + extension));
    CHECK(same_values(bytes, back));
    CHECK(describe_difference(back.grid(), grid).empty());
  }
  const auto words = random_volume<uint16_t>(grid, 0, 65535);
  write_volume(folder / "p16.tif", words);
  CHECK(same_values(words, read_volume<int32_t>(folder / "p16.tif")));
  const auto floats = random_volume<float>(grid, -1, 1);
  write_volume(folder / "f.tif", floats);
  CHECK(same_values(floats, read_volume<float>(folder / "f.tif")));
}

TEST_CASE("colour pictures become luminance") {
  const TemporaryFolder folder;
  RgbImage image{2, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}};
  write_png(folder / "c.png", image);
  const RgbImage back = read_rgb(folder / "c.png");
  CHECK(back.width == 2);
  CHECK(back.height == 2);
  CHECK(back.rgb == image.rgb);
  const auto grey = read_volume<float>(folder / "c.png");
  CHECK(grey[0] == Approx(0.2126 * 255));
  CHECK(grey[1] == Approx(0.7152 * 255));
  CHECK(grey[2] == Approx(0.0722 * 255));
  CHECK(read_volume<uint8_t>(folder / "c.png")[0] == 54);
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "c.png"); }),
             Catch::Contains("colour"));
}

TEST_CASE("nibabel agrees about NIfTI geometry and values") {
  if (!has_nibabel()) {
    WARN("skipped: python3-nibabel is not installed");
    return;
  }
  const TemporaryFolder folder;
  for (const bool left_handed : {false, true}) {
    const auto volume = random_volume<int16_t>(oblique_grid({5, 4, 3}, left_handed), -99, 99);
    write_volume(folder / "a.nii.gz", volume);
    Vec3d last = world_from_index(volume.grid(), {4, 3, 2});
    const std::string script =
        "import nibabel, numpy, sys\n"
        "image = nibabel.load(sys.argv[1])\n"
        "for affine in (image.get_sform(), image.get_qform(), image.affine):\n"
        "    ras = affine @ [4, 3, 2, 1]\n"
        "    want = numpy.array([float(v) for v in sys.argv[2:5]]) * [-1, -1, 1]\n"
        "    assert numpy.abs(ras[:3] - want).max() < 1e-4, (ras, want)\n"
        "assert int(image.header['sform_code']) == 1 and int(image.header['qform_code']) == 1\n"
        "assert image.header.get_xyzt_units()[0] == 'mm'\n"
        "data = numpy.asarray(image.dataobj)\n"
        "assert data.dtype == numpy.int16 and int(data[4, 3, 2]) == int(sys.argv[5])\n"
        "assert int(data[1, 0, 0]) == int(sys.argv[6])\n"
        "nibabel.save(nibabel.Nifti2Image(data, image.affine), sys.argv[7])\n"
        "nibabel.save(nibabel.Nifti1Pair(data, image.affine), sys.argv[8])\n"
        "big = nibabel.Nifti1Image(data, image.affine, nibabel.Nifti1Header(endianness='>'))\n"
        "big.header.set_data_dtype('>i2'); nibabel.save(big, sys.argv[9])\n"
        "scaled = nibabel.Nifti1Image(data, image.affine)\n"
        "scaled.header.set_slope_inter(0.5, 3)\n"
        "nibabel.save(scaled, sys.argv[10])\n"
        "again = nibabel.load(sys.argv[10]).get_fdata()\n"
        "assert again[4, 3, 2] == 0.5 * data[4, 3, 2] + 3\n"
        "header = image.header.copy(); header['sform_code'] = 0\n"
        "nibabel.save(nibabel.Nifti1Image(data, None, header), sys.argv[11])\n";
    write_file(folder / "check.py", script);
    std::string command =
        "/usr/bin/python3 '" + (folder / "check.py") + "' '" + (folder / "a.nii.gz") + "'";
    for (int axis = 0; axis < 3; ++axis) command += " " + std::to_string(last[axis]);
    command += " " + std::to_string(volume({4, 3, 2})) + " " + std::to_string(volume({1, 0, 0}));
    const char* made[] = {"v2.nii.gz", "pair.hdr", "big.nii", "scaled.nii.gz", "qform.nii"};
    for (const char* name : made) command += " '" + (folder / name) + "'";
    REQUIRE(shell(command));
    for (const char* name : made) {
      INFO(name);
      const auto back = read_volume<float>(folder / name);
      CHECK(describe_difference(volume.grid(), back.grid(), 1e-3).empty());
      const bool scaled = std::string(name) == "scaled.nii.gz";
      CHECK(back({4, 3, 2}) == (scaled ? 0.5F * volume({4, 3, 2}) + 3 : volume({4, 3, 2})));
    }
    CHECK(same_values(volume, read_volume<int16_t>(folder / "pair.img")));
  }
}

TEST_CASE("the sform wins over the qform, and shear is kept") {
  const TemporaryFolder folder;
  Grid grid = oblique_grid({4, 3, 2});
  const Vec3d normal = grid.direction.column(2), row = grid.direction.column(0);
  const Vec3d tilted = (normal + row * 0.2) / std::sqrt(1.04);
  for (int i = 0; i < 3; ++i) grid.direction.m[i][2] = tilted[i];
  for (const std::string extension : {".nii", ".nrrd", ".mha"}) {
    INFO(extension);
    write_volume(folder / ("tilt" + extension), Volume<uint8_t>(grid, 3));
    const auto back = read_volume<uint8_t>(folder / ("tilt" + extension));
    CHECK(describe_difference(grid, back.grid(), 1e-4).empty());
  }
  // A sheared direction has no quaternion: qform_code must be 0.
  const std::string bytes = read_file(folder / "tilt.nii");
  CHECK(bytes[252] == 0);
  CHECK(bytes[254] == 1);

  std::string both = sound_nifti(folder);
  both = with(both, 280 + 12, 55.0F);  // moves the sform, not the qform
  write_file(folder / "both.nii", both);
  CHECK(read_volume<float>(folder / "both.nii").grid().origin_mm.x == -55);
  write_file(folder / "q.nii", with(both, 254, int16_t{0}));
  CHECK(read_volume<float>(folder / "q.nii").grid().origin_mm.x == Approx(-12.5));
  write_file(folder / "none.nii", with(with(both, 254, int16_t{0}), 252, int16_t{0}));
  const Grid plain = read_volume<float>(folder / "none.nii").grid();
  CHECK(plain.origin_mm == Vec3d{0, 0, 0});
  CHECK(plain.direction == Mat3{{{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}});
  CHECK(plain.spacing_mm.y == Approx(1.25));
}

TEST_CASE("the code of a NIfTI transform is kept, and no code is a warning") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  std::vector<std::string> warnings;
  ReadOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  for (const int16_t code : {0, 1, 2, 3, 4, 5}) {
    INFO(code);
    write_file(folder / "in.nii", with(with(sound, 252, code), 254, code));
    const auto volume = read_volume<int16_t>(folder / "in.nii", options);
    CHECK(static_cast<int16_t>(volume.grid().frame) == code);
    write_volume(folder / "out.nii", volume);
    const std::string out = read_file(folder / "out.nii");
    CHECK(out.substr(252, 4) == with(std::string(4, 0), 0, std::array<int16_t, 2>{code, code}));
    const auto back = read_volume<int16_t>(folder / "out.nii");
    CHECK(describe_difference(back.grid(), volume.grid(), 1e-4).empty());
    CHECK(back.grid().frame == volume.grid().frame);
    write_labelmap(folder / "labels.nii", LabelVolume(volume.grid()), {});
    CHECK(read_labels(folder / "labels.nii", options).grid().frame == volume.grid().frame);
  }
  // Once for the image and once for the labels of code 0.
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], (Catch::Contains("in.nii") && Catch::Contains("codes are 0")) ||
                              Catch::Contains("qform_code are 0"));
  // An sform to MNI beside a qform to the scanner: two worlds. One code and two places: a mistake.
  const std::string moved = with(sound, 268, 99.0F);
  warnings.clear();
  write_file(folder / "worlds.nii", with(moved, 254, int16_t{4}));
  CHECK(read_volume<int16_t>(folder / "worlds.nii", options).grid().frame == WorldFrame::kMni152);
  CHECK(warnings.empty());
  write_file(folder / "places.nii", moved);
  CHECK(read_volume<int16_t>(folder / "places.nii", options).grid().origin_mm.x == Approx(-12.5));
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("places.nii") && Catch::Contains("the sform is used"));
}

TEST_CASE("codes that NIfTI does not have are named, and refused where they have to decide") {
  const TemporaryFolder folder;
  const std::string sound = sound_nifti(folder);
  std::vector<std::string> warnings;
  ReadOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto read = [&](int16_t sform, int16_t qform, float shift) {
    warnings.clear();
    write_file(folder / "in.nii",
               with(with(with(sound, 252, qform), 254, sform), 268, 12.5F + shift));
    return read_volume<int16_t>(folder / "in.nii", options).grid();
  };
  const Grid usual = read(1, 1, 0);
  REQUIRE(warnings.empty());
  struct Codes {
    int16_t sform, qform;
    WorldFrame frame;
  };
  for (const Codes& c : {Codes{7, 1, WorldFrame::kAligned}, Codes{7, 7, WorldFrame::kAligned},
                         Codes{1, -1, WorldFrame::kScanner}, Codes{-1, 1, WorldFrame::kScanner},
                         Codes{300, 0, WorldFrame::kAligned}}) {
    INFO(c.sform << " " << c.qform);
    const Grid grid = read(c.sform, c.qform, 0);
    CHECK(grid.frame == c.frame);
    CHECK(describe_difference(grid, usual, 1e-3).empty());
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::Contains("sform_code " + std::to_string(c.sform) +
                                            " and qform_code " + std::to_string(c.qform)));
    // What no code names does not count.
    if (c.qform == 0) {
      CHECK(describe_difference(read(c.sform, c.qform, 5), usual, 1e-3).empty());
      continue;
    }
    CHECK_THAT(message_of<InputError>([&] { read(c.sform, c.qform, 5); }),
               Catch::Contains("in.nii") && Catch::Contains("not known which counts"));
  }
  // Only a code below 0 names the sform: without orientation it would be read by its spacings.
  CHECK_THROWS_AS(read(-1, 0, 0), InputError);
}

TEST_CASE("values that a type cannot hold are errors") {
  const TemporaryFolder folder;
  Volume<float> volume(oblique_grid({4, 3, 2}), 7.0F);
  volume[5] = 300;
  volume[6] = -4;
  for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
    const std::string path = folder / ("v" + extension);
    write_volume(path, volume);
    CHECK(same_values(volume, read_volume<int16_t>(path)));
    const std::string range = message_of<InputError>([&] { read_volume<uint8_t>(path); });
    CHECK_THAT(range, Catch::Contains("2 voxels do not fit uint8") && Catch::Contains("-4 to 300"));
    CHECK_THAT(range, Catch::Contains("(1,1,0)"));
  }
  volume[0] = 2.5F;
  write_volume(folder / "half.nii", volume);
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "half.nii"); }),
             Catch::Contains("not whole numbers") && Catch::Contains("(0,0,0) (2.5)"));
}

TEST_CASE("NaN and infinite voxels are errors unless they are replaced") {
  const TemporaryFolder folder;
  Volume<float> volume(oblique_grid({4, 3, 2}), 1.0F);
  volume[3] = std::numeric_limits<float>::quiet_NaN();
  volume[9] = std::numeric_limits<float>::infinity();
  for (const std::string extension : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    const std::string path = folder / ("nan" + extension);
    write_volume(path, volume);
    const std::string message = message_of<InputError>([&] { read_volume<float>(path); });
    CHECK_THAT(message, Catch::Contains("2 voxels are NaN") && Catch::Contains("--nan-value") &&
                            Catch::Contains("(3,0,0)") && Catch::Contains(path));
    ReadOptions options;
    options.nan_value = -5;
    const auto back = read_volume<float>(path, options);
    CHECK(back[3] == -5);
    CHECK(back[9] == -5);
    CHECK(back[0] == 1);
    CHECK(read_volume<int16_t>(path, options)[3] == -5);
    CHECK_THROWS_AS(read_volume<uint8_t>(path, options), InputError);
    options.keeps_not_finite = true;  // what is replaced is not there to be kept
    CHECK(read_volume<float>(path, options)[3] == -5);
    options.nan_value.reset();
    const auto kept = read_volume<float>(path, options);
    CHECK(std::isnan(kept[3]));
    CHECK(kept[9] == std::numeric_limits<float>::infinity());
    CHECK(kept[0] == 1);
    CHECK_THROWS_AS(read_volume<int16_t>(path, options), InputError);
  }
}

TEST_CASE("4-D images and vectors say how many frames or components they have") {
  const TemporaryFolder folder;
  std::string bytes = sound_nifti(folder);
  bytes = with(with(bytes, 40, int16_t{4}), 48, int16_t{2});
  bytes += bytes.substr(352);
  CHECK_THAT(reading_error(folder, bytes), Catch::Contains("2 frames"));
  CHECK(probe_image(folder / "damaged.nii").frames == 2);
  CHECK_THAT(reading_error(folder,
                           "NRRD0004\ntype: uchar\ndimension: 4\nsizes: 3 2 2 2\n"
                           "encoding: raw\nkinds: vector domain domain domain\n\n" +
                               std::string(24, 'x'),
                           "v.nrrd"),
             Catch::Contains("3 components"));
  CHECK_THAT(reading_error(folder,
                           "ObjectType = Image\nNDims = 4\nDimSize = 2 2 2 3\n"
                           "ElementType = MET_UCHAR\nElementDataFile = LOCAL\n" +
                               std::string(24, 'x'),
                           "v.mha"),
             Catch::Contains("3 frames"));
}

TEST_CASE("probe_image tells the grid and the type") {
  const TemporaryFolder folder;
  const auto volume = random_volume<uint16_t>(oblique_grid({5, 4, 3}), 0, 9);
  for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
    write_volume(folder / ("i" + extension), volume);
    const ImageInfo info = probe_image(folder / ("i" + extension));
    CHECK(describe_difference(info.grid, volume.grid(), 1e-4).empty());
    CHECK(info.component_type == "uint16");
    CHECK(info.components == 1);
    CHECK(info.bytes == 120);
  }
}

TEST_CASE("a description stands in the header and changes nothing else") {
  const TemporaryFolder folder;
  const Volume<uint8_t> volume(oblique_grid({3, 4, 5}), 7);
  const std::string text = "level set in mm, negative inside";
  for (const std::string extension : {".nii", ".nrrd", ".mha"}) {
    const std::string path = folder / ("d" + extension);
    write_volume(path, volume, 1, text);
    CHECK_THAT(read_file(path).substr(0, 400), Catch::Contains(text));
    CHECK(describe_difference(read_volume<uint8_t>(path).grid(), volume.grid()).empty());
  }
  write_volume(folder / "long.nii", volume, 1, std::string(500, 'x'));
  const std::string header = read_file(folder / "long.nii").substr(148, 80);
  CHECK(header == std::string(79, 'x') + '\0');
}

TEST_CASE("unknown endings, missing files and folders are told apart") {
  const TemporaryFolder folder;
  const Volume<uint8_t> volume(oblique_grid({2, 2, 2}));
  CHECK_THAT(message_of<UsageError>([&] { write_volume(folder / "x.foo", volume); }),
             Catch::Contains(".nii.gz") && Catch::Contains(".mha"));
  CHECK_THROWS_AS(require_image_extension("x"), UsageError);
  CHECK_NOTHROW(require_image_extension("a.b.NII.GZ"));
  CHECK_THAT(message_of<UsageError>([&] { write_volume(folder / "x.png", volume); }),
             Catch::Contains("2 slices"));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "no.nii"); }),
             Catch::Contains("no such file"));
  write_file(folder / "x.foo", "hello");
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "x.foo"); }),
             Catch::Contains("neither DICOM nor a known ending"));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder.string()); }),
             Catch::Contains("no DICOM images"));
}

TEST_CASE("a failed write leaves nothing and does not touch what was there") {
  const TemporaryFolder folder;
  const auto volume = random_volume<float>(oblique_grid({64, 64, 16}), -1, 1);
  const std::string missing = folder / "no/such/folder/x.nii";
  CHECK_THAT(message_of<OutputError>([&] { write_volume(missing, volume); }),
             Catch::Contains(missing));
  for (const std::string extension : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    const std::string path = folder / ("full" + extension);
    write_file(path, "before");
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = before;
    small.rlim_cur = 20000;  // a file that cannot grow stands for a disk that is full
    setrlimit(RLIMIT_FSIZE, &small);
    std::string message;
    try {
      write_volume(path, volume);
    } catch (const OutputError& error) {
      message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_DFL);
    INFO(extension);
    CHECK_THAT(message, Catch::Contains("full" + extension) &&
                            (Catch::Contains("space") || Catch::Contains("ulimit -f")));
    CHECK(read_file(path) == "before");
  }
  CHECK(std::distance(fs::directory_iterator(folder.string()), fs::directory_iterator()) == 4);
  if (fs::exists("/dev/full")) {
    fs::create_symlink("/dev/full", folder / "device.nii.gz");
    CHECK_THROWS_AS(write_volume(folder / "device.nii.gz", volume), OutputError);
    CHECK(fs::is_character_file("/dev/full"));
  }
}

TEST_CASE("the same volume gives the same bytes") {
  const TemporaryFolder folder;
  const auto volume = random_volume<int16_t>(oblique_grid({30, 20, 10}), -9, 9);
  for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
    write_volume(folder / ("a" + extension), volume);
    write_volume(folder / ("b" + extension), volume, 2);
    CHECK(read_file(folder / ("a" + extension)) == read_file(folder / ("b" + extension)));
  }
  const std::string gz = read_file(folder / "a.nii.gz");
  CHECK(gz.substr(4, 4) == std::string(4, '\0'));  // no time stamp
  CHECK((gz[3] & 8) == 0);                         // no name
}

TEST_CASE("labelmaps take the smallest type and have a table") {
  const TemporaryFolder folder;
  LabelVolume labels(oblique_grid({4, 3, 2}));
  labels[1] = 2;
  const LabelTable table{{1, "left", {255, 0, 16}}, {2, "right", {0, 128, 0}}};
  write_labelmap(folder / "l.nii.gz", labels, table);
  CHECK(probe_image(folder / "l.nii.gz").component_type == "uint8");
  CHECK(same_values(labels, read_labels(folder / "l.nii.gz")));
  labels[2] = 300;
  write_labelmap(folder / "l.nii.gz", labels, table);
  CHECK(probe_image(folder / "l.nii.gz").component_type == "int16");
  labels[2] = 60000;
  write_labelmap(folder / "l.nrrd", labels, table);
  CHECK(probe_image(folder / "l.nrrd").component_type == "uint16");
  labels[3] = -1;
  write_labelmap(folder / "l.mha", labels, table);
  CHECK(probe_image(folder / "l.mha").component_type == "int32");
  CHECK(same_values(labels, read_labels(folder / "l.mha")));

  write_label_table(folder / "l.tsv", table);
  CHECK(read_file(folder / "l.tsv") == "index\tname\tcolor\n1\tleft\t#ff0010\n2\tright\t#008000\n");
}

TEST_CASE("real images are read as they are documented") {
  const std::string data = data_folder();
  if (data.empty()) return;
  const auto image = read_volume<float>(data + "/hippocampus/images/hippocampus_001.nii.gz");
  const auto labels = read_labels(data + "/hippocampus/labels/hippocampus_001.nii.gz");
  CHECK(image.size() == Vec3i{35, 51, 35});
  CHECK(describe_difference(image.grid(), labels.grid()).empty());
  CHECK(probe_image(data + "/ct-organs/ct.nii.gz").component_type == "int32");
  const auto ct = read_volume<int16_t>(data + "/ct-organs/ct.nii.gz");
  CHECK(*std::min_element(ct.begin(), ct.end()) == -1207);
  CHECK(*std::max_element(ct.begin(), ct.end()) == 3382);
  const std::string picture = data + "/msrc/images/10_22_s.jpg";
  CHECK(read_rgb(picture).rgb.size() == size_t{320} * 213 * 3);
  // Indexed PNG: indices as labels, colours otherwise.
  const auto classes = read_labels(data + "/msrc/labels/10_22_s.png");
  CHECK(classes.size() == Vec3i{320, 213, 1});
  CHECK(*std::max_element(classes.begin(), classes.end()) <= 23);
  const TemporaryFolder folder;
  const std::string jpeg = read_file(picture);
  reading_error(folder, jpeg.substr(0, jpeg.size() / 2), "half.jpg");
  reading_error(folder, "", "empty.jpg");
  int errors = 0;
  for (size_t at = 0; at < jpeg.size(); at += 199) {
    std::string flipped = jpeg;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x80);
    std::ofstream(folder / "flip.jpg", std::ios::binary) << flipped;
    try {
      read_volume<float>(folder / "flip.jpg");
    } catch (const Error&) {
      ++errors;
    }
  }
  CHECK(errors > 10);
  for (const auto& entry : fs::directory_iterator(data + "/msrc/images")) {
    CHECK_NOTHROW(read_volume<uint8_t>(entry.path().string()));
  }
}
