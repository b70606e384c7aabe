// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What a program that uses the library has set for itself: variables, and a locale with commas.
#include <cstdlib>
#include <locale>

#include "larch/config/config.h"
#include "larch/io/image/image.h"
#include "larch/io/markups/markups.h"
#include "larch/io/mesh/mesh_io.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/nifti_damage.h"

using namespace larch;
using namespace larch::test;

namespace {

/// Sets a locale that writes 2,5 as German does. It is made here, since a bare system has none.
void set_comma_locale(const TemporaryFolder& folder) {
  write_file(folder / "letters",
             "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n"
             "<U0000>..<U007F> /x00\nEND CHARMAP\n");
  write_file(folder / "source",
             "comment_char %\nescape_char /\nLC_CTYPE\nEND LC_CTYPE\nLC_NUMERIC\n"
             "decimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n");
  // What the source leaves out is taken from the usual locale, with warnings and exit code 1.
  shell("localedef -c --no-archive -i " + folder / "source" + " -f " + folder / "letters" + " " +
        folder / "comma" + " 2>/dev/null");
  ::setenv("LOCPATH", folder.string().c_str(), 1);
  std::locale::global(std::locale("comma"));
  REQUIRE(std::to_string(2.5) == "2,500000");
}

struct Setting {
  float share = 0.1F;
  template <class F>
  void fields(F&& f) {
    f(Field{"share", share, "a share"});
  }
};

/// Writes one file of each kind that holds numbers as text.
void write_all(const TemporaryFolder& folder) {
  const auto volume = random_volume<int16_t>(oblique_grid({4, 3, 2}), -100, 100);
  const Pose pose{{1.5, -2.25, 1234.5}, {1, 0, 0, 0}, {0.5, 1.5, 2.5}};
  Setting setting;
  for (const char* name : {"a.nii", "a.nrrd", "a.mha"}) write_volume(folder / name, volume);
  write_dicom_slice(folder / "a.dcm", volume, 1, {"A^B", "1", "x", "1.2", "1.2.3", "1.2.4"});
  write_mesh(folder / "a.obj", {{{0.5, 1234.25, 0}, {1.5, 0, 0}, {0, 2.5, 1e-7}}, {{0, 1, 2}}});
  write_poses(folder / "a.mrk.json", {{"box", pose}}, true);
  write_file(folder / "a.json", config::to_json(config::describe(setting)).dump());
}

/// What the files of a folder say.
std::vector<double> numbers_in(const TemporaryFolder& folder) {
  std::vector<double> all;
  const auto add = [&](const Vec3d& v) { all.insert(all.end(), {v.x, v.y, v.z}); };
  for (const char* name : {"a.nii", "a.nrrd", "a.mha", "a.dcm", "slope.dcm", "plain.nrrd"}) {
    const auto volume = read_volume<float>(folder / name);
    add(volume.grid().spacing_mm);
    add(world_from_index(volume.grid(), {0, 0, 0}));
    add(world_from_index(volume.grid(), {3, 2, 1}));
    all.insert(all.end(), volume.begin(), volume.end());
  }
  for (const Vec3d& v : read_mesh(folder / "a.obj").vertices_mm) add(v);
  add(read_poses(folder / "a.mrk.json").at(0).pose.centre_mm);
  Setting setting{0};
  config::from_json(config::describe(setting), config::parse_file(folder / "a.json"), "test");
  all.push_back(setting.share);
  return all;
}

}  // namespace

TEST_CASE("reading an image changes no variable of the process") {
  const TemporaryFolder folder;
  ::setenv("ITK_AUTOLOAD_PATH", folder.string().c_str(), 1);
  sound_nifti(folder);
  read_volume<int16_t>(folder / "sound.nii");
  const char* kept = std::getenv("ITK_AUTOLOAD_PATH");
  CHECK((kept != nullptr && kept == folder.string()));
}

TEST_CASE("files are the same, and say the same, under a locale with commas") {
  const TemporaryFolder plain, comma;
  write_all(plain);
  MadeSlice slice;
  slice.position = {-12.5, 0.25, 1234.5};
  slice.slope = "0.5";
  write_file(plain / "slope.dcm", made_dicom(slice));
  write_file(plain / "plain.nrrd", nrrd_of("2 2 2", "spacings: 0.5 1.25 2.5\naxis mins: 1.5 0 0\n",
                                           std::string(8, '\1')));
  const std::vector<double> numbers = numbers_in(plain);
  set_comma_locale(comma);
  CHECK(numbers_in(plain) == numbers);
  write_all(comma);
  for (const char* name : {"a.nii", "a.nrrd", "a.mha", "a.dcm", "a.obj", "a.mrk.json", "a.json"}) {
    INFO(name);
    CHECK(read_file(comma / name) == read_file(plain / name));
  }
  const std::string far = mha_of("2 2 2", "ElementSpacing = 12345.5 1 1\n", std::string(8, '\1'));
  CHECK_THAT(reading_error(comma, far, "far.mha"), Catch::Contains("of 12345.5 mm along"));
  std::locale::global(std::locale::classic());
}
