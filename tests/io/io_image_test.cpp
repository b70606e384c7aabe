// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

template <class T>
void check_round_trip(const TemporaryFolder& folder, const std::string& extension, double lowest,
                      double highest, const char* type) {
  for (const Vec3i& size : {Vec3i{5, 4, 3}, Vec3i{1, 1, 1}, Vec3i{7, 5, 1}, Vec3i{1, 1, 9}}) {
    for (const bool left_handed : {false, true}) {
      const auto volume = random_volume<T>(oblique_grid(size, left_handed), lowest, highest);
      const std::string path = folder / ("round" + extension);
      write_volume(path, volume);
      const auto back = read_volume<float>(path);
      INFO(path << " left-handed " << left_handed);
      CHECK(describe_difference(volume.grid(), back.grid(), 1e-4).empty());
      CHECK(same_values(volume, back));
      CHECK(determinant(back.grid().direction) * determinant(volume.grid().direction) > 0);
      const ImageInfo info = probe_image(path);
      CHECK(describe_difference(info.grid, back.grid(), 1e-3).empty());
      CHECK(info.component_type == type);
      CHECK(info.components == 1);
      CHECK(info.bytes == volume.voxels() * static_cast<int64_t>(sizeof(T)));
    }
  }
}

}  // namespace

TEST_CASE("volumes come back from every format as they were written, and are told by the header") {
  const TemporaryFolder folder;
  for (const std::string extension : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    check_round_trip<uint8_t>(folder, extension, 0, 255, "uint8");
    check_round_trip<int16_t>(folder, extension, -32768, 32767, "int16");
    check_round_trip<uint16_t>(folder, extension, 0, 65535, "uint16");
    check_round_trip<int32_t>(folder, extension, -9e6, 9e6, "int32");
    check_round_trip<float>(folder, extension, -1, 1, "float32");
  }
}

TEST_CASE("pictures come back") {
  const TemporaryFolder folder;
  Grid grid;
  grid.size = {6, 5, 1};
  const auto check = [&](const std::string& name, const auto& picture) {
    write_volume(folder / name, picture);
    const auto back = read_volume<float>(folder / name);
    CHECK(same_values(picture, back));
    CHECK(describe_difference(back.grid(), grid, 1e-3).empty());
  };
  check("a.png", random_volume<uint8_t>(grid, 0, 255));
  check("a.tif", random_volume<uint8_t>(grid, 0, 255));
  check("b.tif", random_volume<uint16_t>(grid, 0, 65535));
  check("c.tif", random_volume<float>(grid, -1, 1));
}

TEST_CASE("colour pictures become luminance") {
  const TemporaryFolder folder;
  RgbImage image{2, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}};
  write_png(folder / "c.png", image);
  const RgbImage back = read_rgb(folder / "c.png");
  CHECK(Vec3i{back.width, back.height, 1} == Vec3i{2, 2, 1});
  CHECK(back.rgb == image.rgb);
  const auto grey = read_volume<float>(folder / "c.png");
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (int64_t i = 0; i < 3; ++i) CHECK(grey[i] == Approx(255 * weights[i]));
  CHECK(read_volume<uint8_t>(folder / "c.png")[0] == 54);
  CHECK_THAT(message_of<InputError>([&] { read_labels(folder / "c.png"); }),
             Catch::Contains("colour"));
}

