// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/data/vec.h"

/// Readers and writers of JSON files with points and boxes share these.
namespace larch::io {

/// Keys are sorted, so that a file with millions of them takes no quadratic time.
using Json = nlohmann::json;
/// Keys keep their order in files that are written.
using OrderedJson = nlohmann::ordered_json;

/// The JSON of a file that nobody vouches for. Throws InputError if it has more than 64 MiB or more
/// than 64 levels of lists and objects, or is no JSON.
Json read_json(const std::string& path);

/// Writes JSON with indents, numbers with all their digits. Throws OutputError.
void write_json(const std::string& path, const OrderedJson& json);

/// A member that is a text; empty if there is none.
std::string text(const Json& json, const char* key);

/// A member that is an array of `count` finite numbers. Throws InputError that names the file and
/// the place `where` in it.
std::vector<double> numbers(const Json& json, const char* key, size_t count,
                            const std::string& path, const std::string& where);

OrderedJson json_of(const Vec3d& v);

}  // namespace larch::io
