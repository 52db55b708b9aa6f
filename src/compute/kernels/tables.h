// compute/kernels/tables.h: the tables of kernel_table.h, by name: for the files that define them and the one that
// chooses.
#pragma once

#include "compute/kernels/kernel_table.h"

namespace hocket {

extern const KernelTable kPortableKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvxVnniKernels;
extern const KernelTable kAvx512VnniKernels;
#elif defined(__aarch64__)
extern const KernelTable kNeonDotprodKernels;
extern const KernelTable kNeonI8mmKernels;
#endif

}  // namespace hocket
