// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pipeline/case_labels.h"
#include "tests/io/io_test_util.h"
#include "tests/unit/box_mask.h"

using namespace larch;
using namespace larch::test;
using pipeline::classes_of_masks, pipeline::read_case_labels;

namespace {

/// Folders of masks of boxes in images of 12 x 12 x 12 voxels.
struct Masks : TemporaryFolder {
  std::string warning{};

  Case make(const std::string& id, const std::vector<std::pair<std::string, int>>& first_x) const {
    fs::create_directory(path / id);
    for (const auto& [name, x] : first_x) {
      write_volume(*this / (id + "/" + name + ".nii.gz"), box(x));
    }
    return {id, "image of " + id, *this / id};
  }
  static Volume<uint8_t> box(int x) { return box_mask({12, 12, 12}, {x, 2, 2}, {x + 4, 9, 9}); }
  LabelVolume read(const Case& c, const std::vector<DatasetLabel>& classes) {
    ReadOptions image;
    image.warn = [&](const std::string& text) { warning += text; };
    return read_case_labels(c, grid_of({12, 12, 12}), classes, image);
  }
};

}  // namespace

TEST_CASE("masks of structures have the same labels in all cases") {
  Masks folder;
  const Case both = folder.make("both", {{"spleen", 0}, {"liver", 6}});
  const Case one = folder.make("one", {{"spleen", 0}});
  write_file(folder / "one/statistics.json", "{}");
  write_file(folder / "one/preview.png", "a picture of them");
  const std::vector<DatasetLabel> classes = classes_of_masks({one, both});
  REQUIRE(classes.size() == 2);
  CHECK((classes[0].name == "liver" && classes[0].values == std::vector<int32_t>{1}));
  CHECK((classes[1].name == "spleen" && classes[1].values == std::vector<int32_t>{2}));
  const LabelVolume labels = folder.read(both, classes);
  CHECK((labels({0, 2, 2}) == 2 && labels({6, 2, 2}) == 1 && labels({5, 2, 2}) == 0));
  CHECK(folder.warning.empty());
  CHECK(folder.read(one, classes)({0, 2, 2}) == 2);
  CHECK_THAT(folder.warning, Catch::Contains("case 'one'") && Catch::Contains("there: liver"));
  CHECK(classes_of_masks({{"a", "a.nii", "label.nii"}}).empty());
  CHECK_THAT(message_of<InputError>([&] {
               classes_of_masks({one, {"a", "a.nii", "label.nii"}});
             }),
             Catch::Contains("folders of masks"));
}

TEST_CASE("masks that overlap are named, and refused if it is much") {
  Masks folder;
  const Case much = folder.make("much", {{"a", 0}, {"b", 2}});
  CHECK_THAT(message_of<InputError>([&] { folder.read(much, classes_of_masks({much})); }),
             Catch::Contains("a and b (192 voxels)"));
  const Case little = folder.make("little", {{"a", 0}, {"b", 5}});
  Volume<uint8_t> b = Masks::box(5);
  b({4, 2, 2}) = 255;
  write_volume(folder / "little/b.nii.gz", b);
  CHECK(folder.read(little, classes_of_masks({little}))({4, 2, 2}) == 1);
  CHECK_THAT(folder.warning, Catch::Contains("the first one counts: a and b (1 voxels)"));
  b({5, 2, 2}) = 3;
  write_volume(folder / "little/b.nii.gz", b);
  CHECK_THAT(message_of<InputError>([&] { folder.read(little, classes_of_masks({little})); }),
             Catch::Contains("b.nii.gz") && Catch::Contains("one value"));
  write_volume(folder / "little/a.nrrd", b);
  CHECK_THAT(message_of<InputError>([&] { classes_of_masks({little}); }),
             Catch::Contains("two masks are called 'a'"));
}

TEST_CASE("a closed surface is a label map on the grid of its image") {
  Masks folder;
  const Volume<uint8_t> box = Masks::box(3);
  const Mesh mesh = mesh::marching_cubes(box, Context{});
  for (const std::string ending : {".vtk", ".stl", ".ply"}) {
    const std::string path = folder / ("organ" + ending);
    write_mesh(path, mesh);
    const LabelVolume labels = folder.read({"c", "image", path}, {});
    CHECK(std::ranges::equal(labels, box, {}, {}, [](uint8_t inside) { return inside / 255; }));
    CHECK(folder.warning.empty());
  }
  const auto error = [&](const Mesh& other) {
    write_mesh(folder / "bad.vtk", other);
    return message_of<InputError>([&] { folder.read({"c", "image", folder / "bad.vtk"}, {}); });
  };
  Mesh open = mesh, far = mesh, near = mesh;
  open.triangles.pop_back();
  CHECK_THAT(error(open), Catch::Contains("not closed: 3 edges"));
  for (Vec3d& vertex : far.vertices_mm) vertex.x += 100;
  CHECK_THAT(error(far), Catch::Contains("encloses no voxel"));
  for (Vec3d& vertex : near.vertices_mm) vertex.x -= 6;
  write_mesh(folder / "near.vtk", near);
  folder.read({"c", "image", folder / "near.vtk"}, {});
  CHECK_THAT(folder.warning, Catch::Contains("lie outside of the image"));
}
