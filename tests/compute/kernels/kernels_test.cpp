// Every kernel of every instruction set against a double-precision twin, the reference, and itself in other company.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "compute/kernels/kernel_table.h"
#include "compute/kernels/pack.h"
#include "support/numbers.h"
#include "support/packed_weights.h"

namespace hocket::test {
namespace {

// Columns in panels as the kernels read them.
struct Panels {
  ActivationForm form;
  int64_t n_in, n;
  std::vector<std::byte> bytes;

  Panels(const KernelTable& kernels, const ActivationForm& wanted, const std::vector<float>& x, int64_t length)
      : form(wanted), n_in(length), n(static_cast<int64_t>(x.size()) / length) {
    bytes.resize(static_cast<std::size_t>(n * column_bytes(form, n_in)));
    for (int64_t i = 0; i < n; ++i)
      kernels.quantise(x.data() + i * n_in, 0, n_in, form, n_in, panel_of(i), static_cast<int>(width_of(i)),
                       static_cast<int>(i % kPanelColumns));
  }
  int64_t width_of(int64_t i) const { return std::min(kPanelColumns, n - i / kPanelColumns * kPanelColumns); }
  std::byte* panel_of(int64_t i) { return bytes.data() + i / kPanelColumns * kPanelColumns * column_bytes(form, n_in); }
  // What the rounded column stands for.
  double value(int64_t i, int64_t k) {
    const int64_t width = width_of(i), c = i % kPanelColumns;
    const std::byte* panel = panel_of(i);
    float scale;
    if (form.scale_block == 1) {
      std::memcpy(&scale, panel + 4 * (k * width + c), sizeof scale);
      return scale;
    }
    std::memcpy(&scale, panel + panel_scales_at(n_in, width) + 4 * (k / form.scale_block * width + c), sizeof scale);
    return static_cast<double>(scale) * static_cast<int8_t>(panel[(k / kBlock * width + c) * kBlock + k % kBlock]);
  }
};

std::vector<float> multiply(const PackedMatrix& m, Panels& x) {
  const GroupProduct product = m.kernels->products[static_cast<std::size_t>(m.format)];
  std::vector<float> out(static_cast<std::size_t>(m.n_out * x.n));
  for (int64_t first = 0; first < x.n; first += kPanelColumns)
    for (int64_t group = 0; group < m.n_groups(); ++group) {
      float rows[kPanelColumns * kGroupRows];
      const int64_t width = x.width_of(first);
      product(m.group(0, group), m.n_in, x.panel_of(first), static_cast<int>(width), rows, kGroupRows);
      for (int64_t c = 0; c < width; ++c)
        for (int64_t row = group * kGroupRows; row < std::min(m.n_out, (group + 1) * kGroupRows); ++row)
          out[static_cast<std::size_t>((first + c) * m.n_out + row)] = rows[c * kGroupRows + row % kGroupRows];
    }
  return out;
}

struct Case {
  const KernelTable* kernels;
  PackedFormat format;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.kernels->name << " " << format_name(c.format);
}

bool of_floats(PackedFormat format) {
  return layout_of(format).scales == Scales::kNone;
}

std::vector<Case> cases(bool with_floats) {
  std::vector<Case> all;
  for (const KernelTable* kernels : all_kernels())
    for (std::size_t f = 0; f < kPackedFormats; ++f) {
      const auto format = static_cast<PackedFormat>(f);
      if (with_floats || !of_floats(format)) all.push_back({kernels, format});
    }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& test) {
  std::string name = std::string(test.param.kernels->name) + "_" + format_name(test.param.format);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

class Kernels : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runs_here(*GetParam().kernels)) GTEST_SKIP() << "this CPU has no " << GetParam().kernels->name;
  }
  int64_t block() const {
    return of_floats(GetParam().format) ? 37 : record_of(layout_of(GetParam().format).scales).block;
  }
  ActivationForm form() const { return form_of(layout_of(GetParam().format)); }
  std::mt19937 random_{5};
};
class IntegerKernels : public Kernels {};

TEST_P(Kernels, AgreeWithADoublePrecisionTwin) {
  const auto& [kernels, format] = GetParam();
  for (const auto& [n_blocks, n_out, n_columns] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {2, 16, 12}, {3, 17, 13}, {5, 31, 7}, {1, 48, 25}, {7, 5, 2}}) {
    SCOPED_TRACE(testing::Message() << n_blocks << " blocks, " << n_out << " rows, " << n_columns << " columns");
    const int64_t n_in = n_blocks * block();
    PackedWeights w(*kernels, format, n_in, n_out, 1, random_);
    const std::vector<float> x = random_floats(random_, static_cast<std::size_t>(n_in * n_columns));
    Panels panels(*kernels, form(), x, n_in);
    const std::vector<float> got = multiply(w.matrix, panels);
    std::vector<double> rounded, exact;
    for (int64_t c = 0; c < n_columns; ++c)
      for (int64_t row = 0; row < n_out; ++row) {
        double of_rounded = 0, of_exact = 0;
        for (int64_t k = 0; k < n_in; ++k) {
          of_rounded += w.value(0, row, k) * panels.value(c, k);
          of_exact += w.value(0, row, k) * static_cast<double>(x[static_cast<std::size_t>(c * n_in + k)]);
        }
        rounded.push_back(of_rounded);
        exact.push_back(of_exact);
      }
    // A single number may be the difference of large ones.
    EXPECT_LE(nmse(got, rounded), n_out * n_columns == 1 ? 1e-10 : 1e-12);
    // Steps of 8 bits: an error of largest / (127 · √12) each, and the largest of 256 is about 3.
    EXPECT_LE(nmse(got, exact), n_out * n_columns == 1 ? 2e-2 : 2e-4);
  }
}

