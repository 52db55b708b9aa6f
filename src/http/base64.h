// http/base64.h: RFC 4648 base64 with padding.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hocket {

std::string to_base64(std::span<const std::byte> bytes);

// Little-endian float32, as the embeddings API sends them.
std::string floats_to_base64(std::span<const float> values);

}  // namespace hocket
