// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/kinds.h"

#include "larch/models/boundary_file.h"
#include "larch/models/file.h"
#include "larch/models/forest_file.h"
#include "larch/models/hdn_file.h"
#include "larch/models/pbt_file.h"

namespace larch::models {
namespace {

/// A kind of container; a checkpoint has no functions.
struct KnownKind {
  const char* name;
  const char* use;
  std::string (*describe)(const std::string& path);
  std::string (*export_json)(const std::string& path);
};
using Path = const std::string&;
constexpr KnownKind kKinds[] = {
    {"pbt", "pbt-detect reads it", [](Path p) { return describe_model(read_model(p)); },
     [](Path p) { return export_json(read_model(p)); }},
    {"forest", "pbt-detect reads it", [](Path p) { return describe_forest(read_forest(p)); },
     [](Path p) { return export_forest_json(read_forest(p)); }},
    {"hdn", "hdn-detect reads it", [](Path p) { return describe_network(read_network(p)); },
     [](Path p) { return export_network_json(read_network(p)); }},
    {"boundary", "boundary-refine reads it",
     [](Path p) { return describe_boundary(read_boundary(p)); },
     [](Path p) { return export_boundary_json(read_boundary(p)); }},
    {kBoundaryCheckpointKind, "pbt-train goes on from it with --resume", nullptr, nullptr},
    {kForestCheckpointKind, "pbt-train goes on from it with --resume", nullptr, nullptr},
    {kPbtCheckpointKind, "pbt-train goes on from it with --resume", nullptr, nullptr},
    {kNetworkCheckpointKind, "pbt-train goes on from it with --resume", nullptr, nullptr}};

const KnownKind* find_kind(std::string_view kind) {
  for (const KnownKind& known : kKinds) {
    if (known.name == kind) return &known;
  }
  return nullptr;
}

KnownKind kind_of_model(const std::string& path) {
  return naming_file("model", path, [&] {
    const std::string kind = read_container(path).kind;
    const KnownKind* known = find_kind(kind);
    if (known != nullptr && known->describe != nullptr) return *known;
    throw InputError("it is of the kind '" + kind + "'; " + use_of_kind(kind));
  });
}

}  // namespace

std::string use_of_kind(std::string_view kind) {
  const KnownKind* known = find_kind(kind);
  return known != nullptr ? known->use : "give a model that was made for this program";
}

std::string describe_any(const std::string& path) {
  return kind_of_model(path).describe(path);
}

std::string export_any(const std::string& path) {
  return kind_of_model(path).export_json(path);
}

}  // namespace larch::models
