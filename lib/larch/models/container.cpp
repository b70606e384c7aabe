// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/container.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/models/binary_layout.h"

namespace larch::models {
namespace {

constexpr std::string_view kSignature = "\x89LARCH\r\n";
// The first bytes of the models that pbt-train wrote before there were sections.
constexpr std::string_view kFormerSignature = "PBTREES\n";
constexpr size_t kHeaderBytes = 64;
constexpr size_t kDigestBytes = 32;
constexpr size_t kEntryBytes = 44;  // of the table, without the name
constexpr size_t kSmallestEntry = 48;
constexpr uint16_t kRequired = 1;

std::string sha256(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  const auto digest = sha.digest();
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

size_t padding_after(uint64_t bytes) {
  return static_cast<size_t>((8 - bytes % 8) % 8);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

bool is_kind(std::string_view kind) {
  return kind.size() <= kMaximumKindCharacters && is_word(kind);
}

bool is_section_name(std::string_view name) {
  if (name.size() > kMaximumNameCharacters) return false;
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
    if (!is_word(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  return is_word(name);
}

/// Holds what the header says about the rest of the file.
struct Header {
  uint64_t table_bytes = 0;
  uint32_t sections = 0;
};

/// Holds what an entry of the table says about a section.
struct Entry {
  std::string name, digest;
  uint64_t length = 0;
  bool required = true;
};

void get_zeros(ByteReader& in, size_t count) {
  const std::string_view zeros = in.raw(count);
  if (std::any_of(zeros.begin(), zeros.end(), [](char c) { return c != 0; })) {
    in.fail("bytes that should be zero are not");
  }
}

void check_signature(ByteReader& in) {
  const std::string_view signature = in.raw(std::min(kSignature.size(), in.remaining()));
  if (signature == kFormerSignature) {
    throw InputError(
        "it has the format of an early version, which is not read any more; train the model anew");
  }
  if (signature != kSignature) {
    throw InputError("it is not a model of Larch; give a file that a training program wrote");
  }
}

Header get_header(ByteReader& in, uint64_t file_bytes, Container& container) {
  check_signature(in);
  container.major = in.u16();
  container.minor = in.u16();
  if (container.major > kMajorVersion) {
    throw InputError("it has format version " + std::to_string(container.major) + "." +
                     std::to_string(container.minor) + ", this program reads up to " +
                     std::to_string(kMajorVersion) + ".x; use a newer program");
  }
  if (container.major == 0) in.fail("it has format version 0");
  container.kind_version = in.u32();
  container.kind = std::string(in.raw(kMaximumKindCharacters));
  const size_t end = std::min(container.kind.find('\0'), container.kind.size());
  if (container.kind.find_first_not_of('\0', end) != std::string::npos) {
    in.fail("bytes that should be zero are not");
  }
  container.kind.resize(end);
  if (!is_kind(container.kind)) in.fail("the name of its kind is not one");
  const uint64_t length = in.u64();
  if (length != file_bytes) {
    in.fail("it should have " + std::to_string(length) + " bytes and has " +
            std::to_string(file_bytes));
  }
  Header header;
  header.table_bytes = in.u64();
  header.sections = in.u32();
  get_zeros(in, 4);
  const uint64_t after = file_bytes - std::min<uint64_t>(file_bytes, kHeaderBytes + kDigestBytes);
  if (header.table_bytes > after || header.sections > header.table_bytes / kSmallestEntry) {
    in.fail("it claims " + std::to_string(header.sections) + " sections in a table of " +
            std::to_string(header.table_bytes) + " bytes");
  }
  return header;
}

Entry get_entry(ByteReader& in) {
  Entry entry;
  entry.digest = std::string(in.raw(kDigestBytes));
  entry.length = in.u64();
  const uint16_t flags = in.u16();
  if ((flags & ~kRequired) != 0) in.fail("a section has unknown flags");
  entry.required = (flags & kRequired) != 0;
  const uint16_t name_bytes = in.u16();
  entry.name = std::string(in.raw(name_bytes));
  if (!is_section_name(entry.name)) in.fail("the name of a section is not one");
  get_zeros(in, padding_after(kEntryBytes + entry.name.size()));
  return entry;
}

void read_to(std::ifstream& in, std::string& bytes, size_t size) {
  const size_t start = bytes.size();
  bytes.resize(size);
  if (!in.read(bytes.data() + start, static_cast<std::streamsize>(size - start))) {
    throw InputError("it cannot be read; check its permissions");
  }
}

std::vector<Entry> get_table(std::string_view table, uint32_t count) {
  ByteReader in(table, "the table of sections");
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < count; ++i) {
    Entry entry = get_entry(in);
    if (!entries.empty() && entry.name == entries.back().name) in.fail("a section is there twice");
    if (!entries.empty() && entry.name < entries.back().name) {
      in.fail("its sections are out of order");
    }
    entries.push_back(std::move(entry));
  }
  in.finish();
  return entries;
}

void put_entry(ByteWriter& out, const std::string& name, const Section& section) {
  if (!is_section_name(name)) {
    throw InputError("'" + name + "' cannot be the name of a section of a model; rename it");
  }
  out.raw(sha256(section.bytes));
  out.u64(section.bytes.size());
  out.u16(section.required ? kRequired : 0);
  out.u16(static_cast<uint16_t>(name.size()));
  out.raw(name);
  out.raw(std::string(padding_after(kEntryBytes + name.size()), '\0'));
}

}  // namespace

const Section& Container::at(std::string_view name) const {
  const auto found = sections.find(name);
  if (found == sections.end()) {
    throw InputError("the section '" + std::string(name) +
                     "' is missing; the file is damaged: copy it again or make it anew");
  }
  return found->second;
}

std::string encode_container(const Container& container) {
  if (!is_kind(container.kind)) {
    throw InputError("'" + container.kind + "' cannot be a kind of model; rename it");
  }
  ByteWriter table;
  uint64_t total = kHeaderBytes + kDigestBytes;
  for (const auto& [name, section] : container.sections) {
    put_entry(table, name, section);
    total += section.bytes.size() + padding_after(section.bytes.size());
  }
  ByteWriter out;
  out.reserve(total + table.bytes().size());
  out.raw(kSignature);
  out.u16(container.major);
  out.u16(container.minor);
  out.u32(container.kind_version);
  out.raw(container.kind);
  out.raw(std::string(kMaximumKindCharacters - container.kind.size(), '\0'));
  out.u64(total + table.bytes().size());
  out.u64(table.bytes().size());
  out.u32(static_cast<uint32_t>(container.sections.size()));
  out.u32(0);
  out.raw(table.bytes());
  out.raw(sha256(out.bytes()));
  for (const auto& [name, section] : container.sections) {
    out.raw(section.bytes);
    out.raw(std::string(padding_after(section.bytes.size()), '\0'));
  }
  return std::move(out).take();
}

Container decode_container(std::string_view bytes) {
  Container container;
  ByteReader in(bytes, "the model file");
  const Header header = get_header(in, bytes.size(), container);
  const std::string_view table = in.raw(header.table_bytes);
  const std::string_view covered = bytes.substr(0, bytes.size() - in.remaining());
  if (in.raw(kDigestBytes) != sha256(covered)) in.fail("the digest of its table is wrong");
  for (Entry& entry : get_table(table, header.sections)) {
    if (entry.length > in.remaining()) {
      in.fail("the section '" + entry.name + "' claims " + std::to_string(entry.length) +
              " bytes, " + std::to_string(in.remaining()) + " are there");
    }
    const std::string_view payload = in.raw(entry.length);
    if (sha256(payload) != entry.digest) {
      in.fail("the digest of the section '" + entry.name + "' is wrong");
    }
    get_zeros(in, padding_after(entry.length));
    container.sections[std::move(entry.name)] = {std::string(payload), entry.required};
  }
  in.finish();
  return container;
}

Container read_container(const std::string& path, const DigestSink& digest) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("there is no such file; check the name");
  }
  const auto size = static_cast<size_t>(std::filesystem::file_size(path, error));
  if (error) throw InputError("it cannot be read; check its permissions");
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  read_to(in, bytes, std::min(size, kBeginning));
  refuse_placeholder(path, bytes);
  ByteReader header(bytes, "the model file");
  Container ignored;
  get_header(header, size, ignored);
  read_to(in, bytes, size);
  if (digest) digest(path, sha256_of(bytes));
  return decode_container(bytes);
}

void write_container(const std::string& path, const Container& container) {
  write_file(path, encode_container(container));
}

std::string kind_of_file(const std::string& path) {
  constexpr size_t kAt = 16;
  std::string start(kHeaderBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (!file || !start.starts_with(kSignature)) return "";
  const std::string kind = start.substr(kAt, kMaximumKindCharacters);
  return kind.substr(0, kind.find('\0'));
}

std::string use_of_kind(std::string_view kind) {
  if (is_checkpoint(kind)) return "pbt-train goes on from it with --resume";
  if (kind == "pbt" || kind == "forest") return "pbt-detect reads it";
  if (kind == "hdn") return "hdn-detect reads it";
  if (kind == "boundary") return "boundary-refine reads it";
  return "give a model that was made for this program";
}

}  // namespace larch::models
