// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/regularise/max_flow.h"

#include <utility>

#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>

namespace larch::regularise {
namespace {

using Graph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, uint32_t, uint32_t>;
using Edge = boost::graph_traits<Graph>::edge_descriptor;

/// The order of the edges in the compressed graph. Vertex v < vertices has the edges to the sink,
/// to the source, and its slots; then come the source's edges and the sink's, one for each vertex.
/// So an edge's reverse follows from its number and needs no table.
struct Layout {
  uint32_t vertices;
  uint32_t slots;

  uint32_t source() const { return vertices; }
  uint32_t sink() const { return vertices + 1; }
  uint32_t stride() const { return slots + 2; }
  uint32_t to_sink(uint32_t v) const { return v * stride(); }
  uint32_t to_source(uint32_t v) const { return v * stride() + 1; }
  uint32_t slot(uint32_t v, uint32_t s) const { return v * stride() + 2 + s; }
  uint32_t from_source(uint32_t v) const { return vertices * stride() + v; }
  uint32_t from_sink(uint32_t v) const { return vertices * stride() + vertices + v; }
  uint32_t edges() const { return vertices * stride() + 2 * vertices; }
};

/// Edge number -> (source, target), for building the graph.
struct Ends {
  Layout layout;
  const uint32_t* neighbour;

  std::pair<uint32_t, uint32_t> operator()(uint32_t edge) const {
    const uint32_t inner = layout.vertices * layout.stride();
    if (edge >= inner + layout.vertices) return {layout.sink(), edge - inner - layout.vertices};
    if (edge >= inner) return {layout.source(), edge - inner};
    const uint32_t v = edge / layout.stride(), s = edge % layout.stride();
    if (s == 0) return {v, layout.sink()};
    if (s == 1) return {v, layout.source()};
    return {v, neighbour[v * layout.slots + s - 2]};
  }
};

struct ReverseMap {
  using key_type = Edge;
  using value_type = Edge;
  using reference = Edge;
  using category = boost::readable_property_map_tag;
  Layout layout;
  const Graph* graph;

  friend Edge get(const ReverseMap& map, const Edge& e) {
    const Layout& layout = map.layout;
    if (e.src == layout.source()) {
      const uint32_t v = e.idx - layout.from_source(0);
      return Edge(v, layout.to_source(v));
    }
    if (e.src == layout.sink()) {
      const uint32_t v = e.idx - layout.from_sink(0);
      return Edge(v, layout.to_sink(v));
    }
    if (e.idx == layout.to_sink(e.src)) return Edge(layout.sink(), layout.from_sink(e.src));
    if (e.idx == layout.to_source(e.src)) return Edge(layout.source(), layout.from_source(e.src));
    const uint32_t v = target(e, *map.graph);
    if (v == e.src) return e;  // an empty slot
    return Edge(v, layout.slot(v, (e.idx - layout.slot(e.src, 0)) ^ 1));
  }
};

/// Capacities and residual capacities in one array of 32 bits; the algorithm sums in 64 bits.
struct CapacityMap {
  using key_type = Edge;
  using value_type = int64_t;
  using reference = int64_t;
  using category = boost::read_write_property_map_tag;
  int32_t* values;

  friend int64_t get(const CapacityMap& map, const Edge& e) { return map.values[e.idx]; }
  friend void put(const CapacityMap& map, const Edge& e, int64_t value) {
    map.values[e.idx] = static_cast<int32_t>(value);
  }
};

std::vector<int32_t> capacities(const CutProblem& problem, const Layout& layout) {
  std::vector<int32_t> out(layout.edges(), 0);
  for (uint32_t v = 0; v < layout.vertices; ++v) {
    const int32_t excess = problem.excess[v];
    if (excess < 0) out[layout.to_sink(v)] = -excess;
    if (excess > 0) out[layout.from_source(v)] = excess;
    for (uint32_t s = 0; s < layout.slots; ++s) {
      out[layout.slot(v, s)] = problem.capacity[v * layout.slots + s];
    }
  }
  return out;
}

}  // namespace

std::vector<uint8_t> source_side_of_minimum_cut(CutProblem problem) {
  const Layout layout{static_cast<uint32_t>(problem.excess.size()),
                      static_cast<uint32_t>(problem.slots)};
  std::vector<int32_t> residual = capacities(problem, layout);
  problem.capacity = {};
  const auto edge_number = [](uint32_t i) { return boost::counting_iterator<uint32_t>(i); };
  const Ends ends{layout, problem.neighbour.data()};
  Graph graph(boost::edges_are_sorted, boost::make_transform_iterator(edge_number(0), ends),
              boost::make_transform_iterator(edge_number(layout.edges()), ends),
              layout.vertices + 2, layout.edges());
  problem.neighbour = {};

  std::vector<Edge> parent(layout.vertices + 2);
  std::vector<boost::default_color_type> colour(layout.vertices + 2);
  std::vector<int32_t> distance(layout.vertices + 2, 0);
  const auto index = get(boost::vertex_index, graph);
  const CapacityMap capacity{residual.data()};
  boost::boykov_kolmogorov_max_flow(graph, capacity, capacity, ReverseMap{layout, &graph},
                                    boost::make_iterator_property_map(parent.begin(), index),
                                    boost::make_iterator_property_map(colour.begin(), index),
                                    boost::make_iterator_property_map(distance.begin(), index),
                                    index, layout.source(), layout.sink());
  // When no path is left, the source's search tree holds just what the source reaches.
  std::vector<uint8_t> side(layout.vertices);
  for (uint32_t v = 0; v < layout.vertices; ++v) {
    side[v] = colour[v] == boost::black_color ? 1 : 0;
  }
  return side;
}

}  // namespace larch::regularise
