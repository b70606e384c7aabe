// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/regularise/max_flow.h"

#include <algorithm>
#include <bit>
#include <deque>

namespace larch::regularise {
namespace {

constexpr uint32_t kNone = 0xffffffff;

/// A vertex's state in a byte: the slot of its parent, its tree, and whether it waits in the queue.
constexpr uint8_t kParentBits = 31, kTerminal = 30, kOrphan = 31;
constexpr uint8_t kTreeBits = 3 << 5, kFree = 0, kSource = 1 << 5, kSink = 2 << 5;
constexpr uint8_t kQueued = 1 << 7;

/// Calls visit(slot) for each bit, lowest first, until it returns true.
template <class Visit>
bool any_slot(uint32_t present, Visit&& visit) {
  for (; present != 0; present &= present - 1) {
    if (visit(std::countr_zero(present))) return true;
  }
  return false;
}

}  // namespace

/// The search of one component.
template <bool kOwnCapacities>
class MaxFlow::Search {
 public:
  explicit Search(MaxFlow& flow)
      : graph_(flow.graph_), flow_(flow), directions_(graph_.directions()) {}

  void run(std::span<const uint32_t> component, const std::atomic<int>* stop) {
    for (const uint32_t v : component) {
      if (graph_.excess[v] == 0) continue;
      set_tree(v, graph_.excess[v] > 0 ? kSource : kSink, kTerminal);
      flow_.distance_[v] = 1;
      activate(v);
    }
    uint32_t steps = 0;
    for (uint32_t v = next_active(); v != kNone;) {
      if (++steps % 1024 == 0 && stop != nullptr && stop->load() != 0) return;
      const int meeting = tree(v) == kFree ? -1 : grow(v);
      if (meeting < 0) {
        v = next_active();
        continue;
      }
      ++now_;
      augment(v, meeting);
      while (!orphans_.empty()) {
        const uint32_t orphan = orphans_.front();
        orphans_.pop_front();
        adopt(orphan);
      }
    }
  }

 private:
  uint8_t tree(uint32_t v) const { return flow_.state_[v] & kTreeBits; }
  uint8_t parent(uint32_t v) const { return flow_.state_[v] & kParentBits; }
  void set_tree(uint32_t v, uint8_t tree, uint8_t parent) {
    flow_.state_[v] = static_cast<uint8_t>((flow_.state_[v] & kQueued) | tree | parent);
  }
  void set_parent(uint32_t v, uint8_t parent) { set_tree(v, tree(v), parent); }

  /// Returns what the edge between v and its neighbour w in `slot` still takes from v to w, or from
  /// w to v.
  int32_t residual(uint32_t v, int slot, uint32_t w, bool out) const {
    const bool at_v = slot % 2 == 0;
    const size_t direction = static_cast<size_t>(slot) / 2;
    const size_t edge = (at_v ? v : w) * directions_ + direction;
    const int32_t capacity = kOwnCapacities ? graph_.capacity[edge] : graph_.costs[direction];
    return out == at_v ? capacity - flow_.flow_[edge] : capacity + flow_.flow_[edge];
  }
  /// Sends `amount` from v to w, or from w to v.
  void send(uint32_t v, int slot, uint32_t w, bool out, int32_t amount) {
    const bool at_v = slot % 2 == 0;
    const size_t edge = (at_v ? v : w) * directions_ + static_cast<size_t>(slot) / 2;
    flow_.flow_[edge] += out == at_v ? amount : -amount;
  }

  void activate(uint32_t v) {
    if ((flow_.state_[v] & kQueued) != 0) return;
    flow_.state_[v] |= kQueued;
    flow_.next_active_[v] = kNone;
    (first_ == kNone ? first_ : flow_.next_active_[last_]) = v;
    last_ = v;
  }
  uint32_t next_active() {
    const uint32_t v = first_;
    if (v == kNone) return v;
    first_ = flow_.next_active_[v];
    flow_.state_[v] &= static_cast<uint8_t>(~kQueued);
    return v;
  }

  /// Lets the tree of v take the free neighbours that it reaches; returns the slot of a neighbour
  /// in the other tree, or -1.
  int grow(uint32_t v) {
    const uint8_t mine = tree(v);
    int meeting = -1;
    any_slot(graph_.present[v], [&](int slot) {
      const uint32_t w = graph_.neighbour(v, slot);
      if (residual(v, slot, w, mine == kSource) == 0) return false;
      const uint8_t theirs = tree(w);
      const bool nearer = theirs == mine && flow_.time_[w] <= flow_.time_[v] &&
                          flow_.distance_[w] > flow_.distance_[v];
      if (theirs == kFree || nearer) {
        set_tree(w, mine, static_cast<uint8_t>(slot ^ 1));
        flow_.time_[w] = flow_.time_[v];
        flow_.distance_[w] = flow_.distance_[v] + 1;
        if (theirs == kFree) activate(w);
      } else if (theirs != mine) {
        meeting = slot;
      }
      return meeting >= 0;
    });
    return meeting;
  }

