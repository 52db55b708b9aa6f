// compute/kernels/table_impl.h: a KernelTable of what an instruction set brings, a type Isa:
//
//   Vector              16 floats, as attention_impl.h wants them
//   quantise            a QuantiseColumn
//   product<kFormat>    a GroupProduct, of the formats that are not floats
//
// All is of internal linkage: the including files are compiled for instructions that not every CPU has.
#pragma once

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/convolution_impl.h"
#include "compute/kernels/delta_impl.h"
#include "compute/kernels/float_impl.h"
#include "compute/kernels/tables.h"

namespace hocket {
namespace {

template <typename Isa, std::size_t kFirst>
constexpr void fill_products(KernelTable& table) {
  if constexpr (kFirst < kPackedFormats) {
    constexpr auto kFormat = static_cast<PackedFormat>(kFirst);
    if constexpr (layout_of(kFormat).scales == Scales::kNone)
      table.products[kFirst] = float_product<typename Isa::Vector, kFormat>;
    else
      table.products[kFirst] = Isa::template product<kFormat>;
    fill_products<Isa, kFirst + 1>(table);
  }
}

template <typename Isa>
constexpr KernelTable make_table(const char* name) {
  using Vector = typename Isa::Vector;
  KernelTable table{name, Isa::quantise, {}, attention<Vector>, delta<Vector>, convolve<Vector>, snake<Vector>};
  fill_products<Isa, 0>(table);
  return table;
}

}  // namespace
}  // namespace hocket
