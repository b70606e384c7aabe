// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The container of models: its bytes, and what damage to them is refused.
#include <catch2/catch.hpp>

#include "larch/core/digest.h"
#include "larch/models/container.h"
#include "tests/unit/models/model_fixtures.h"

namespace {

using namespace larch;
using namespace larch::models;
using fixtures::get;
using fixtures::put;

constexpr size_t kTable = 64, kDigest = 32;

Container small() {
  Container container;
  container.kind = "toy";
  container.kind_version = 3;
  container.sections["meta"] = {"hello", true};
  container.sections["trees/0"] = {"12345678", true};
  container.sections["trees/1"] = {"", false};
  return container;
}

std::string digest_of(const std::string& bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  const auto digest = sha.digest();
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Puts the length of the file and the digest of the table right again.
std::string repaired(std::string bytes, size_t table_bytes) {
  put(bytes, 40, bytes.size(), 8);
  put(bytes, 48, table_bytes, 8);
  return bytes.replace(kTable + table_bytes, kDigest,
                       digest_of(bytes.substr(0, kTable + table_bytes)));
}

std::string complaint(const std::string& bytes) {
  try {
    decode_container(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// One entry of a table, of a section that holds nothing.
std::string entry(const std::string& name) {
  std::string bytes = digest_of("") + std::string(12, '\0') + name;
  put(bytes, 40, 1, 2);
  put(bytes, 42, name.size(), 2);
  return bytes + std::string((8 - bytes.size() % 8) % 8, '\0');
}

/// A file whose table is these entries.
std::string file_of(const std::string& table, uint64_t count) {
  std::string bytes =
      encode_container(small()).substr(0, kTable) + table + std::string(kDigest, ' ');
  put(bytes, 56, count, 4);
  return repaired(bytes, table.size());
}

}  // namespace

TEST_CASE("A container is laid out as documented") {
  const std::string bytes = encode_container(small());
  CHECK(bytes.substr(0, 8) == "\x89LARCH\r\n");
  CHECK(get(bytes, 8, 2) == 1);
  CHECK(get(bytes, 10, 2) == 0);
  CHECK(get(bytes, 12, 4) == 3);
  CHECK(bytes.substr(16, 24) == "toy" + std::string(21, '\0'));
  CHECK(get(bytes, 40, 8) == bytes.size());
  const size_t table_bytes = 48 + 56 + 56;  // names of 4, 7 and 7 bytes
  CHECK(get(bytes, 48, 8) == table_bytes);
  CHECK(get(bytes, 56, 4) == 3);
  CHECK(bytes.substr(kTable, kDigest) == digest_of("hello"));
  CHECK(get(bytes, kTable + 32, 8) == 5);
  CHECK(get(bytes, kTable + 40, 2) == 1);
  CHECK(get(bytes, kTable + 42, 2) == 4);
  CHECK(bytes.substr(kTable + 44, 4) == "meta");
  CHECK(get(bytes, kTable + 48 + 56 + 40, 2) == 0);  // trees/1 is not required
  const size_t data = kTable + table_bytes + kDigest;
  CHECK(bytes.substr(kTable + table_bytes, kDigest) ==
        digest_of(bytes.substr(0, kTable + table_bytes)));
  CHECK(bytes.substr(data) == "hello" + std::string(3, '\0') + "12345678");
}

TEST_CASE("A container comes back with its sections") {
  const Container back = decode_container(encode_container(small()));
  CHECK(back.kind == "toy");
  CHECK(back.kind_version == 3);
  REQUIRE(back.sections.size() == 3);
  CHECK(back.at("meta").bytes == "hello");
  CHECK(back.at("trees/0").bytes == "12345678");
  CHECK_FALSE(back.at("trees/1").required);
  CHECK_THROWS_WITH(back.at("trees/2"), Catch::Contains("'trees/2' is missing"));
  CHECK(encode_container(back) == encode_container(small()));

  Container many;
  many.kind = "a.kind-of_24-characters.";
  for (int i = 0; i < 300; ++i) {
    many.sections["trees/" + std::to_string(i)] = {std::string(static_cast<size_t>(i), 'x'), true};
  }
  CHECK(encode_container(decode_container(encode_container(many))) == encode_container(many));
  Container none;
  none.kind = "k";
  CHECK(decode_container(encode_container(none)).sections.empty());
}

TEST_CASE("Names that the format does not allow are refused in writing and reading") {
  for (const std::string& name :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"), std::string("a//b"),
        std::string("A"), std::string("a b"), std::string("a\0b", 3), std::string("\xc3\xa9"),
        std::string(256, 'a')}) {
    Container container = small();
    container.sections[name] = {};
    CHECK_THROWS_AS(encode_container(container), InputError);
    CHECK(complaint(file_of(entry(name), 1)).find("name of a section") != std::string::npos);
  }
  CHECK(complaint(file_of(entry(std::string(255, 'a')), 1)).empty());
  for (const std::string& kind : {std::string(), std::string("PBT"), std::string(25, 'a')}) {
    Container container = small();
    container.kind = kind;
    CHECK_THROWS_AS(encode_container(container), InputError);
  }
}

TEST_CASE("A container that is cut off anywhere, or goes on, is refused") {
  const std::string bytes = encode_container(small());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    std::string piece = bytes.substr(0, cut);
    CHECK_THROWS_AS(decode_container(piece), InputError);
    if (cut < 48) continue;
    put(piece, 40, cut, 8);  // so that what comes after the length is looked at
    CHECK_THROWS_AS(decode_container(piece), InputError);
  }
  const size_t table_bytes = get(bytes, 48, 8);
  for (size_t cut = kTable + table_bytes + kDigest; cut < bytes.size(); ++cut) {
    CHECK_THROWS_AS(decode_container(repaired(bytes.substr(0, cut), table_bytes)), InputError);
  }
  for (const std::string& more : {std::string(1, '\0'), std::string(8, '\0'), bytes}) {
    CHECK_THROWS_AS(decode_container(bytes + more), InputError);
    CHECK(complaint(repaired(bytes + more, table_bytes)).find("left over") != std::string::npos);
  }
}

TEST_CASE("A container with any bit changed is refused") {
  const std::string bytes = encode_container(small());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      CHECK_THROWS_AS(decode_container(damaged), InputError);
    }
  }
}

