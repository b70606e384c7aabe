// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>

#include "larch/core/text.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_parser.h"

namespace larch::io {
namespace {

std::string_view bytes_of(const DicomDataset& data, const DicomTag& tag) {
  const DicomElement* element = data.find(tag);
  return element == nullptr ? std::string_view() : element->value;
}

std::string_view without_padding(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

bool to_number(std::string_view text, double& number) {
  constexpr std::string_view kDecimal = "0123456789+-.eE";
  if (text.empty() || text.find_first_not_of(kDecimal) != std::string_view::npos) return false;
  const std::string terminated(text);
  char* end = nullptr;
  number = parsed_number(terminated.c_str(), &end);
  return *end == '\0' && std::isfinite(number);
}

}  // namespace

void bad_header(const std::string& path, const std::string& what) {
  bad(path, what + "; repair the header or export the file again");
}

std::string text_of(const DicomDataset& data, const DicomTag& tag) {
  const std::string_view bytes = bytes_of(data, tag);
  return std::string(without_padding(bytes.substr(0, bytes.find('\0'))));
}

bool has_value(const DicomDataset& data, const DicomTag& tag) {
  return !bytes_of(data, tag).empty();
}

int uint16_of(const DicomDataset& data, const DicomTag& tag, int missing, const std::string& path) {
  if (!has_value(data, tag)) return missing;
  const DicomElement* element = data.find(tag);
  const bool untyped = element->vr == std::array<char, 2>{} || element->has_vr("UN");
  const bool is_number = untyped || element->has_vr("US") || element->has_vr("SS");
  const std::vector<uint16_t> numbers = uint16s_of(data, tag);
  if (!is_number || numbers.empty()) {
    bad_header(path, std::string(tag.name) + " is not a 16-bit number");
  }
  return numbers[0];
}

std::vector<uint16_t> uint16s_of(const DicomDataset& data, const DicomTag& tag) {
  const std::string_view bytes = bytes_of(data, tag);
  const FieldReader in{bytes.data(), data.is_big_endian};
  std::vector<uint16_t> numbers(bytes.size() / 2);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = in.get<uint16_t>(static_cast<int64_t>(2 * i));
  }
  return numbers;
}

std::vector<double> numbers_of(const DicomDataset& data, const DicomTag& tag, size_t count,
                               const std::string& path) {
  const std::string_view text = without_padding(bytes_of(data, tag));
  if (text.empty()) return {};
  std::vector<double> numbers;
  bool sound = true;
  for (size_t at = 0; sound && at <= text.size();) {
    const size_t end = std::min(text.find('\\', at), text.size());
    double number = 0;
    sound = to_number(without_padding(text.substr(at, end - at)), number);
    numbers.push_back(number);
    at = end + 1;
  }
  if (sound && numbers.size() == count) return numbers;
  bad_header(path,
             std::string(tag.name) + " is " + shown(text) + ", not " +
                 (count == 1 ? "one finite number" : std::to_string(count) + " finite numbers"));
}

std::span<const DicomItem> items_of(const DicomDataset& data, const DicomTag& tag) {
  const DicomElement* element = data.find(tag);
  return element == nullptr ? std::span<const DicomItem>() : element->items;
}

}  // namespace larch::io
