// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/regularise/graph_cut.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/text.h"
#include "larch/regularise/band.h"
#include "larch/regularise/max_flow.h"

namespace larch::regularise {
namespace {

constexpr double kPi = 3.14159265358979323846;

Vec3d in_world(const Grid& grid, const Vec3i& offset) {
  return grid.direction * Vec3d{offset.x * grid.spacing_mm.x, offset.y * grid.spacing_mm.y,
                                offset.z * grid.spacing_mm.z};
}

/// Returns one offset of each pair of opposite neighbours: 3 or 13; without those along an axis
/// that has a single voxel, if there is just one such axis.
std::vector<Vec3i> half_neighbourhood(const Grid& grid, int neighbours) {
  const int flat = (grid.size.x == 1) + (grid.size.y == 1) + (grid.size.z == 1);
  std::vector<Vec3i> out;
  for (int z = -1; z <= 1; ++z) {
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        const Vec3i offset{x, y, z};
        const bool forward = z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)));
        if (!forward || (neighbours == 6 && std::abs(x) + std::abs(y) + std::abs(z) > 1)) continue;
        bool leaves_plane = false;
        for (int axis = 0; axis < 3; ++axis) {
          leaves_plane |= flat == 1 && grid.size[axis] == 1 && offset[axis] != 0;
        }
        if (!leaves_plane) out.push_back(offset);
      }
    }
  }
  return out;
}

/// Adds `weight` to the directions nearest to `sample`, in equal parts if it is as near to several.
void add_sample(const std::vector<Vec3d>& directions, const Vec3d& sample, double weight,
                std::vector<double>& sums) {
  std::array<double, 13> cosine;
  double best = 0;
  for (size_t k = 0; k < directions.size(); ++k) {
    cosine[k] = std::fabs(dot(directions[k], sample));
    best = std::max(best, cosine[k]);
  }
  const auto is_best = [&](double c) { return c >= best * (1 - 1e-12); };
  const auto ties = std::count_if(cosine.begin(), cosine.begin() + directions.size(), is_best);
  for (size_t k = 0; k < directions.size(); ++k) {
    if (is_best(cosine[k])) sums[k] += weight / static_cast<double>(ties);
  }
}

