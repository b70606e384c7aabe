// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/models/binary_layout.h"
#include "larch/models/model_file.h"
#include "larch/models/voxels_layout.h"
#include "tests/unit/folder.h"
#include "tests/unit/forest/forest_scenes.h"

namespace {

using namespace larch;

const forest::Model& model() {
  static const forest::Model made = [] {
    voxels::TrainConfig config = fixtures::forest_config();
    config.forest.trees = 2;
    config.validation.fraction = 0.4;
    return fixtures::train_forest(fixtures::forest_volumes(2, config), config,
                                  fixtures::context_of());
  }();
  return made;
}

TEST_CASE("A forest is the same after it was written and read") {
  const std::string bytes = models::encode_container(models::to_container(model()));
  const auto again = models::from_container<forest::Model>(models::decode_container(bytes));
  CHECK(models::encode_container(models::to_container(again)) == bytes);
  CHECK(models::export_json(again) == models::export_json(model()));
  const std::string text = models::describe_model(model());
  for (const char* part : {"roots (2)", "T1", "T2", "smooth", "accuracy", "counts"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("A model of a wrong kind is refused with what reads it") {
  const test::Folder folder;
  const std::string path = folder / "m.forest", tree = folder / "m.pbt";
  models::write_model(path, model());
  models::write_model(tree, fixtures::random_model(1));
  CHECK_THROWS_WITH(models::read_model<pbt::Model>(path), Catch::Contains("kind 'forest'"));
  CHECK_THROWS_WITH(models::read_model<forest::Model>(tree), Catch::Contains("kind 'pbt'"));
  std::string told, digest;
  const models::VoxelModel read = models::read_voxel_model(
      path,
      [&](const std::string& file, const std::string& sha256) { told = file, digest = sha256; });
  CHECK(std::holds_alternative<forest::Model>(read));
  CHECK(told == path);
  CHECK(digest == sha256_of_file(path));
  CHECK(std::holds_alternative<pbt::Model>(models::read_voxel_model(tree)));
  CHECK_THAT(models::describe_model(models::read_any_model(path)), Catch::Contains("roots (2)"));
  models::write_checkpoint(path, forest::PartialForest{}, "print");
  CHECK_THROWS_WITH(models::read_model<forest::Model>(path), Catch::Contains("checkpoint"));
  CHECK_THROWS_AS(models::read_checkpoint<forest::PartialForest>(path, "other"), InputError);
  CHECK(models::read_checkpoint<forest::PartialForest>(path, "print").empty());
  // A checkpoint as training leaves it, and such that training could not go on from.
  tree::ForestTree grown;
  grown.nodes.resize(3);
  grown.nodes[0].left = 1;
  grown.picked = {{0, 7}};
  grown.rounds = 1;
  models::write_checkpoint(path, forest::PartialForest{grown}, "print");
  CHECK_NOTHROW(models::read_checkpoint<forest::PartialForest>(path, "print"));
  const auto refused = [&](const auto& damage) {
    tree::ForestTree damaged = grown;
    damage(damaged);
    models::write_checkpoint(path, forest::PartialForest{damaged}, "print");
    CHECK_THROWS_AS(models::read_checkpoint<forest::PartialForest>(path, "print"), InputError);
  };
  refused([](auto& t) { t.picked[0].round = 5; });
  refused([](auto& t) { t.nodes[0].feature = 1; });
  refused([](auto& t) { t.nodes[0].left = 0; });
  refused([](auto& t) { t.nodes.pop_back(); });
  refused([](auto& t) { t.rounds = 0; });
}

TEST_CASE("Boosting trees say what their channels are made from only where they have to") {
  pbt::Model plain = fixtures::random_model(2);
  CHECK(models::encode_model(plain).sections.count("components") == 0);
  plain.components = {"a", "b"};
  plain.channels[1].component = 1;
  const models::Container container = models::encode_model(plain);
  CHECK(container.sections.at("components").required);
  const pbt::Model again = models::decode_model<pbt::Model>(container);
  CHECK(again.components == plain.components);
  CHECK(again.channels == plain.channels);
  plain.channels[1].component = 2;
  CHECK_THROWS_AS(models::encode_model(plain), InputError);
}

}  // namespace
