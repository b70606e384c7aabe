// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Model files of all kinds. Their digests would stop every mutation at once, so that the target
// also reads the input with its lengths and digests repaired, as somebody would who makes such a
// file on purpose. The tables of logistic values, four fifths of a small file, are filled in where
// they are not there. A model that is accepted is described, written again, and evaluated on a
// small volume.
#include <algorithm>
#include <cstring>
#include <optional>

#include "larch/core/context.h"
#include "larch/forest/evaluate.h"
#include "larch/hdn/detect.h"
#include "larch/models/binary_layout.h"
#include "larch/models/container.h"
#include "larch/models/forest_file.h"
#include "larch/models/hdn_file.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/evaluate/slabs.h"
#include "larch/tree/self_test.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

template <class T>
models::Section section_of(T value) {
  models::Encoder encoder;
  models::visit(encoder, value);
  return {std::move(encoder).take(), true};
}

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The sections as far as the lengths fit into the file, whatever its digests say.
models::Container sections_of(std::string_view bytes) {
  constexpr size_t kHeader = 64, kEntry = 44, kDigest = 32;
  models::Container found;
  found.kind = "pbt";
  if (bytes.size() < kHeader) return found;
  found.kind_version = number_at<uint32_t>(bytes, 12);
  const std::string_view kind = bytes.substr(16, models::kMostKindCharacters);
  found.kind = kind.substr(0, kind.find('\0'));
  const size_t table_end =
      kHeader + std::min<uint64_t>(number_at<uint64_t>(bytes, 48), bytes.size() - kHeader);
  size_t data = std::min(table_end + kDigest, bytes.size());
  for (size_t at = kHeader; at + kEntry <= table_end;) {
    const auto length =
        std::min<uint64_t>(number_at<uint64_t>(bytes, at + 32), bytes.size() - data);
    const bool required = (number_at<uint16_t>(bytes, at + 40) & 1) != 0;
    const auto name =
        std::string(bytes.substr(at + kEntry, std::min<size_t>(number_at<uint16_t>(bytes, at + 42),
                                                               table_end - at - kEntry)));
    found.sections[name] = {std::string(bytes.substr(data, length)), required};
    at = (at + kEntry + name.size() + 7) / 8 * 8;
    data = std::min<size_t>((data + length + 7) / 8 * 8, bytes.size());
  }
  // Of the tree, or of each detector of a network.
  std::vector<std::string> trees;
  constexpr std::string_view kNodes = "nodes";
  for (const auto& [name, section] : found.sections) {
    if (name.ends_with(kNodes)) trees.push_back(name.substr(0, name.size() - kNodes.size()));
  }
  for (const std::string& tree : trees) {
    if (found.kind != "forest" && !tree.ends_with("forest/")) {
      found.sections.emplace(tree + "logistic_q30", section_of(tree::make_logistic_table()));
    }
    found.sections.emplace(tree + "self_tests", section_of(std::vector<uint32_t>{}));
  }
  return found;
}

Volume<int16_t> some_voxels(const image::ModelSpace& space) {
  Grid grid;
  grid.size = {9, 6, 5};
  Volume<int16_t> voxels(grid);
  const auto range = image::value_range(space.intensity);
  for (int64_t i = 0; i < voxels.voxels(); ++i) {
    const int64_t width = int64_t{range[1]} - range[0] + 1;
    voxels[i] = static_cast<int16_t>(range[0] + i * 7919 % width);
  }
  return voxels;
}

std::vector<Volume<int16_t>> some_components(const pbt::ImageModel& model) {
  return {std::max<size_t>(1, model.components.size()), some_voxels(model.space)};
}

void evaluate(const pbt::Model& model) {
  const std::vector<Volume<int16_t>> voxels = some_components(model);
  Volume<float> found;
  const bool done = fuzz::accepts({ExitCode::kMemory, ExitCode::kInput}, "", [&] {
    found = pbt::evaluate_volume<float>(model, voxels, {}, int64_t{64} << 20, Context{});
  });
  if (!done) return;
  fuzz::require(std::all_of(found.begin(), found.end(), [](float p) { return p >= 0 && p <= 1; }),
                "a probability outside of 0 to 1");
}