/// Returns the share of all lines that is nearest to each direction. The lines are sampled on three
/// faces of a cube (in a plane: on two sides of a square), each with its solid angle: that needs no
/// function that differs between mathematical libraries.
std::vector<double> angle_shares(const std::vector<Vec3d>& directions, const Mat3& frame,
                                 bool in_plane) {
  const int steps = in_plane ? 4096 : 128;
  std::vector<double> sums(directions.size(), 0);
  for (int i = 0; i < steps; ++i) {
    const double u = (2 * i + 1.0) / steps - 1;
    if (in_plane) {
      const double weight = 1 / (1 + u * u);
      add_sample(directions, frame.column(0) + u * frame.column(1), weight, sums);
      add_sample(directions, frame.column(1) + u * frame.column(0), weight, sums);
      continue;
    }
    for (int j = 0; j < steps; ++j) {
      const double v = (2 * j + 1.0) / steps - 1;
      const double squared = 1 + u * u + v * v;
      const double weight = 1 / (squared * std::sqrt(squared));
      add_sample(directions, {1, u, v}, weight, sums);
      add_sample(directions, {u, 1, v}, weight, sums);
      add_sample(directions, {u, v, 1}, weight, sums);
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (double& sum : sums) sum /= total;
  return sums;
}

/// Two orthonormal columns that span the plane of the directions; the third is not used.
Mat3 plane_frame(const std::vector<Vec3d>& directions) {
  const Vec3d a = directions[0];
  Vec3d b{};
  for (const Vec3d& d : directions) {
    const Vec3d rest = d - dot(a, d) * a;
    if (norm(rest) > norm(b)) b = rest;
  }
  b = b / norm(b);
  return {{{a.x, b.x, 0}, {a.y, b.y, 0}, {a.z, b.z, 0}}};
}

}  // namespace

std::vector<EdgeWeight> crofton_weights(const Grid& grid, int neighbours) {
  if (neighbours != 6 && neighbours != 26) {
    throw UsageError("graph cut: neighbours must be 6 or 26, not " + std::to_string(neighbours));
  }
  // Cases of a list have few grids, and each is asked for more than once.
  thread_local Grid last;
  thread_local std::vector<EdgeWeight> out;
  const std::vector<Vec3i> offsets = half_neighbourhood(grid, neighbours);
  if (last.spacing_mm == grid.spacing_mm && last.direction == grid.direction &&
      std::ranges::equal(out, offsets, {}, &EdgeWeight::offset)) {
    return out;
  }
  std::vector<Vec3d> directions;
  for (const Vec3i& offset : offsets) {
    const Vec3d edge = in_world(grid, offset);
    directions.push_back(edge / norm(edge));
  }
  const bool in_plane = offsets.size() == 2 || offsets.size() == 4;
  const std::vector<double> share =
      angle_shares(directions, in_plane ? plane_frame(directions) : Mat3{}, in_plane);
  const double voxel_mm3 = grid.voxel_volume_mm3();
  last = grid;
  out.clear();
  for (size_t k = 0; k < offsets.size(); ++k) {
    // phi_k / pi is 2 * share in space, and phi_k / 2 is pi / 2 * share in a plane.
    const double factor = (in_plane ? kPi / 2 : 2.0) * share[k];
    out.push_back({offsets[k], voxel_mm3 * factor / norm(in_world(grid, offsets[k]))});
  }
  return out;
}

namespace {

constexpr double kUnit = 1 << 20;              // integer cost of one dV
constexpr int32_t kMaximumCapacity = 1 << 26;  // 26 edges and a voxel's own term fit into 32 bits

/// exp(-x) for x >= 0 from + - * / alone, so that it is the same on every machine.
double exp_of_minus(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  if (!(x < 40)) return 0;
  const double halvings = std::floor(x / kLn2);
  const double r = x - halvings * kLn2;
  double sum = 1;
  for (int n = 18; n >= 1; --n) sum = 1 - r / n * sum;
  return std::ldexp(sum, -static_cast<int>(halvings));
}

/// Upper bound for the bytes that each voxel of the band takes while the cut is computed.
int64_t bytes_per_voxel(const GraphCutConfig& config) {
  // Beside the graph and the search 4 for the members of components, and 8 that a component takes.
  return MaxFlow::bytes_per_vertex(config.neighbours, config.weights == EdgeCost::kContrast) + 12;
}

/// The energy in integers: what a voxel's label and a cut edge cost.
class Energy {
 public:
  Energy(const Volume<float>& probability, const Volume<float>* image, const GraphCutConfig& config)
      : probability_(probability), image_(config.weights == EdgeCost::kContrast ? image : nullptr) {
    const Grid& grid = probability.grid();
    const std::vector<EdgeWeight> edges = crofton_weights(grid, config.neighbours);
    const double voxel_mm3 = grid.voxel_volume_mm3();
    for (const EdgeWeight& edge : edges) {
      const double cost = std::nearbyint(config.lambda_mm * edge.area_mm2 / voxel_mm3 * kUnit);
      for (const int sign : {1, -1}) {
        offsets_.push_back(edge.offset * sign);
        steps_.push_back(grid.linear(offsets_.back()));
        costs_.push_back(static_cast<int32_t>(cost));
        sum_of_costs_ += costs_.back();
      }
    }
  }

  int slots() const { return static_cast<int>(offsets_.size()); }
  const std::vector<int64_t>& steps() const { return steps_; }
  int32_t cost(int slot) const { return costs_[static_cast<size_t>(slot)]; }
  int64_t sum_of_costs() const { return sum_of_costs_; }

  /// Cost of label 0 less that of label 1. It keeps its sign however small it is.
  int32_t preference(int64_t voxel) const {
    const double p = probability_[voxel];
    const auto cost = static_cast<int32_t>(std::nearbyint((2 * p - 1) * kUnit));
    return cost != 0 || p == 0.5 ? cost : p > 0.5 ? 1 : -1;
  }

  /// Calls visit(slot, neighbour voxel) for the neighbours inside the volume.
  template <class Visit>
  void neighbours(int64_t voxel, Visit&& visit) const {
    const Grid& grid = probability_.grid();
    const Vec3i at = grid.voxel(voxel);
    const bool inside = grid.contains(at - Vec3i{1, 1, 1}) && grid.contains(at + Vec3i{1, 1, 1});
    for (int s = 0; s < slots(); ++s) {
      if (inside || grid.contains(at + offsets_[s])) visit(s, voxel + steps_[s]);
    }
  }

  int32_t edge_cost(int slot, int64_t a, int64_t b) const {
    if (image_ == nullptr) return costs_[slot];
    const double d = static_cast<double>((*image_)[a]) - (*image_)[b];
    return static_cast<int32_t>(
        std::nearbyint(costs_[slot] * exp_of_minus(d * d * half_inverse_square_)));
  }

  void set_sigma(double sigma) { half_inverse_square_ = sigma > 0 ? 0.5 / (sigma * sigma) : 0; }

 private:
  const Volume<float>& probability_;
  const Volume<float>* image_;
  std::vector<Vec3i> offsets_;  // slot s and slot s ^ 1 are opposite
  std::vector<int64_t> steps_;
  std::vector<int32_t> costs_;
  int64_t sum_of_costs_ = 0;
  double half_inverse_square_ = 0;
};

void check_image(const Volume<float>& probability, const Volume<float>* image,
                 const GraphCutConfig& config) {
  if (config.weights != EdgeCost::kContrast) return;
  if (image == nullptr) throw UsageError("graph cut: contrast weights need the image");
  require_on_grid("graph cut: the image", image->grid(), "the probability", probability.grid());
}

void check_probability(const Volume<float>& probability) {
  int wrong = 0;
  for (const float p : probability) wrong |= p >= 0 && p <= 1 ? 0 : 1;
  if (wrong == 0) return;
  for (int64_t i = 0;; ++i) {
    if (!(probability[i] >= 0 && probability[i] <= 1)) {
      const Vec3i at = probability.grid().voxel(i);
      throw InputError("graph cut: voxel (" + std::to_string(at.x) + ", " + std::to_string(at.y) +
                       ", " + std::to_string(at.z) + ") has probability " +
                       std::to_string(probability[i]) + ", which is not in 0..1");
    }
  }
}

/// Which voxels are free.
struct BandRule {
  bool by_probability;
  int reach;
};

VoxelSet find_band(const Volume<float>& probability, const Volume<uint8_t>& threshold,
                   const GraphCutConfig& config, const Energy& energy, const BandRule& rule) {
  const Volume<uint8_t> near = near_boundary(threshold, rule.reach);
  VoxelSet band(probability.voxels());
  for (int64_t i = 0; i < probability.voxels(); ++i) {
    const double p = probability[i];
    const bool unsure = rule.by_probability && p >= config.band_low && p <= config.band_high;
    if ((near[i] != 0 || unsure) && std::abs(energy.preference(i)) <= energy.sum_of_costs()) {
      band.insert(i);
    }
  }
  return band;
}

/// Returns the widest band that config.max_band_voxels allows.
std::pair<VoxelSet, int64_t> choose_band(const Volume<float>& probability,
                                         const Volume<uint8_t>& threshold,
                                         const GraphCutConfig& config, const Energy& energy,
                                         const Context& context) {
  BandRule rule{true, config.band_voxels};
  int64_t wanted = 0;
  while (true) {
    VoxelSet band = find_band(probability, threshold, config, energy, rule);
    const int64_t count = band.count();
    if (wanted == 0) wanted = count;
    if (count <= config.max_band_voxels) {
      if (count < wanted && (!rule.by_probability || rule.reach < config.band_voxels)) {
        context.warn(
            "graph cut: the band has " + std::to_string(wanted) +
            " voxels, more than max_band_voxels = " + std::to_string(config.max_band_voxels) +
            "; only the " + std::to_string(count) + " within " + std::to_string(rule.reach) +
            " voxels of the surface at 0.5 are optimised");
      }
      return {std::move(band), count};
    }
    if (!rule.by_probability && rule.reach <= 1) {
      throw MemoryError(
          "graph cut: even a band of 1 voxel around the surface has " + std::to_string(count) +
          " voxels, more than max_band_voxels = " + std::to_string(config.max_band_voxels) +
          "; raise it (" + std::to_string(bytes_per_voxel(config)) +
          " bytes per voxel) or regularise at a larger voxel size");
    }
    if (rule.by_probability) {
      rule = {false, std::max(1, rule.reach)};
    } else {
      --rule.reach;
    }
  }
}

double root_mean_square_difference(const Volume<float>& image, const std::vector<int64_t>& voxels) {
  const Grid& grid = image.grid();
  double sum = 0;
  int64_t pairs = 0;
  for (const int64_t i : voxels) {
    const Vec3i at = grid.voxel(i);
    for (const Vec3i& step : {Vec3i{1, 0, 0}, Vec3i{0, 1, 0}, Vec3i{0, 0, 1}}) {
      if (!grid.contains(at + step)) continue;
      const double d = static_cast<double>(image[i]) - image[i + grid.linear(step)];
      sum += d * d;
      ++pairs;
    }
  }
  return pairs == 0 ? 0 : std::sqrt(sum / static_cast<double>(pairs));
}

/// Returns the band as a graph. Voxels outside it act through the preference of their free
/// neighbours.
CutGraph make_graph(VoxelSet set, std::vector<int64_t> voxels, const Energy& energy,
                    bool own_capacities, const Volume<uint8_t>& labels, const Context& context) {
  CutGraph graph{std::move(set), std::move(voxels), energy.steps(), {}, {}, {}, {}};
  for (int slot = 0; slot < energy.slots(); slot += 2) graph.costs.push_back(energy.cost(slot));
  const size_t size = graph.voxels.size(), directions = graph.directions();
  graph.present.assign(size, 0);
  graph.excess.resize(size);
  if (own_capacities) graph.capacity.assign(size * directions, 0);
  parallel_for_each(context.threads, static_cast<int64_t>(size), 4096, [&](size_t v) {
    const int64_t voxel = graph.voxels[v];
    int32_t excess = energy.preference(voxel);
    energy.neighbours(voxel, [&](int slot, int64_t other) {
      const int32_t cost = energy.edge_cost(slot, voxel, other);
      if (!graph.set.contains(other)) {
        excess += labels[other] != 0 ? cost : -cost;
        return;
      }
      graph.present[v] |= uint32_t{1} << slot;
      if (own_capacities && slot % 2 == 0) {
        graph.capacity[v * directions + static_cast<size_t>(slot) / 2] = cost;
      }
    });
    graph.excess[v] = excess;
  });
  return graph;
}

/// Labels the vertices whose own preference outweighs all their edges, which decides them in every
/// minimum cut, until none is left: those act on their neighbours as voxels outside the band do.
/// Returns the graph of the others, which are few where probabilities are near to 0 or 1.
CutGraph without_decided(CutGraph all, Volume<uint8_t>& labels) {
  std::vector<int32_t> edges(all.vertices(), 0);
  const auto each_edge = [&](uint32_t v, auto&& visit) {
    for (uint32_t slots = all.present[v]; slots != 0; slots &= slots - 1) {
      const int slot = std::countr_zero(slots);
      const uint32_t w = all.neighbour(v, slot);
      visit(slot, w, all.edge_capacity(v, slot, w));
    }
  };
  const auto is_decided = [&](uint32_t v) {
    return all.excess[v] > edges[v] || -all.excess[v] >= edges[v];
  };
  for (uint32_t v = 0; v < all.vertices(); ++v) {
    each_edge(v, [&](int, uint32_t, int32_t cost) { edges[v] += cost; });
  }
  std::vector<uint32_t> decided;
  for (uint32_t first = 0; first < all.vertices(); ++first) {
    if (is_decided(first)) decided.push_back(first);
    while (!decided.empty()) {
      const uint32_t v = decided.back();
      decided.pop_back();
      const bool inside = all.excess[v] > 0;
      labels[all.voxels[v]] = inside ? 1 : 0;
      each_edge(v, [&](int slot, uint32_t w, int32_t cost) {
        const bool was_decided = is_decided(w);
        all.excess[w] += inside ? cost : -cost;
        edges[w] -= cost;
        all.present[w] &= ~(uint32_t{1} << (slot ^ 1));
        if (!was_decided && is_decided(w)) decided.push_back(w);
      });
      all.present[v] = 0;
    }
  }
  CutGraph rest{VoxelSet(labels.voxels()), {}, all.steps, all.costs, {}, {}, {}};
  const auto left = std::ranges::count_if(all.present, [](uint32_t slots) { return slots != 0; });
  rest.capacity.reserve(all.capacity.empty() ? 0 : static_cast<size_t>(left) * all.directions());
  for (uint32_t v = 0; v < all.vertices(); ++v) {
    if (all.present[v] == 0) continue;
    rest.set.insert(all.voxels[v]);
    rest.voxels.push_back(all.voxels[v]);
    rest.present.push_back(all.present[v]);
    rest.excess.push_back(all.excess[v]);
    if (all.capacity.empty()) continue;
    const auto own = all.capacity.begin() + static_cast<int64_t>(v * all.directions());
    rest.capacity.insert(rest.capacity.end(), own, own + static_cast<int64_t>(all.directions()));
  }
  rest.set.count();
  return rest;
}

Components find_components(const CutGraph& graph) {
  DisjointSets sets(graph.vertices());
  for (uint32_t v = 0; v < graph.vertices(); ++v) {
    for (int slot = 0; slot < static_cast<int>(graph.steps.size()); slot += 2) {
      if ((graph.present[v] >> slot & 1) != 0) sets.join(v, graph.neighbour(v, slot));
    }
  }
  return sets.components();
}

/// Labels the free voxels.
void solve(CutGraph& graph, Volume<uint8_t>& labels, const Context& context) {
  const Components components = find_components(graph);
  MaxFlow flow(graph);
  parallel_for(context.threads, components.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end && !context.stop_requested(); ++c) {
      const auto members = components.component(c);
      flow.solve(members, context.stop);
      for (const uint32_t v : members) labels[graph.voxels[v]] = flow.on_source_side(v) ? 1 : 0;
    }
  });
  context.throw_if_stopped("stopped in the graph cut");
  context.debug("graph cut: " + std::to_string(components.count()) +
                " components, the largest with " +
                std::to_string(components.count() == 0 ? 0 : components.first[1]) + " voxels");
}

}  // namespace

