// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace larch::io {

/// An element with the name that PS3.6 gives it, for messages.
struct DicomTag {
  uint16_t group = 0, element = 0;
  const char* name = "";

  constexpr uint32_t number() const { return uint32_t{group} << 16 | element; }
};

constexpr DicomTag kPixelData{0x7fe0, 0x0010, "PixelData"};

struct DicomItem;

/// One element. All values are views into those that the file keeps.
struct DicomElement {
  uint32_t tag = 0;
  std::array<char, 2> vr{};      ///< value representation; zeros where the syntax does not tell it
  bool is_ambiguous = false;     ///< it stood more than once, with different values
  std::string_view value;        ///< empty for a sequence and for encapsulated pixel data
  std::vector<DicomItem> items;  ///< of a sequence

  bool has_vr(std::string_view name) const { return name == std::string_view(vr.data(), 2); }
};

/// The elements of a file, or of an item of a sequence.
struct DicomDataset {
  std::vector<DicomElement> elements;  ///< in ascending order of their tags, each once
  bool is_big_endian = false;          ///< how numbers are stored
  const std::string* path = nullptr;   ///< of the file, for messages

  /// Null if it is absent. Throws InputError if it stood twice with different values: readers
  /// differ in which of them they take. What nobody asks for may stand twice.
  const DicomElement* find(const DicomTag& tag) const;
};

/// One item of a sequence.
struct DicomItem {
  DicomDataset data;
};

/// Bytes of a file.
struct FilePiece {
  int64_t offset = 0, bytes = 0;
};

/// The place of the pixel data in a file. Of a deflated file these are places in the inflated
/// bytes.
struct PixelPlace {
  bool is_encapsulated = false;
  std::array<char, 2> vr{};
  FilePiece native{};                  ///< all frames, one after another
  std::vector<FilePiece> fragments{};  ///< of encapsulated ones, the offset table first
};

/// How a DICOM file is coded (PS3.5, 10; PS3.6, annex A), if it is a way that is read here.
enum class TransferSyntax {
  kUnknown,
  kImplicitLittle,
  kExplicitLittle,
  kDeflated,
  kExplicitBig,
  kRle,
  kJpegBaseline,
  kJpegExtended,
  kJpegLossless,  ///< process 14, with any predictor or the first one
  kJpegLs,
  kJpegLsNear,
  kJpeg2000,
};

/// A file, taken apart.
struct DicomFile {
  std::unique_ptr<const std::string> path;        ///< what pointers of `data` look at
  std::deque<std::string> values{};               ///< what its views look at
  std::shared_ptr<const std::string> inflated{};  ///< all of a deflated file
  /// Implicit or explicit little-endian where the file does not name one.
  TransferSyntax transfer_syntax = TransferSyntax::kUnknown;
  DicomDataset meta, data;
  std::optional<PixelPlace> place{};  ///< of the pixel data, which are none of `data`
  std::string damage{};               ///< why nothing was read from some element on; empty: all was
};

/// Reads all elements of a DICOM file (PS3.5, PS3.10) but its pixel data, of which the places are
/// found: it takes the memory of a header. A parser of our own: those of the libraries assert on
/// damaged lengths, allocate what a length claims, or fill up what is missing with zeros. The first
/// element tells whether the syntax is implicit or explicit, whatever the file says. Zeros, spaces
/// and line ends behind the pixel data are padding. Where tags, lengths, sequences and fragments do
/// not fit into each other and into the file, or are far too many for it, DicomFile::damage says
/// so, beside what stands before. Throws InputError if nothing does; MemoryError if a deflated file
/// does not fit into the memory.
DicomFile read_dicom_file(const std::string& path);

/// The bytes of a DICOM file, or those that a deflated one holds.
class DicomBytes {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit DicomBytes(const std::string& path, std::shared_ptr<const std::string> inflated = {});
  int64_t size() const { return size_; }
  /// Returns the SHA-256 of the file as hexadecimal; empty for what was inflated.
  std::string sha256();
  /// Throws InputError if the file has become shorter.
  void read(const FilePiece& piece, void* to);
  std::string read(const FilePiece& piece);

 private:
  std::string path_;
  std::shared_ptr<const std::string> inflated_;
  int64_t size_, block_at_ = 0;
  std::string block_{};  ///< bytes of the file from block_at_ on
  std::ifstream in_;
};

/// Returns the same of a file that is open.
DicomFile read_dicom_file(const std::string& path, DicomBytes in);

/// Throws InputError "'path': what; repair the header or export the file again".
[[noreturn]] void bad_header(const std::string& path, const std::string& what);

/// Returns the value as text, without padding; empty if the element is absent or empty.
std::string text_of(const DicomDataset& data, const DicomTag& tag);

/// True if the element is there and not empty.
bool has_value(const DicomDataset& data, const DicomTag& tag);

/// Returns the first number of an element of 16-bit numbers; `missing` if it is absent or empty.
/// Throws InputError if it holds something else: sizes and bit positions are not guessed.
int uint16_of(const DicomDataset& data, const DicomTag& tag, int missing, const std::string& path);

/// Returns all numbers of an element of 16-bit numbers.
std::vector<uint16_t> uint16s_of(const DicomDataset& data, const DicomTag& tag);

/// Returns the decimal strings of an element (PS3.5, 6.2: digits, sign, point and exponent alone).
/// An element that is absent or empty gives none. Throws InputError unless exactly `count` finite
/// numbers stand there: a number that is present and broken is not a number that is missing.
std::vector<double> numbers_of(const DicomDataset& data, const DicomTag& tag, size_t count,
                               const std::string& path);

/// Returns the items of a sequence; none if the element is absent or no sequence. They live as long
/// as `data` does.
std::span<const DicomItem> items_of(const DicomDataset& data, const DicomTag& tag);

}  // namespace larch::io