void use(pbt::Model model) {
  model.self_tests = tree::make_self_tests(model, model.features.size(), 1);
  tree::run_self_tests(model, model.features.size());
  models::describe_model(model);
  const std::string path = fuzz::folder() + "/back.pbt";
  models::write_model(path, model);
  const pbt::Model back = models::read_model(path);
  const std::string json = models::export_json(back);
  fuzz::require(models::export_json(models::import_json(json)) == json,
                "a model changed on its way through JSON");
  evaluate(back);
}

void use(forest::Model model) {
  model.self_tests = tree::make_self_tests(model, 1, 1);
  models::describe_forest(model);
  const std::string path = fuzz::folder() + "/back.forest";
  models::write_forest(path, model);
  const std::string json = models::export_forest_json(model);
  fuzz::require(models::export_forest_json(models::read_forest(path)) == json,
                "a forest changed on its way through a file");
  forest::Wanted wanted;
  wanted.leaves = wanted.distribution = wanted.labels = true;
  forest::Maps maps;
  const bool done = fuzz::accepts({ExitCode::kMemory, ExitCode::kInput}, "", [&] {
    maps = forest::evaluate_volume(model, some_components(model), wanted, int64_t{64} << 20, {});
  });
  for (size_t t = 0; done && t < maps.leaves.size(); ++t) {
    for (const int32_t leaf : maps.leaves[t]) {
      fuzz::require(leaf >= 0 && static_cast<size_t>(leaf) < model.leaves(), "no such leaf");
    }
  }
}

/// How many hypotheses the stages of a network try, at most.
double hypotheses(const hdn::Model& model) {
  double all = 0;
  for (const hdn::Structure& s : model.structures) {
    double in = 0;
    for (const hdn::Detector& d : s.detectors) {
      all += in * static_cast<double>(d.stage.rotations.size() + d.stage.log_scales.size());
      in = d.stage.keep;
    }
  }
  return all;
}

void find(hdn::Model model) {
  const Volume<int16_t> voxels = some_voxels(model.space);
  constexpr double kMost = 1e5;  // for the time that one input may take
  if (hypotheses(model) > kMost) return;
  std::vector<hdn::FoundStructure> found;
  const bool done = fuzz::accepts({ExitCode::kMemory, ExitCode::kInput}, "", [&] {
    found = hdn::detect(hdn::make_resident(std::move(model), {}, Device::cpu()), voxels,
                        voxels.grid(), {});
  });
  for (size_t i = 0; done && i < found.size(); ++i) {
    fuzz::require(found[i].confidence >= 0 && found[i].confidence <= 1,
                  "a confidence beyond 0 to 1");
    const bool is_sound = !found[i].has_pose || fuzz::accepts({ExitCode::kInput}, "", [&] {
      check_pose(found[i].pose, "found");
    });
    fuzz::require(is_sound, "a pose that is none");
  }
}

void use(hdn::Model model) {
  models::describe_network(model);
  const std::string path = fuzz::folder() + "/back.hdn", json = models::export_network_json(model);
  models::write_network(path, model);
  fuzz::require(models::export_network_json(models::read_network(path)) == json,
                "a network changed on its way through a file");
  find(std::move(model));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::string path = fuzz::file_of("case.pbt", bytes);
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_model(path); });
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_partial(path, ""); });
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_network(path); });
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_training(path, ""); });
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_forest(path); });
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_forest_partial(path, ""); });
  std::optional<pbt::Model> model;
  std::optional<hdn::Model> network;
  std::optional<forest::Model> forest;
  fuzz::accepts({ExitCode::kInput}, "", [&] {
    const models::Container sections = sections_of(bytes);
    const std::string repaired = models::encode_container(sections);
    if (sections.kind == "forest") {
      forest = models::read_forest(fuzz::file_of("case.forest", repaired));
    } else if (sections.kind != "hdn") {
      model = models::decode_model(models::decode_container(repaired));
    } else {
      network = models::read_network(fuzz::file_of("case.hdn", repaired));
    }
  });
  if (model) use(std::move(*model));
  if (network) use(std::move(*network));
  if (forest) use(std::move(*forest));
  return 0;
}
