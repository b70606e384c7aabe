// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom_elements.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace larch::io {
namespace {

std::string_view bytes_of(const gdcm::DataSet& data, const gdcm::Tag& tag) {
  if (!data.FindDataElement(tag)) return {};
  const gdcm::ByteValue* value = data.GetDataElement(tag).GetByteValue();
  if (value == nullptr || value->GetPointer() == nullptr) return {};
  return {value->GetPointer(), value->GetLength()};
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
  number = std::strtod(terminated.c_str(), &end);
  return *end == '\0' && std::isfinite(number);
}

// For a message: short, and without bytes that a terminal would obey.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string out(text.substr(0, kMost));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return "'" + out + (text.size() > kMost ? "...'" : "'");
}

}  // namespace

void bad_dicom(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

std::string text_of(const gdcm::DataSet& data, const gdcm::Tag& tag) {
  const std::string_view bytes = bytes_of(data, tag);
  return std::string(without_padding(bytes.substr(0, bytes.find('\0'))));
}

int uint16_of(const gdcm::DataSet& data, const gdcm::Tag& tag, int missing) {
  const std::string_view bytes = bytes_of(data, tag);
  if (bytes.size() < 2) return missing;
  uint16_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::vector<double> numbers_of(const gdcm::DataSet& data, const DicomTag& tag, size_t count,
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
  bad_dicom(path,
            std::string(tag.name) + " is " + shown(text) + ", not " +
                (count == 1 ? "one finite number" : std::to_string(count) + " finite numbers") +
                "; repair the header or export the file again");
}

DicomSequence sequence_of(const gdcm::DataSet& data, const gdcm::Tag& tag) {
  if (!data.FindDataElement(tag)) return nullptr;
  return data.GetDataElement(tag).GetValueAsSQ();
}

}  // namespace larch::io