TEST_P(Kernels, GiveTheBitsOfTheReference) {
  const auto& [kernels, format] = GetParam();
  const KernelTable& reference = *all_kernels().back();
  const int64_t n_in = 6 * block(), n_out = 37, n_columns = 29;
  PackedWeights w(*kernels, format, n_in, n_out, 1, random_);
  const std::vector<float> x = random_floats(random_, static_cast<std::size_t>(n_in * n_columns));
  Panels panels(*kernels, form(), x, n_in), reference_panels(reference, form(), x, n_in);
  EXPECT_EQ(panels.bytes, reference_panels.bytes);
  const std::vector<float> got = multiply(w.matrix, panels);
  w.matrix.kernels = &reference;
  EXPECT_EQ(got, multiply(w.matrix, panels));
}

TEST_P(Kernels, GiveAColumnTheSameBitsInEveryCompany) {
  const auto& [kernels, format] = GetParam();
  const int64_t n_in = 4 * block(), n_out = 20;
  PackedWeights w(*kernels, format, n_in, n_out, 1, random_);
  const std::vector<float> x = random_floats(random_, static_cast<std::size_t>(n_in * kPanelColumns));
  std::vector<float> alone;
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    Panels panel(*kernels, form(), {x.begin() + c * n_in, x.begin() + (c + 1) * n_in}, n_in);
    const std::vector<float> column = multiply(w.matrix, panel);
    alone.insert(alone.end(), column.begin(), column.end());
  }
  for (int64_t width = 1; width <= kPanelColumns; ++width) {
    Panels panel(*kernels, form(), {x.begin(), x.begin() + width * n_in}, n_in);
    const std::vector<float> together = multiply(w.matrix, panel);
    EXPECT_EQ(together, std::vector<float>(alone.begin(), alone.begin() + width * n_out)) << width << " columns";
  }
}

TEST_P(IntegerKernels, HoldTheLargestSums) {
  const auto& [kernels, format] = GetParam();
  const int64_t n_in = 2 * block();
  PackedWeights w(*kernels, format, n_in, 16, 1, random_);
  // Every stored value at its largest, whatever the file's format would allow; codes have theirs elsewhere.
  for (const int byte : {0xFF, 0x77, 0x00}) {
    std::memset(w.matrix.data, byte, static_cast<std::size_t>(group_value_bytes(layout_of(format), n_in)));
    for (const float sign : {1.0f, -1.0f}) {
      SCOPED_TRACE(testing::Message() << "bytes of " << byte << ", sign " << sign);
      const std::vector<float> x(static_cast<std::size_t>(n_in), sign);
      Panels panel(*kernels, form(), x, n_in);
      const std::vector<float> got = multiply(w.matrix, panel);
      for (int64_t row = 0; row < 16; ++row) {
        std::vector<float> values(static_cast<std::size_t>(n_in));
        unpack_row(format, w.matrix.group(0, 0), row, n_in, values.data());
        double sum = 0, size = 0;
        for (const float value : values) {
          sum += static_cast<double>(value) * sign;
          size += std::abs(static_cast<double>(value));
        }
        EXPECT_NEAR(got[static_cast<std::size_t>(row)], sum, 1e-5 * size + 1e-4);
      }
    }
  }
}

