#include "compute/device.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"

namespace hocket {

namespace {

struct CacheTypeRow {
  CacheType type;
  ggml_type ggml;
  std::string_view name;
};
constexpr CacheTypeRow kCacheTypes[] = {
    {CacheType::kF32, GGML_TYPE_F32, "f32"},
    {CacheType::kF16, GGML_TYPE_F16, "f16"},
    {CacheType::kBF16, GGML_TYPE_BF16, "bf16"},
    {CacheType::kQ8_0, GGML_TYPE_Q8_0, "q8_0"},
};

std::string_view kind_name(ggml_backend_dev_t device) {
  switch (ggml_backend_dev_type(device)) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
      return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU:
      return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
      return "igpu";
    default:
      return "accel";
  }
}

// ggml's own messages go to our log; the repacking of each tensor is of no interest to anybody.
void route_ggml_log() {
  static std::once_flag once;
  std::call_once(once, [] {
    ggml_log_set(
        [](ggml_log_level level, const char* text, void*) {
          std::string_view line(text);
          while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
          if (line.empty()) return;
          const bool serious = level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN;
          log_at(serious ? LogLevel::kWarn : LogLevel::kTrace, "ggml: {}", line);
        },
        nullptr);
  });
}

// "0-3,8" or "2" → the first number: the lowest sibling names a core.
int first_number(const std::string& list) {
  std::size_t n = 0;
  while (n < list.size() && list[n] >= '0' && list[n] <= '9' && n < 6) ++n;
  return n == 0 ? -1 : std::stoi(list.substr(0, n));
}

}  // namespace

ggml_type to_ggml(CacheType type) {
  for (const CacheTypeRow& row : kCacheTypes)
    if (row.type == type) return row.ggml;
  return GGML_TYPE_F32;
}

std::string_view cache_type_name(CacheType type) {
  for (const CacheTypeRow& row : kCacheTypes)
    if (row.type == type) return row.name;
  return "?";
}

std::optional<CacheType> parse_cache_type(std::string_view s) {
  for (const CacheTypeRow& row : kCacheTypes)
    if (row.name == s) return row.type;
  return std::nullopt;
}

std::vector<DeviceInfo> list_devices() {
  route_ggml_log();
  std::vector<DeviceInfo> devices;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    DeviceInfo info;
    info.name = ggml_backend_dev_name(device);
    info.description = ggml_backend_dev_description(device);
    info.kind = kind_name(device);
    ggml_backend_dev_memory(device, &info.memory_free_bytes, &info.memory_total_bytes);
    devices.push_back(std::move(info));
  }
  return devices;
}

Result<ggml_backend_dev_t> find_device(std::string_view name) {
  route_ggml_log();
  const std::string wanted(name.empty() ? "CPU" : name);
  std::string known;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (wanted == ggml_backend_dev_name(device)) return device;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", ggml_backend_dev_name(device));
  }
  return Error(ErrorCode::kNotFound, fmt::format("no device \"{}\"; there are: {}", wanted, known), "device");
}

std::string cpu_features() {
  std::string features;
  const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (!cpu) return features;
  const auto get = reinterpret_cast<ggml_backend_get_features_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), "ggml_backend_get_features"));
  if (!get) return features;
  for (const ggml_backend_feature* f = get(ggml_backend_dev_backend_reg(cpu)); f && f->name; ++f)
    features += fmt::format("{}{}", features.empty() ? "" : " ", f->name);
  return features;
}

int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string siblings;
    const int core = std::getline(file, siblings) ? first_number(siblings) : -1;
    cores.insert(core < 0 ? cpu : core);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

}  // namespace hocket
