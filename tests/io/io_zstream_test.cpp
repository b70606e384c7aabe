// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "larch/core/digest.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

namespace larch::test {
namespace {

using io::ZReader;
using io::ZWriter;

constexpr int64_t kBlock = ZWriter::kBlockBytes;

/// Text that compresses, but not to nothing, and that refers back across the borders of blocks.
std::string some_bytes(int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  std::mt19937 random(static_cast<unsigned>(size));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = i > 5000 && (i >> 8) % 3 != 0 ? bytes[i - 5000] : static_cast<char>(random() % 40);
  }
  return bytes;
}

void write(const std::string& path, const std::string& bytes, int threads, size_t piece) {
  ZWriter out(path, true, threads);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    out.write(bytes.data() + at, static_cast<int64_t>(std::min(piece, bytes.size() - at)));
  }
  out.close();
}

TEST_CASE("compressed streams of any length come back; threads and pieces do not show") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gz", other = folder / "b.gz";
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{352}, kBlock - 1, kBlock, kBlock + 1,
                             3 * kBlock, 64 * kBlock, 64 * kBlock + 1}) {
    INFO(size << " bytes");
    const std::string bytes = some_bytes(size);
    write(path, bytes, 1, bytes.size() + 1);
    const std::string packed = read_file(path);
    CHECK(static_cast<int64_t>(packed.size()) < 30 + size);
    for (const int threads : size > 4 * kBlock ? std::vector{3} : std::vector{2, 5}) {
      write(other, bytes, threads, 1'000'003);
      CHECK((read_file(other) == packed));
    }
    ZReader in(path);
    std::string back(bytes.size() + 1, 'x');
    CHECK(in.read(back.data(), size + 1) == size);
    back.pop_back();
    CHECK((back == bytes));
    in.finish();
  }
}

TEST_CASE("a file that one thread writes is written without others") {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const TemporaryFolder folder;
  const auto before = threads();
  const Volume<uint8_t> volume(oblique_grid({256, 128, 128}), 1);  // blocks for four threads
  write_volume(folder / "a.nii.gz", volume, 1);
  write_labelmap(folder / "b.nii.gz", LabelVolume(volume.grid(), 1), {}, 1);
  CHECK(threads() == before);
  write_volume(folder / "c.nii.gz", volume, 4);
  CHECK(threads() > before);
}

TEST_CASE("a flipped bit in any block of a compressed stream is seen") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gz";
  const std::string bytes = some_bytes(3 * kBlock + 77);
  write(path, bytes, 2, bytes.size());
  const std::string packed = read_file(path);
  for (const double part : {0.2, 0.5, 0.8, 0.9999}) {
    std::string damaged = packed;
    damaged[static_cast<size_t>(part * static_cast<double>(packed.size()))] ^= 4;
    write_file(path, damaged);
    CHECK_THROWS_AS(
        [&] {
          ZReader in(path);
          std::string back(bytes.size(), '\0');
          in.read(back.data(), static_cast<int64_t>(back.size()));
          in.finish();
        }(),
        InputError);
  }
}

TEST_CASE("a file that is unpacked at once is what a stream makes of it, with what follows") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gz";
  const std::string bytes = some_bytes(3 * kBlock + 77), more = "more";
  write(path, more, 1, more.size());
  const std::string second = read_file(path);
  write(path, bytes, 2, bytes.size());
  const std::string first = read_file(path);
  const std::vector<std::pair<std::string, size_t>> tails{{"", 0}, {second, 4}, {"no stream", 0}};
  for (const auto& [tail, count] : tails) {
    INFO(tail.size() << " bytes follow");
    write_file(path, first + tail);
    ZReader in(path, 0, io::Packing::kGzip, /*hashes=*/true);
    std::string back(bytes.size(), 'x');
    CHECK(in.read(back.data(), 352) == 352);
    const auto rest = static_cast<int64_t>(bytes.size()) - 352;
    CHECK(in.read(back.data() + 352, rest) == rest);
    CHECK((back == bytes));
    CHECK(in.finish() == static_cast<int64_t>(count));
    CHECK(in.sha256() == sha256_of_file(path));
  }
}

}  // namespace
}  // namespace larch::test
