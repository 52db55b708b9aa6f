#include "engine/model_identity.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "base/check.h"
#include "engine/build_info.h"

namespace hocket {
namespace {

class Hasher {
 public:
  Hasher() : state_(XXH64_createState(), XXH64_freeState) {
    CHECK(state_ != nullptr && XXH64_reset(state_.get(), 0) == XXH_OK);
  }
  // Lengths go in too, so that neighbours cannot run into each other.
  void add(std::string_view text) {
    add_number(text.size());
    XXH64_update(state_.get(), text.data(), text.size());
  }
  template <class T>
  void add_number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    XXH64_update(state_.get(), &value, sizeof(value));
  }
  uint64_t digest() const { return XXH64_digest(state_.get()); }

 private:
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
};

void add_value(Hasher& hasher, const MetadataValue& value) {
  hasher.add_number(value.index());
  if (const auto* text = std::get_if<std::string>(&value)) {
    hasher.add(*text);
  } else if (const auto* array = std::get_if<MetadataArray>(&value)) {
    std::visit(
        [&](const auto& items) {
          using Item = typename std::decay_t<decltype(items)>::value_type;
          hasher.add_number(items.size());
          for (const auto& item : items) {
            if constexpr (std::is_same_v<Item, std::string>) {
              hasher.add(item);
            } else {
              hasher.add_number(static_cast<Item>(item));
            }
          }
        },
        array->items);
  } else {
    std::visit(
        [&](const auto& number) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>) hasher.add_number(number);
        },
        value);
  }
}

void add_header(Hasher& hasher, const GgufFile& file) {
  hasher.add_number(file.file_bytes());
  for (const auto& [key, value] : file.metadata().entries()) {
    hasher.add(key);
    add_value(hasher, value);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    hasher.add(tensor.name);
    hasher.add_number(static_cast<int>(tensor.type));
    for (const int64_t n : tensor.ne) hasher.add_number(n);
    hasher.add_number(tensor.offset_bytes);
  }
}

// Files that were tuned differently often have equal headers.
Result<void> add_weights(Hasher& hasher, const GgufFile& file) {
  constexpr std::size_t kSample = 4096;
  std::vector<std::byte> sample;
  for (const TensorInfo& tensor : file.tensors()) {
    sample.resize(std::min<uint64_t>(kSample, tensor.n_bytes));
    TRY(file.read(tensor, (tensor.n_bytes - sample.size()) / 2, sample));
    hasher.add({reinterpret_cast<const char*>(sample.data()), sample.size()});
  }
  return {};
}

}  // namespace

std::string model_fingerprint(const GgufFile& file) {
  Hasher hasher;
  hasher.add(build_info().version);
  hasher.add(build_info().commit);
  hasher.add(build_info().ggml_version);
  add_header(hasher, file);
  return fmt::format("fp_{:016x}", hasher.digest());
}

Result<StateIdentity> identify_model(const GgufFile& file, const ModelSummary& summary, const std::string& device,
                                     const RunnerOptions& runner, std::size_t n_chunk) {
  Hasher hasher;
  add_header(hasher, file);
  TRY(add_weights(hasher, file));
  StateIdentity identity;
  identity.model = fmt::format("{} {:016x}", summary.arch, hasher.digest());
  // Some models turn their keys otherwise in a long context.
  const std::string key = summary.arch + ".rope.scaling.original_context_length";
  const bool stretches = file.metadata().entries().count(key) > 0;
  identity.layout = fmt::format("k={} v={} flash={} chunk={} device={} kernels={}{}", cache_type_name(runner.cache_k),
                                cache_type_name(runner.cache_v), static_cast<int>(runner.flash_attention),
                                std::min(n_chunk, runner.n_batch), device.empty() ? "CPU" : device, summary.kernels,
                                stretches ? fmt::format(" context={}", runner.n_ctx) : "");
  return identity;
}

}  // namespace hocket