TEST_P(Kernels, PassOnWhatIsNotFinite) {
  const auto& [kernels, format] = GetParam();
  const int64_t n_in = 2 * block();
  PackedWeights w(*kernels, format, n_in, 16, 1, random_);
  for (const float bad : {std::nanf(""), INFINITY}) {
    std::vector<float> x = random_floats(random_, static_cast<std::size_t>(2 * n_in));
    x[3] = bad;
    Panels panel(*kernels, form(), x, n_in);
    const std::vector<float> got = multiply(w.matrix, panel);
    for (std::size_t row = 0; row < 16; ++row) {
      EXPECT_FALSE(std::isfinite(got[row])) << "row " << row << " with " << bad;
      EXPECT_TRUE(std::isfinite(got[16 + row])) << "the other column";
    }
  }
  Panels zeros(*kernels, form(), std::vector<float>(static_cast<std::size_t>(n_in), 1e-38f), n_in);
  if (!of_floats(format)) {
    EXPECT_EQ(multiply(w.matrix, zeros), std::vector<float>(16, 0.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(cases(true)), case_name);
INSTANTIATE_TEST_SUITE_P(All, IntegerKernels, testing::ValuesIn(cases(false)), case_name);

TEST(PackedLayout, HoldsTheValuesOfTheFileBitByBit) {
  std::mt19937 random(7);
  for (std::size_t f = 0; f < kPackedFormats; ++f) {
    const auto format = static_cast<PackedFormat>(f);
    SCOPED_TRACE(format_name(format));
    const int64_t n_in = 3 * record_of(layout_of(format).scales).block;
    for (const int64_t n_out : {1, 15, 16, 17, 40}) {
      PackedWeights w(*all_kernels().back(), format, n_in, n_out, 2, random);
      for (int64_t expert = 0; expert < 2; ++expert)
        for (int64_t row = 0; row < n_out; ++row) {
          std::vector<float> got(static_cast<std::size_t>(n_in));
          unpack_row(format, w.matrix.group(expert, row / kGroupRows), row % kGroupRows, n_in, got.data());
          const auto first = w.values.begin() + (expert * n_out + row) * n_in;
          ASSERT_EQ(got, std::vector<float>(first, first + n_in)) << "row " << row << " of " << n_out;
        }
    }
  }
}

// Weights of a normal distribution do not have the smallest scales, which are subnormal numbers.
TEST(PackedLayout, HoldsEveryScaleThatIsAPowerOfTwo) {
  const int64_t n_in = 256 * kBlock, n_columns = 3;
  std::mt19937 random(8);
  PackedWeights w(*all_kernels().back(), PackedFormat::kMXFP4, n_in, 16, 1, random);
  const std::size_t row_size = w.rows.size() / 16, block_size = row_size / 256;
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t b = 0; b < 256; ++b) w.rows[row * row_size + b * block_size] = static_cast<std::byte>(b);
  w.matrix.pack_groups(w.rows.data(), 0, 1);
  ggml_get_type_traits(GGML_TYPE_MXFP4)->to_float(w.rows.data(), w.values.data(), 16 * n_in);
  std::vector<float> got(static_cast<std::size_t>(n_in));
  for (int64_t row = 0; row < 16; ++row) {
    unpack_row(PackedFormat::kMXFP4, w.matrix.group(0, 0), row, n_in, got.data());
    ASSERT_EQ(got, std::vector<float>(w.values.begin() + row * n_in, w.values.begin() + (row + 1) * n_in));
  }
  // Each block alone, and so large that its products are normal numbers.
  const ActivationForm form = form_of(layout_of(PackedFormat::kMXFP4));
  for (const int64_t block : {0, 1, 2, 3, 127, 128, 253}) {
    std::vector<float> x(static_cast<std::size_t>(n_in * n_columns));
    for (int64_t c = 0; c < n_columns; ++c)
      for (int64_t k = 0; k < kBlock; ++k)
        x[static_cast<std::size_t>(c * n_in + block * kBlock + k)] =
            std::ldexp(1.0f + static_cast<float>(random() % 64), block < 64    ? 20
                                                                 : block > 192 ? -20
                                                                               : 0);
    Panels panels(*all_kernels().back(), form, x, n_in);
    const std::vector<float> expected = multiply(w.matrix, panels);
    EXPECT_NE(expected, std::vector<float>(expected.size()));
    for (const KernelTable* kernels : all_kernels()) {
      if (!runs_here(*kernels)) continue;
      w.matrix.kernels = kernels;
      EXPECT_EQ(multiply(w.matrix, panels), expected) << kernels->name << ", exponent " << block;
    }
    w.matrix.kernels = all_kernels().back();
  }
}

TEST(PackedLayout, RefusesWhatItHasNoKernelFor) {
  const KernelTable& kernels = *all_kernels().back();
  EXPECT_FALSE(PackedMatrix::describe(kernels, GGML_TYPE_IQ3_S, 256, 16, 1));
  EXPECT_FALSE(PackedMatrix::describe(kernels, GGML_TYPE_Q4_K, 128, 16, 1));
  EXPECT_TRUE(PackedMatrix::describe(kernels, GGML_TYPE_Q4_0, 96, 16, 1));
}

TEST(KernelTables, AreFoundByName) {
  EXPECT_EQ(find_kernels("portable"), all_kernels().back());
  EXPECT_EQ(find_kernels("no such kernels"), nullptr);
  for (const KernelTable* kernels : all_kernels()) {
    EXPECT_NE(describe_kernels().find(kernels->name), std::string::npos);
    EXPECT_EQ(find_kernels(kernels->name), runs_here(*kernels) ? kernels : nullptr);
  }
}

}  // namespace
}  // namespace hocket::test
