// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace larch::config {

/// The word nearest to `word` by insertions, deletions, replacements and swaps of neighbours, if it
/// is at most 2 of them (and fewer than the word has letters) away; else empty. The first wins a
/// tie.
std::string nearest(const std::string& word, const std::vector<std::string>& allowed);

/// "; did you mean 'depth'?" or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& allowed);

/// "; did you mean 'depth'? allowed: depth, bag".
std::string not_allowed(const std::string& word, const std::vector<std::string>& allowed);

/// "a, b, c".
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace larch::config