TEST_CASE("nibabel agrees about NIfTI geometry and values") {
  if (!has_nibabel()) return;
  const TemporaryFolder folder;
  const std::vector<std::string> made{"v2.nii.gz", "pair.hdr", "big.nii", "scaled.nii.gz",
                                      "qform.nii"};
  write_file(folder / "check.py",
             "import nibabel, numpy, sys\n"
             "image = nibabel.load(sys.argv[1])\n"
             "for affine in (image.get_sform(), image.get_qform(), image.affine):\n"
             "    ras = affine @ [4, 3, 2, 1]\n"
             "    want = numpy.array([float(v) for v in sys.argv[2:5]]) * [-1, -1, 1]\n"
             "    assert numpy.abs(ras[:3] - want).max() < 1e-4, (ras, want)\n"
             "assert image.header['sform_code'] == 1 and image.header['qform_code'] == 1\n"
             "assert image.header.get_xyzt_units()[0] == 'mm'\n"
             "data = numpy.asarray(image.dataobj)\n"
             "assert data.dtype == numpy.int16 and data[4, 3, 2] == int(sys.argv[5])\n"
             "names = sys.argv[6:]\n"
             "nibabel.save(nibabel.Nifti2Image(data, image.affine), names[0])\n"
             "nibabel.save(nibabel.Nifti1Pair(data, image.affine), names[1])\n"
             "big = nibabel.Nifti1Image(data, image.affine, nibabel.Nifti1Header(endianness='>'))\n"
             "big.header.set_data_dtype('>i2'); nibabel.save(big, names[2])\n"
             "scaled = nibabel.Nifti1Image(data, image.affine)\n"
             "scaled.header.set_slope_inter(0.5, 3); nibabel.save(scaled, names[3])\n"
             "assert nibabel.load(names[3]).get_fdata()[4, 3, 2] == 0.5 * data[4, 3, 2] + 3\n"
             "header = image.header.copy(); header['sform_code'] = 0\n"
             "nibabel.save(nibabel.Nifti1Image(data, None, header), names[4])\n");
  for (const bool left_handed : {false, true}) {
    const auto volume = random_volume<int16_t>(oblique_grid({5, 4, 3}, left_handed), -99, 99);
    write_volume(folder / "a.nii.gz", volume);
    const Vec3d last = world_from_index(volume.grid(), {4, 3, 2});
    std::string command = "cd '" + folder.string() + "' && /usr/bin/python3 check.py a.nii.gz";
    for (int axis = 0; axis < 3; ++axis) command += " " + std::to_string(last[axis]);
    command += " " + std::to_string(volume({4, 3, 2}));
    for (const std::string& name : made) command += " " + name;
    REQUIRE(shell(command));
    for (const std::string& name : made) {
      INFO(name);
      const auto back = read_volume<float>(folder / name);
      CHECK(describe_difference(volume.grid(), back.grid(), 1e-3).empty());
      Volume<float> wanted = back;
      const bool scaled = name == "scaled.nii.gz";
      std::transform(volume.begin(), volume.end(), wanted.begin(),
                     [&](int16_t value) { return scaled ? 0.5F * value + 3 : value; });
      CHECK(same_values(wanted, back));
    }
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
  write_file(folder / "none.nii", with_shorts(both, {{252, 0}, {254, 0}}));
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
    write_file(folder / "in.nii", with_shorts(sound, {{252, code}, {254, code}}));
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
  const auto read = [&](int sform, int qform, float shift) {
    warnings.clear();
    write_file(folder / "in.nii",
               with(with_shorts(sound, {{252, qform}, {254, sform}}), 268, 12.5F + shift));
    return read_volume<int16_t>(folder / "in.nii", options).grid();
  };
  const Grid usual = read(1, 1, 0);
  REQUIRE(warnings.empty());
  for (const auto& [sform, qform] : {std::pair(7, 1), {7, 7}, {1, -1}, {-1, 1}, {300, 0}}) {
    const std::string codes = std::to_string(sform) + " and qform_code " + std::to_string(qform);
    INFO(codes);
    const Grid grid = read(sform, qform, 0);
    CHECK(grid.frame == (sform > 5 ? WorldFrame::kAligned : WorldFrame::kScanner));
    CHECK(describe_difference(grid, usual, 1e-3).empty());
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::Contains("sform_code " + codes));
    // What no code names does not count.
    if (qform == 0) {
      CHECK(describe_difference(read(sform, qform, 5), usual, 1e-3).empty());
    } else {
      CHECK_THAT(message_of<InputError>([&] { read(sform, qform, 5); }),
                 Catch::Contains("in.nii") && Catch::Contains("not known which counts"));
    }
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
    const std::string message = refusal(path);
    CHECK_THAT(message, Catch::Contains("2 voxels are NaN") && Catch::Contains("--nan-value") &&
                            Catch::Contains("(3,0,0)") && Catch::Contains(path));
    ReadOptions options;
    options.nan_value = -5;
    const auto back = read_volume<float>(path, options);
    CHECK(Vec3f{back[0], back[3], back[9]} == Vec3f{1, -5, -5});
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

TEST_CASE("a description stands in the header and changes nothing else") {
  const TemporaryFolder folder;
  const Volume<uint8_t> volume(oblique_grid({3, 4, 5}), 7);
  const std::string text = "level set in mm, negative inside";
  for (const std::string extension : {".nii", ".nrrd", ".mha"}) {
    const std::string path = folder / ("d" + extension);
    write_volume(path, volume, 1, text);
    CHECK_THAT(read_file(path).substr(0, 400), Catch::Contains(text));
    CHECK(describe_difference(read_volume<uint8_t>(path).grid(), volume.grid(), 1e-3).empty());
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
  CHECK_THAT(refusal(folder / "no.nii"), Catch::Contains("no such file"));
  write_file(folder / "x.foo", "hello");
  CHECK_THAT(refusal(folder / "x.foo"), Catch::Contains("neither DICOM nor a known ending"));
  CHECK_THAT(refusal(folder.string()), Catch::Contains("no DICOM images"));
}

TEST_CASE("a failed write leaves nothing and does not touch what was there") {
  const TemporaryFolder folder, said;
  const auto volume = random_volume<float>(oblique_grid({64, 64, 16}), -1, 1);
  const std::string missing = folder / "no/such/folder/x.nii";
  CHECK_THAT(message_of<OutputError>([&] { write_volume(missing, volume); }),
             Catch::Contains(missing));
  for (const std::string extension : {".nii", ".nii.gz", ".nrrd", ".mha"}) {
    const std::string path = folder / ("full" + extension);
    write_file(path, "before");
    // A file that cannot grow stands for a disk that is full.
    const int code = code_within(RLIMIT_FSIZE, 20000, [&] {
      write_file(said / "x", message_of<OutputError>([&] { write_volume(path, volume); }));
    });
    CHECK(code == 0);
    const std::string message = read_file(said / "x");
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
  const LabelTable table{{1, "left", {255, 0, 16}}, {2, "right", {0, 128, 0}}};
  for (const auto& [label, type] :
       {std::pair(2, "uint8"), {300, "int16"}, {60000, "uint16"}, {-1, "int32"}}) {
    labels[label & 3] = label;
    for (const std::string extension : {".nii.gz", ".nrrd", ".mha"}) {
      write_labelmap(folder / ("l" + extension), labels, table);
      CHECK(probe_image(folder / ("l" + extension)).component_type == type);
      CHECK(same_values(labels, read_labels(folder / ("l" + extension))));
    }
  }
  write_label_table(folder / "l.tsv", table);
  CHECK(read_file(folder / "l.tsv") == "index\tname\tcolor\n1\tleft\t#ff0010\n2\tright\t#008000\n");
}

TEST_CASE("real images are read as they are documented") {
  const std::string data = data_folder();
  if (data.empty()) return;
  const auto image = read_volume<float>(data + "/hippocampus/images/hippocampus_001.nii.gz");
  const auto labels = read_labels(data + "/hippocampus/labels/hippocampus_001.nii.gz");
  CHECK(image.size() == Vec3i{35, 51, 35});
  CHECK(describe_difference(image.grid(), labels.grid(), 1e-3).empty());
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
  write_file(folder / "flip.jpg", jpeg);
  CHECK(errors_of_flipped_bytes(folder / "flip.jpg", {0x80}, 199, [&] {
          return read_volume<float>(folder / "flip.jpg").voxels() > 0;
        }) > 10);
  for (const auto& entry : fs::directory_iterator(data + "/msrc/images")) {
    CHECK_NOTHROW(read_volume<uint8_t>(entry.path().string()));
  }
}
