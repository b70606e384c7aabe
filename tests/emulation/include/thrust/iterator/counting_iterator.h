// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What the host uses of Thrust's header of this name.
namespace thrust {

template <class T>
struct counting_iterator {
  explicit counting_iterator(T first) : first_(first) {}
  T operator[](int64_t i) const { return static_cast<T>(first_ + static_cast<T>(i)); }

 private:
  T first_;
};

}  // namespace thrust
