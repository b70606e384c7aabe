// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/dsa/samples.h"
#include "tests/unit/dsa/dsa_fixtures.h"

namespace {

using namespace larch;
using namespace larch::dsa;
using fixtures::context_of;

StoredValues stored_of(int bits, Domain holds) {
  StoredValues stored;
  stored.bits = bits;
  stored.holds = holds;
  return stored;
}

uint16_t at(const SampleTable& table, int32_t stored) {
  return table.of_stored[static_cast<size_t>(stored - table.least_stored)];
}

std::vector<uint16_t> filtered(const std::vector<uint16_t>& image, const Vec3i& size,
                               const DsaConfig& config, int threads = 1) {
  const SampleFrames frames{size, 1, Buffer<uint16_t>(Device::cpu(), image)};
  return filter_at_zero(frames, config, context_of(threads)).values.to_vector();
}

}  // namespace

TEST_CASE("samples of linear values are quarters, fewer where they do not fit") {
  const DsaConfig config;
  const SampleTable twelve = make_sample_table(stored_of(12, Domain::kAuto), config);
  CHECK_FALSE(twelve.is_log);
  CHECK(twelve.fraction_bits == 2);
  CHECK(at(twelve, 1000) == 4000);
  CHECK(twelve.least_counted == 1);
  CHECK(twelve.most_counted == 4094);
  CHECK(make_sample_table(stored_of(14, Domain::kAuto), config).fraction_bits == 2);
  CHECK(make_sample_table(stored_of(15, Domain::kAuto), config).fraction_bits == 1);
  const SampleTable sixteen = make_sample_table(stored_of(16, Domain::kAuto), config);
  CHECK(sixteen.fraction_bits == 0);
  CHECK(at(sixteen, 65535) == kMaximumSample);
  CHECK(at(sixteen, 40000) == 40000);
  CHECK_THROWS_AS(make_sample_table(stored_of(17, Domain::kAuto), config), UsageError);
  CHECK_THROWS_AS(make_sample_table(stored_of(0, Domain::kAuto), config), UsageError);
}

TEST_CASE("the log domain is that of known linear values, and contrast agent raises it") {
  DsaConfig config;
  const SampleTable table = make_sample_table(stored_of(12, Domain::kLinear), config);
  CHECK(table.is_log);
  CHECK(at(table, 4095) == 0);
  CHECK(at(table, 1000) == std::lround(4 * 1000 * std::log(4.095)));
  CHECK(at(table, 500) > at(table, 1000));
  CHECK(at(table, 0) == at(table, 1));
  config.log_scale = 5000;
  CHECK(make_sample_table(stored_of(16, Domain::kLinear), config).fraction_bits == 0);
  config.log_scale = 1000;
  config.dark = 100;
  const SampleTable above_dark = make_sample_table(stored_of(12, Domain::kLinear), config);
  CHECK(at(above_dark, 1100) == std::lround(4 * 1000 * std::log(4.095)));
  CHECK(above_dark.least_counted == 101);
}

TEST_CASE("stored logarithms are taken as they are, turned so that contrast agent raises them") {
  DsaConfig config;
  const SampleTable table = make_sample_table(stored_of(10, Domain::kLog), config);
  CHECK(table.is_log);
  CHECK(at(table, 1023) == 0);
  CHECK(at(table, 1000) == 4 * 23);
  StoredValues raised = stored_of(10, Domain::kLog);
  raised.is_inverted = true;
  CHECK(at(make_sample_table(raised, config), 1000) == 4000);
  config.domain = Domain::kLinear;
  CHECK_THROWS_AS(make_sample_table(stored_of(10, Domain::kLog), config), UsageError);
  config.domain = Domain::kAuto;
  config.stored = Domain::kLog;
  CHECK(make_sample_table(stored_of(10, Domain::kAuto), config).is_log);
  CHECK(at(make_sample_table(stored_of(10, Domain::kLinear), config), 1023) == 0);
}

TEST_CASE("values of a Modality LUT stand for the stored ones") {
  DsaConfig config;
  StoredValues squares = stored_of(8, Domain::kLinear);
  for (int p = 0; p < 256; ++p) squares.values.push_back(p * p);
  const SampleTable table = make_sample_table(squares, config);
  CHECK(table.is_log);
  CHECK(at(table, 255) == 0);
  CHECK(at(table, 100) == std::lround(4 * 1000 * std::log(255.0 * 255 / 1e4)));
  config.dark = 400;  // of what the table gives: 20 and below have no radiation
  CHECK(make_sample_table(squares, config).least_counted == 21);
  config.dark = 0;
  squares.holds = Domain::kAuto;
  CHECK(at(make_sample_table(squares, config), 100) == 10000);

  // A table that falls turns over what contrast agent does to the stored values.
  StoredValues falling = stored_of(10, Domain::kLinear);
  for (int p = 0; p < 1024; ++p) falling.values.push_back(1023 - p);
  falling.is_inverted = true;
  const SampleTable turned = make_sample_table(falling, config);
  const SampleTable plain = make_sample_table(stored_of(10, Domain::kLinear), config);
  for (const int p : {1, 17, 500, 1022}) CHECK(at(turned, 1023 - p) == at(plain, p));
}