void check_lambda(const GraphCutConfig& config, const Grid& grid) {
  double dearest_mm2 = 0;
  for (const EdgeWeight& edge : crofton_weights(grid, config.neighbours))
    dearest_mm2 = std::max(dearest_mm2, edge.area_mm2);
  const double most = kMaximumCapacity / kUnit * grid.voxel_volume_mm3() / dearest_mm2;
  if (config.lambda_mm <= most) return;
  const Vec3d& mm = grid.spacing_mm;
  throw UsageError(
      formatted("graph cut: lambda_mm = %g is too large for voxels of %gx%gx%g mm; give at most %g",
                config.lambda_mm, mm.x, mm.y, mm.z, std::floor(most * 1000) / 1000));
}

Volume<uint8_t> graph_cut(const Volume<float>& probability, const Volume<float>* image,
                          const GraphCutConfig& config, const Context& context) {
  check_lambda(config, probability.grid());
  check_image(probability, image, config);
  check_probability(probability);
  Energy energy(probability, image, config);
  Volume<uint8_t> labels = mapped<uint8_t>(probability, [](float p) { return p > 0.5F; });
  if (energy.sum_of_costs() == 0) return labels;

  auto [set, count] = choose_band(probability, labels, config, energy, context);
  const int64_t bytes = count * bytes_per_voxel(config);
  const auto free_bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
  if (bytes > free_bytes) {
    throw MemoryError("graph cut: needs " + std::to_string(bytes >> 20) + " MiB for " +
                      std::to_string(count) + " voxels, free are " +
                      std::to_string(free_bytes >> 20) +
                      " MiB; lower max_band_voxels or use neighbours = 6");
  }
  context.debug("graph cut: " + std::to_string(count) + " free voxels, at most " +
                std::to_string((bytes >> 20) + 1) + " MiB");
  std::vector<int64_t> voxels = set.voxels();
  const bool contrast = config.weights == EdgeCost::kContrast;
  if (contrast) {
    energy.set_sigma(config.sigma > 0 ? config.sigma : root_mean_square_difference(*image, voxels));
  }
  CutGraph graph = without_decided(
      make_graph(std::move(set), std::move(voxels), energy, contrast, labels, context), labels);
  solve(graph, labels, context);
  return labels;
}

}  // namespace larch::regularise
