#include "engine/model_identity.h"

#include <fmt/format.h>
#include <xxhash.h>

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

}  // namespace

std::string model_fingerprint(const GgufFile& file) {
  Hasher hasher;
  hasher.add(build_info().version);
  hasher.add(build_info().commit);
  hasher.add(build_info().ggml_version);
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
  return fmt::format("fp_{:016x}", hasher.digest());
}

}  // namespace hocket
