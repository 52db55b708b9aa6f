#include "engine/build_info.h"

#include <fmt/format.h>
#include <ggml.h>

#include "compute/device.h"
#include "compute/kernels/kernel_table.h"

namespace hocket {
namespace {

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

const BuildInfo& build_info() {
  static const BuildInfo info{HOCKET_VERSION,    HOCKET_COMMIT,  HOCKET_BUILD_NUMBER, compiler_name(),
                              HOCKET_BUILD_TYPE, ggml_version(), cpu_features(),      describe_kernels()};
  return info;
}

std::string version_line() {
  const BuildInfo& info = build_info();
  return fmt::format("hocket {} ({})", info.version, info.commit);
}

std::string version_text() {
  const BuildInfo& info = build_info();
  return fmt::format("{}\ncompiler: {} ({})\nggml: {}\nCPU features: {}\nkernels: {}\n", version_line(), info.compiler,
                     info.build_type, info.ggml_version, info.cpu_features, info.kernels);
}

}  // namespace hocket
