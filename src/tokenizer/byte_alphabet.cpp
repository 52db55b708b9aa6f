#include "tokenizer/byte_alphabet.h"

#include "base/utf8.h"

namespace hocket {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr std::size_t kSubstitutes = 68;

bool stands_for_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

const std::array<uint8_t, kSubstitutes>& substituted_bytes() {
  static const std::array<uint8_t, kSubstitutes> table = [] {
    std::array<uint8_t, kSubstitutes> out{};
    std::size_t n = 0;
    for (int byte = 0; byte < 256; ++byte)
      if (!stands_for_itself(byte)) out[n++] = static_cast<uint8_t>(byte);
    return out;
  }();
  return table;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> out;
    for (int byte = 0; byte < 256; ++byte)
      if (stands_for_itself(byte)) append_utf8(out[static_cast<std::size_t>(byte)], static_cast<char32_t>(byte));
    for (std::size_t i = 0; i < kSubstitutes; ++i)
      append_utf8(out[substituted_bytes()[i]], kFirstSubstitute + static_cast<char32_t>(i));
    return out;
  }();
  return table;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  const auto& alphabet = byte_alphabet();
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) out += alphabet[static_cast<uint8_t>(c)];
  return out;
}

std::string alphabet_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.valid && c.code_point < 256 && stands_for_itself(static_cast<int>(c.code_point)))
      out += static_cast<char>(c.code_point);
    else if (c.valid && c.code_point >= kFirstSubstitute && c.code_point < kFirstSubstitute + kSubstitutes)
      out += static_cast<char>(substituted_bytes()[c.code_point - kFirstSubstitute]);
    else
      out.append(text.substr(0, c.n_bytes));
    text.remove_prefix(c.n_bytes);
  }
  return out;
}

}  // namespace hocket
