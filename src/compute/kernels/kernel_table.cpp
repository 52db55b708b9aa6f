#include "compute/kernels/kernel_table.h"

#include "compute/kernels/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace hocket {
namespace {

#if defined(__x86_64__)
// Older compilers' __builtin_cpu_supports() does not know it: CPUID leaf 7, sub-leaf 1, EAX bit 4.
bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1u) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
#elif defined(__aarch64__)
bool has_dotprod() {
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

bool has_i8mm() {
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#endif

}  // namespace

const std::vector<const KernelTable*>& all_kernels() {
  static const std::vector<const KernelTable*> tables{
#if defined(__x86_64__)
      &kAvx512VnniKernels, &kAvxVnniKernels, &kAvx2Kernels,
#elif defined(__aarch64__)
      &kNeonI8mmKernels, &kNeonDotprodKernels,
#endif
      &kPortableKernels};
  return tables;
}

bool runs_here(const KernelTable& kernels) {
#if defined(__x86_64__)
  if (&kernels == &kAvx512VnniKernels)
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
  if (&kernels == &kAvxVnniKernels) return has_avx2() && has_avx_vnni();
  if (&kernels == &kAvx2Kernels) return has_avx2();
#elif defined(__aarch64__)
  if (&kernels == &kNeonI8mmKernels) return has_dotprod() && has_i8mm();
  if (&kernels == &kNeonDotprodKernels) return has_dotprod();
#endif
  return &kernels == &kPortableKernels;
}

const KernelTable* find_kernels(std::string_view name) {
  for (const KernelTable* kernels : all_kernels()) {
    if (!runs_here(*kernels)) continue;
    if (name == kernels->name) return kernels;
    if (name == "auto") return kernels == &kPortableKernels ? nullptr : kernels;
  }
  return nullptr;
}

std::string describe_kernels() {
  std::string here, elsewhere;
  for (const KernelTable* kernels : all_kernels()) {
    std::string& list = runs_here(*kernels) ? here : elsewhere;
    if (!list.empty()) list += ' ';
    list += kernels->name;
  }
  return here + (elsewhere.empty() ? "" : " (not on this CPU: " + elsewhere + ")");
}

}  // namespace hocket
