// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Model files. Their checksums would stop every mutation at once, so that the target also reads the
// input with its lengths, checksums and digest repaired, as somebody would who makes such a file on
// purpose. The table of logistic values, four fifths of a small file, is filled in where it is not
// there. A model that is accepted is described, written again, and evaluated on a small volume.
#include <algorithm>
#include <optional>

#include "larch/core/context.h"
#include "larch/models/bytes.h"
#include "larch/models/container.h"
#include "larch/models/pbt_codec.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/evaluate/slabs.h"
#include "larch/tree/self_test.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

models::Chunk logistic_chunk() {
  models::ByteWriter out;
  const std::vector<uint32_t> table = tree::make_logistic_table();
  out.u64(table.size());
  for (const uint32_t value : table) out.u32(value);
  return {"LUTS", true, out.bytes()};
}

// The chunks as far as their lengths fit into the file, whatever its checksums say.
models::Container parts_of(std::string_view bytes) {
  constexpr size_t kHeader = 32, kChunkHeader = 16;
  models::Container parts;
  if (bytes.size() < kHeader) return parts;
  std::memcpy(&parts.content, bytes.data() + 12, sizeof parts.content);
  for (size_t at = kHeader; at + kChunkHeader <= bytes.size();) {
    models::Chunk chunk;
    chunk.id = std::string(bytes.substr(at, 4));
    chunk.required = (bytes[at + 4] & 1) != 0;
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at + 8, sizeof length);
    length = std::min<uint64_t>(length, bytes.size() - at - kChunkHeader);
    chunk.payload = std::string(bytes.substr(at + kChunkHeader, length));
    at += kChunkHeader + length + 4;
    at += (8 - at % 8) % 8;
    if (chunk.id != "END.") parts.chunks.push_back(std::move(chunk));
  }
  if (parts.find("LUTS") == nullptr) parts.chunks.push_back(logistic_chunk());
  if (parts.find("TEST") == nullptr) parts.chunks.push_back({"TEST", true, std::string(8, '\0')});
  return parts;
}

void evaluate(const pbt::Model& model) {
  Grid grid;
  grid.size = {9, 6, 5};
  Volume<int16_t> voxels(grid);
  const auto range = image::value_range(model.space.intensity);
  for (int64_t i = 0; i < voxels.voxels(); ++i) {
    const int64_t width = int64_t{range[1]} - range[0] + 1;
    voxels[i] = static_cast<int16_t>(range[0] + i * 7919 % width);
  }
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::string path = fuzz::file_of("case.pbt", bytes);
  fuzz::accepts({ExitCode::kInput}, "case.pbt", [&] { models::read_model(path); });
  const std::string repaired = models::encode_container(parts_of(bytes));
  std::optional<pbt::Model> model;
  fuzz::accepts({ExitCode::kInput}, "", [&] {
    std::optional<models::PartHeader> part;
    model = models::decode_model(models::decode_container(repaired), &part);
  });
  if (model) use(std::move(*model));
  return 0;
}