  /// Calls step(vertex, slot, parent) from v up to its root, which it returns.
  template <class Step>
  uint32_t to_root(uint32_t v, Step&& step) const {
    while (parent(v) != kTerminal) {
      const int slot = parent(v);
      const uint32_t above = graph_.neighbour(v, slot);
      step(v, slot, above);
      v = above;
    }
    return v;
  }

  /// Sends what the path through the edge of v in `slot` takes.
  void augment(uint32_t v, int slot) {
    const uint32_t w = graph_.neighbour(v, slot);
    const bool out = tree(v) == kSource;
    int32_t amount = residual(v, slot, w, out);
    for (const uint32_t end : {v, w}) {
      const bool towards_root = tree(end) == kSink;
      const uint32_t root = to_root(end, [&](uint32_t x, int s, uint32_t above) {
        amount = std::min(amount, residual(x, s, above, towards_root));
      });
      amount = std::min(amount, std::abs(graph_.excess[root]));
    }
    send(v, slot, w, out, amount);
    for (uint32_t x : {v, w}) {
      const bool towards_root = tree(x) == kSink;
      while (parent(x) != kTerminal) {
        const int s = parent(x);
        const uint32_t above = graph_.neighbour(x, s);
        send(x, s, above, towards_root, amount);
        if (residual(x, s, above, towards_root) == 0) orphan(x);
        x = above;
      }
      graph_.excess[x] += towards_root ? amount : -amount;
      if (graph_.excess[x] == 0) orphan(x);
    }
  }

  void orphan(uint32_t v) {
    set_parent(v, kOrphan);
    orphans_.push_back(v);
  }

  /// Steps from v to the terminal of its tree, or kNone if its root is an orphan. What is found is
  /// noted at the vertices on the way.
  uint32_t distance_to_terminal(uint32_t v) {
    uint32_t distance = 0;
    for (uint32_t x = v;; x = graph_.neighbour(x, parent(x))) {
      if (flow_.time_[x] == now_) {
        distance += flow_.distance_[x];
        break;
      }
      ++distance;
      if (parent(x) == kOrphan) return kNone;
      if (parent(x) == kTerminal) {
        flow_.time_[x] = now_;
        flow_.distance_[x] = 1;
        break;
      }
    }
    uint32_t left = distance;
    for (uint32_t x = v; flow_.time_[x] != now_; x = graph_.neighbour(x, parent(x))) {
      flow_.time_[x] = now_;
      flow_.distance_[x] = left--;
    }
    return distance;
  }

  /// Finds another parent for an orphan, as near to the terminal as there is, or frees it.
  void adopt(uint32_t v) {
    const uint8_t mine = tree(v);
    uint32_t nearest = kNone;
    uint8_t parent_slot = kOrphan;
    const auto reaches_v = [&](int slot, uint32_t w) {
      return tree(w) == mine && residual(v, slot, w, mine == kSink) > 0;
    };
    any_slot(graph_.present[v], [&](int slot) {
      const uint32_t w = graph_.neighbour(v, slot);
      if (!reaches_v(slot, w)) return false;
      const uint32_t distance = distance_to_terminal(w);
      if (distance < nearest) {
        nearest = distance;
        parent_slot = static_cast<uint8_t>(slot);
      }
      return false;
    });
    if (parent_slot != kOrphan) {
      set_parent(v, parent_slot);
      flow_.time_[v] = now_;
      flow_.distance_[v] = nearest + 1;
      return;
    }
    any_slot(graph_.present[v], [&](int slot) {
      const uint32_t w = graph_.neighbour(v, slot);
      if (tree(w) != mine) return false;
      if (reaches_v(slot, w)) activate(w);
      if (parent(w) == (slot ^ 1)) orphan(w);
      return false;
    });
    set_tree(v, kFree, 0);
  }

  CutGraph& graph_;
  MaxFlow& flow_;
  size_t directions_;
  uint32_t now_ = 0;  ///< augmentations so far: distances noted since the last one hold
  uint32_t first_ = kNone, last_ = kNone;
  std::deque<uint32_t> orphans_;
};

MaxFlow::MaxFlow(CutGraph& graph)
    : graph_(graph),
      flow_(graph.vertices() * graph.directions(), 0),
      state_(graph.vertices(), kFree),
      distance_(graph.vertices(), 0),
      time_(graph.vertices(), 0),
      next_active_(graph.vertices()) {}

void MaxFlow::solve(std::span<const uint32_t> component, const std::atomic<int>* stop) {
  if (graph_.capacity.empty()) {
    Search<false>(*this).run(component, stop);
  } else {
    Search<true>(*this).run(component, stop);
  }
}

bool MaxFlow::on_source_side(uint32_t v) const {
  return (state_[v] & kTreeBits) == kSource;
}

int64_t MaxFlow::bytes_per_vertex(int slots, bool own_capacities) {
  // Voxel 8, neighbours 4, excess 4, state 1, distance, time, and the queues of active vertices and
  // of orphans 4 each; and 4 for each direction, twice with capacities.
  return 33 + 2 * slots * (own_capacities ? 2 : 1);
}

}  // namespace larch::regularise
