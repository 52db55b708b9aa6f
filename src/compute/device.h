// compute/device.h: the machines' compute devices, and the element types of caches.
//
// Threads  pure functions.
#pragma once

#include <ggml-backend.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

enum class CacheType { kF32, kF16, kBF16, kQ8_0 };

ggml_type to_ggml(CacheType type);
std::string_view cache_type_name(CacheType type);               // "f16"
std::optional<CacheType> parse_cache_type(std::string_view s);  // "f32", "f16", "bf16", "q8_0"

struct DeviceInfo {
  std::string name;         // "CPU", "Vulkan0": what --device takes
  std::string description;  // "AMD EPYC …"
  std::string kind;         // "cpu", "gpu", "igpu", "accel"
  std::size_t memory_free_bytes = 0;
  std::size_t memory_total_bytes = 0;
};

std::vector<DeviceInfo> list_devices();

// "" or "CPU": the CPU. kNotFound lists what there is.
Result<ggml_backend_dev_t> find_device(std::string_view name);

// Features that ggml's CPU code was built for and found here: "AVX2 FMA AVX512 …".
std::string cpu_features();

// Cores without counting hyper-threads twice, limited to those this process may run on; at least 1.
int physical_cores();

}  // namespace hocket
