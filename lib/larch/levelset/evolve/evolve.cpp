// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/evolve.h"

#include <algorithm>
#include <stdexcept>

#include "larch/core/dispatch.h"

namespace larch::levelset {
namespace {

using Evolve = void(EvolveJob& job, int64_t steps, const Context& context);
constexpr Dispatch<Evolve> kBuffers{"levelset::evolve_buffers", cpu::evolve_buffers,
                                    LARCH_CUDA_FN(cuda::evolve_buffers)};
constexpr Dispatch<Evolve> kBricks{"levelset::evolve_bricks", cpu::evolve_bricks,
                                   LARCH_CUDA_FN(cuda::evolve_bricks)};

}  // namespace

std::vector<FieldRange> groups_of(const EvolveJob& job) {
  std::vector<FieldRange> groups;
  std::vector<int32_t> seen;
  for (size_t f = 0; f < job.fields.size(); ++f) {
    const LevelsetField& field = *job.fields[f];
    if (f > 0 && field.group >= 0 && field.group == job.fields[f - 1]->group) {
      if (field.layout.size != job.fields[f - 1]->layout.size) {
        throw std::logic_error("evolve: the fields of a group have different sizes");
      }
      ++groups.back().last;
      continue;
    }
    if (field.group >= 0 && std::find(seen.begin(), seen.end(), field.group) != seen.end()) {
      throw std::logic_error("evolve: the fields of a group do not stand side by side");
    }
    seen.push_back(field.group);
    groups.push_back({f, f + 1});
  }
  return groups;
}

void stop_group(EvolveJob& job, const FieldRange& group, Stop stop) {
  for (size_t f = group.first; f < group.last; ++f) job.progress[f].stop = stop;
}

void finish_step(EvolveJob& job, const FieldRange& group, const std::vector<StepCount>& counts) {
  GroupStep all;
  for (size_t f = group.first; f < group.last; ++f) {
    all.add(counts[f - group.first], job.progress[f]);
  }
  for (size_t f = group.first; f < group.last; ++f) {
    const StepCount& count = counts[f - group.first];
    job.progress[f] = advanced(job.progress[f], count, all, job.stops);
    job.history[f].push_back(count);
  }
}

void evolve(EvolveJob& job, int64_t steps, const Context& context) {
  const size_t fields = job.fields.size();
  job.progress.resize(fields);
  job.active.resize(fields);
  job.history.resize(fields);
  const auto& tracker = job.config->tracker == Tracker::kBrick ? kBricks : kBuffers;
  tracker(context.device, job, steps, context);
}

}  // namespace larch::levelset