TEST_CASE("A table that lies under a right digest is refused") {
  const std::string bytes = encode_container(small());
  const size_t table_bytes = get(bytes, 48, 8);
  const auto refused = [&](size_t at, uint64_t value, int count, const char* expected) {
    std::string damaged = bytes;
    put(damaged, at, value, count);
    CHECK_THAT(complaint(repaired(damaged, table_bytes)), Catch::Contains(expected));
  };
  const size_t second = kTable + 48;
  // Lengths that would make sections overlap, leave a gap, or leave the file.
  refused(kTable + 32, 4, 8, "digest of the section 'meta'");
  refused(kTable + 32, 16, 8, "digest of the section 'meta'");
  refused(second + 32, UINT64_MAX, 8, "claims 18446744073709551615 bytes");
  refused(second + 32, uint64_t{1} << 63, 8, "claims 9223372036854775808 bytes");
  refused(second + 32, 9, 8, "claims 9 bytes, 8 are there");
  refused(kTable, 0, 8, "digest of the section 'meta'");
  refused(kTable + 40, 3, 2, "unknown flags");
  refused(second + 42, 65535, 2, "ends too early");
  refused(second + 42, 6, 2, "name of a section");
  refused(second + 42, 5, 2, "should be zero");
  refused(56, 2, 4, "left over");
  refused(56, 4, 4, "claims 4 sections");
  refused(56, UINT32_MAX, 4, "claims 4294967295 sections");
  refused(60, 1, 4, "should be zero");
  for (const uint64_t claim : {UINT64_MAX, uint64_t{1} << 63, uint64_t{bytes.size()}}) {
    std::string damaged = bytes;
    put(damaged, 48, claim, 8);
    CHECK_THAT(complaint(damaged), Catch::Contains("claims 3 sections in a table"));
  }
  std::string damaged = bytes;
  damaged[kTable + table_bytes + kDigest + 6] = 'x';  // after "hello"
  CHECK_THAT(complaint(damaged), Catch::Contains("should be zero"));
}

TEST_CASE("Sections that are there twice or out of order are refused") {
  CHECK(complaint(file_of(entry("a") + entry("b"), 2)).empty());
  CHECK_THAT(complaint(file_of(entry("a") + entry("a"), 2)), Catch::Contains("twice"));
  CHECK_THAT(complaint(file_of(entry("b") + entry("a"), 2)), Catch::Contains("out of order"));
  CHECK_THAT(complaint(file_of(entry("a") + entry("b") + entry("a"), 3)),
             Catch::Contains("out of order"));
}

TEST_CASE("Versions and files of another kind say what to do") {
  Container newer = small();
  newer.minor = 9;
  CHECK(decode_container(encode_container(newer)).minor == 9);
  newer.major = 2;
  CHECK_THAT(complaint(encode_container(newer)), Catch::Contains("format version 2.9"));
  newer.major = 0;
  CHECK_FALSE(complaint(encode_container(newer)).empty());
  CHECK_THAT(complaint("PBTREES\n" + std::string(100, '\0')),
             Catch::Contains("train the model anew"));
  CHECK_THAT(complaint("{\"tree\": 1}"), Catch::Contains("not a model of Larch"));
  CHECK_THAT(complaint(""), Catch::Contains("not a model of Larch"));
  std::string text = encode_container(small());
  text.replace(6, 2, "\n");  // as a transfer in text mode leaves it
  CHECK_THAT(complaint(text), Catch::Contains("not a model of Larch"));
}
