// Any bytes at all are either a clean error or a file whose metadata and tensors can be used.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

void use_metadata(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    CHECK(metadata.find(key) == &value);
    // Every getter on every key: a value or an error that names the key.
    const auto check = [&key = key](const auto& result) { CHECK(result.ok() || result.error().param == key); };
    check(metadata.integer(key, 0, 1 << 20));
    check(metadata.number(key));
    check(metadata.boolean(key));
    check(metadata.string(key));
    check(metadata.strings(key));
    check(metadata.integers(key));
    check(metadata.numbers(key));
    check(metadata.booleans(key));
    check(metadata.per_layer(key, 4, std::nullopt, 0, 1 << 20));
  }
}

void use_tensors(const GgufFile& file, std::size_t n_file_bytes) {
  for (const TensorInfo& tensor : file.tensors()) {
    CHECK(file.find(tensor.name) == &tensor);
    CHECK(tensor.n_bytes > 0 && tensor.n_bytes <= n_file_bytes);
    CHECK(tensor.offset_bytes % file.alignment() == 0);
    const auto data = file.data(tensor);
    CHECK(data.size() == tensor.n_bytes);
    std::byte first{}, last{};
    CHECK(file.read(tensor, 0, std::span(&first, 1)).ok());
    CHECK(file.read(tensor, tensor.n_bytes - 1, std::span(&last, 1)).ok());
    CHECK(first == data.front() && last == data.back());
    CHECK(!file.read(tensor, tensor.n_bytes, std::span(&last, 1)).ok());
  }
}

}  // namespace
}  // namespace hocket

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, std::size_t n) {
  const auto image = std::as_bytes(std::span(bytes, n));
  const auto file = hocket::GgufFile::parse(image);
  if (!file.ok()) {
    CHECK(!file.error().message.empty());
    return 0;
  }
  hocket::use_metadata((*file)->metadata());
  hocket::use_tensors(**file, n);
  return 0;
}
