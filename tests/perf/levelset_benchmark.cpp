// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "larch/core/parallel.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/step/time_step.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

using levelset::LevelsetConfig;
using levelset::LevelsetField;
using levelset::StepCount;
using levelset::Tracker;

constexpr int kEdge = 256;

Grid cube() {
  Grid grid;
  grid.size = {kEdge, kEdge, kEdge};
  return grid;
}

template <class T, class Function>
Volume<T> volume_of(const Function& function) {
  Volume<T> volume(cube());
  constexpr int kThreads = 16;
  parallel_for(kThreads, volume.voxels(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      volume[i] = static_cast<T>(function(volume.grid().voxel(i).template cast<double>()));
    }
  });
  return volume;
}

/// The distance to the nearest of balls side by side, so many along each axis.
double distance_to_balls(const Vec3d& at, double radius, int per_axis) {
  const double pitch = static_cast<double>(kEdge) / per_axis;
  const auto along = [pitch](double x) { return std::fmod(x + 0.5, pitch) - pitch / 2; };
  return norm(Vec3d{along(at.x), along(at.y), along(at.z)}) - radius;
}
Volume<float> balls(double radius, int per_axis) {
  return volume_of<float>([=](const Vec3d& at) { return distance_to_balls(at, radius, per_axis); });
}

int16_t stored(double speed) {
  return static_cast<int16_t>(std::lround(std::clamp(speed, -1.0, 1.0) * levelset::kSpeedOne));
}

/// What is moved, by name.
struct Scene {
  Volume<float> phi{};
  Volume<int16_t> speed{};
};

/// Balls that grow by seven voxels in a thousand steps: hardly faster than what stands still, so
/// that about the same bricks are active all the time.
struct Balls {
  int radius = 0, per_axis = 1;
};
const Scene& growing(const Balls& what) {
  static std::map<std::pair<int, int>, Scene> scenes;
  Scene& scene = scenes[{what.radius, what.per_axis}];
  if (scene.phi.empty()) {
    scene.phi = balls(what.radius, what.per_axis);
    scene.speed = volume_of<int16_t>([](const Vec3d&) { return stored(0.025); });
  }
  return scene;
}

/// A seed that grows through a labyrinth of channels to the border of a ball: as long a way, in
/// steps, as that of a seed through white matter. 2151 steps with 77 000 active voxels on average
/// and 187 000 at most, as in the run of Roberts et al. 2010 (2163, 70 000, 186 000).
const Scene& labyrinth() {
  static const Scene scene = [] {
    Scene made;
    made.phi = balls(8, 1);
    made.speed = volume_of<int16_t>([](const Vec3d& at) {
      constexpr double kWave = 2 * M_PI / 40;
      const Vec3d w = at * kWave;
      const double gyroid = std::sin(w.x) * std::cos(w.y) + std::sin(w.y) * std::cos(w.z) +
                            std::sin(w.z) * std::cos(w.x);
      const double r = norm(at - Vec3d{127.5, 127.5, 127.5});
      const double channel = std::min(1.5 * (0.35 - std::abs(gyroid - 0.2)), (57 - r) / 8);
      return stored(std::clamp(channel, -1.0, 0.14));
    });
    return made;
  }();
  return scene;
}

LevelsetConfig growing_config() {
  LevelsetConfig config;
  config.curvature_weight = 0;
  return config;
}

/// One field with what moves it.
struct Runner {
  Runner(const Scene& s, const LevelsetConfig& c, const Context& where)
      : scene(s), config(c), context(where) {
    const Grid grid = cube();
    LevelsetField& made = job.fields.emplace_back();
    made.layout = levelset::make_brick_layout(grid.size);
    made.step = levelset::make_step(config, {}, grid.spacing_mm, grid.size);
    made.speed = levelset::by_brick(scene.speed, context);
    levelset::set_phi(made, scene.phi, context);
  }
  LevelsetField& field() { return job.fields[0]; }
  void restart() {
    levelset::EvolveJob next;
    next.tracker = config.tracker;
    next.fields = std::move(job.fields);
    job = std::move(next);
    levelset::set_phi(field(), scene.phi, context);
  }

  const Scene& scene;
  LevelsetConfig config;
  Context context;
  levelset::EvolveJob job{};
};

/// Seconds of a call.
template <class Function>
double seconds_of(const Function& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double mean_active(const std::vector<StepCount>& history) {
  double sum = 0;
  for (const StepCount& step : history) sum += step.active;
  return history.empty() ? 0 : sum / static_cast<double>(history.size());
}

/// Microseconds of a step of a field that is on its way: `steps` of them in one call, after some.
void step_of(benchmark::State& state, const Balls& what, int64_t steps, const Context& context) {
  Runner run(growing(what), growing_config(), context);
  double seconds = 0;
  int64_t done = 0;
  for (auto _ : state) {
    run.restart();
    run.job.stops.unchanged_labels = 0;
    levelset::evolve(run.job, 20, context);
    run.job.history.clear();
    const double one = seconds_of([&] { levelset::evolve(run.job, steps, context); });
    state.SetIterationTime(one);
    seconds += one;
    done += static_cast<int64_t>(run.job.history[0].size());
  }
  state.counters["us/step"] = 1e6 * seconds / static_cast<double>(done);
  state.counters["active"] = mean_active(run.job.history[0]);
}

/// A whole run from a seed to its end.
void whole_run(benchmark::State& state, Tracker tracker, const Context& context) {
  LevelsetConfig config;
  config.tracker = tracker;
  Runner run(labyrinth(), config, context);
  for (auto _ : state) {
    run.restart();
    state.SetIterationTime(
        seconds_of([&] { levelset::evolve(run.job, config.max_iterations, context); }));
  }
  const std::vector<StepCount>& history = run.job.history[0];
  double most = 0, changed = 0;
  for (const StepCount& step : history) {
    most = std::max(most, static_cast<double>(step.active));
    changed += step.changed;
  }
  const auto steps = static_cast<double>(history.size());
  state.counters["steps"] = steps;
  state.counters["active"] = mean_active(history);
  state.counters["most_active"] = most;
  state.counters["changed"] = changed / steps;
  state.counters["inside"] = static_cast<double>(run.job.inside[0]);
  state.counters["stop"] = static_cast<double>(run.job.progress.stop);
}

template <class Function>
void add(const std::string& name, int repetitions, const Function& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->Repetitions(repetitions)
      ->ReportAggregatesOnly(false);
}

}  // namespace

void register_levelset() {
  for (const Place& place : places()) {
    const bool is_cuda = place.context.device.is_cuda();
    const Context context = place.context;
    // 8, 162, 697, 1496 and 7935 active bricks on average over 1000 steps.
    for (const Balls& what :
         {Balls{3, 1}, Balls{13, 1}, Balls{33, 1}, Balls{49, 1}, Balls{39, 2}}) {
      const int64_t steps = is_cuda ? 1000 : 20;
      add("levelset/bricks/radius:" + std::to_string(what.radius) + "/" + place.name, 5,
          [=](benchmark::State& state) { step_of(state, what, steps, context); });
    }
    for (const Tracker tracker : {Tracker::kBrick, Tracker::kBuffers}) {
      if (tracker == Tracker::kBuffers && !is_cuda) continue;
      const std::string name = tracker == Tracker::kBrick ? "brick" : "buffers";
      add("levelset/run/" + name + "/" + place.name, 3,
          [=](benchmark::State& state) { whole_run(state, tracker, context); });
    }
  }
}

}  // namespace larch::perf
