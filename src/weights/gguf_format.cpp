#include "weights/gguf_format.h"

namespace hocket {

bool is_tensor_type(uint32_t id) {
  if (id >= GGML_TYPE_COUNT) return false;
  const auto type = static_cast<ggml_type>(id);
  return ggml_blck_size(type) > 0 && ggml_type_size(type) > 0;
}

uint64_t tensor_bytes(ggml_type type, const std::array<int64_t, 4>& ne) {
  constexpr auto kMax = static_cast<uint64_t>(INT64_MAX);
  const auto block = static_cast<uint64_t>(ggml_blck_size(type));
  const uint64_t block_bytes = ggml_type_size(type);
  for (const int64_t n : ne)
    if (n <= 0) return 0;
  if (static_cast<uint64_t>(ne[0]) % block != 0) return 0;
  uint64_t n_blocks = static_cast<uint64_t>(ne[0]) / block;
  const uint64_t max_blocks = kMax / (block > block_bytes ? block : block_bytes);
  for (int i = 1; i < 4; ++i) {
    if (n_blocks > max_blocks / static_cast<uint64_t>(ne[i])) return 0;
    n_blocks *= static_cast<uint64_t>(ne[i]);
  }
  return n_blocks > max_blocks ? 0 : n_blocks * block_bytes;
}

}  // namespace hocket