TEST_CASE("signed and inverted values") {
  StoredValues stored = stored_of(12, Domain::kAuto);
  stored.is_signed = true;
  const SampleTable table = make_sample_table(stored, DsaConfig{});
  CHECK(table.least_stored == -2048);
  CHECK(at(table, -2048) == 0);
  CHECK(at(table, 0) == 4 * 2048);
  const std::vector<uint16_t> raw = {static_cast<uint16_t>(-5), 0, 3, static_cast<uint16_t>(-2048),
                                     2047};
  const auto samples =
      to_samples(Buffer<uint16_t>(Device::cpu(), raw), {5, 1, 1}, table, {}, context_of())
          .values.to_vector();
  CHECK(samples == std::vector<uint16_t>{4 * 2043, 4 * 2048, 4 * 2051, kNoSample, kNoSample});
  stored.is_signed = false;
  stored.is_inverted = true;
  const SampleTable inverted = make_sample_table(stored, DsaConfig{});
  CHECK(at(inverted, 4095) == 0);
  CHECK(at(inverted, 95) == 4000 * 4);
}

TEST_CASE("what is saturated, beyond the table or outside of the region does not count") {
  const SampleTable table = make_sample_table(stored_of(8, Domain::kAuto), DsaConfig{});
  const std::vector<uint16_t> raw = {0, 1, 254, 255, 900, 7, 7, 7};
  const std::vector<uint8_t> region = {1, 1, 1, 0};
  const Context context = context_of(2);
  const Buffer<uint16_t> stored(Device::cpu(), raw);
  const Vec3i size{2, 2, 1};
  CHECK(to_samples(stored, size, table, Buffer<uint8_t>(Device::cpu(), region), context)
            .values.to_vector() ==
        std::vector<uint16_t>{kNoSample, 4, 1016, kNoSample, kNoSample, 28, 28, kNoSample});
  const SampleFrames values = to_values(stored, size, table, context);
  CHECK(values.count == 2);
  CHECK(values.values.to_vector() == std::vector<uint16_t>{0, 4, 1016, 1020, 1020, 28, 28, 28});
}

TEST_CASE("the mask is the mean of its frames, rounded once") {
  const std::vector<uint16_t> a = {1, 10, kNoSample}, b = {2, 11, 5}, c = {2, 13, 5};
  const std::vector<std::span<const uint16_t>> all = {a, b, c};
  CHECK(mean_of_samples(all) == std::vector<uint16_t>{2, 11, kNoSample});
  CHECK(mean_of_samples(std::vector<std::span<const uint16_t>>{a, b})[0] == 2);
}

TEST_CASE("the kernel at fraction 0 keeps constants and needs all neighbours") {
  for (const Vec3i& size : {Vec3i{37, 21, 1}, Vec3i{12, 9, 5}}) {
    const int32_t count = size.x * size.y * size.z;
    std::vector<uint16_t> image(static_cast<size_t>(count), 777);
    const auto index = [&](int32_t x, int32_t y, int32_t z) {
      const int32_t place = (z * size.y + y) * size.x + x;
      return static_cast<size_t>(place);
    };
    const int32_t z = size.z / 2;
    image[index(5, 4, z)] = kNoSample;
    DsaConfig config;
    const std::vector<uint16_t> valid = filtered(image, size, config);
    CHECK(valid == filtered(image, size, config, 3));
    CHECK(valid[index(8, 4, z)] == 777);
    CHECK(valid[index(4, 3, z)] == kNoSample);
    CHECK(valid[index(6, 5, z)] == kNoSample);
    CHECK(valid[index(0, 4, z)] == kNoSample);
    CHECK(valid[index(8, size.y - 1, z)] == kNoSample);
    if (size.z > 1) CHECK(valid[index(8, 4, 0)] == kNoSample);
    config.literal = true;
    CHECK(filtered(image, size, config) == image);
  }
}

TEST_CASE("the kernel at fraction 0 has the weights 1/6, 2/3, 1/6 along each axis") {
  const Vec3i size{16, 16, 1};
  std::vector<uint16_t> image(256, 1000);
  image[8 * 16 + 8] = 37000;
  const std::vector<uint16_t> out = filtered(image, size, DsaConfig{});
  CHECK(out[8 * 16 + 8] == Approx(1000 + 36000 * 4.0 / 9).margin(10));
  CHECK(out[8 * 16 + 7] == Approx(1000 + 36000 / 9.0).margin(6));
  CHECK(out[7 * 16 + 7] == Approx(1000 + 36000 / 36.0).margin(3));
  CHECK(out[8 * 16 + 6] == 1000);
}
