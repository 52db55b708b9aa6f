#include "audio/id3.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace hocket {
namespace {

constexpr char kUtf8 = 3;

// Seven bits a byte, so that no byte looks like the start of an MPEG frame.
std::string synchsafe(std::size_t n) {
  std::string bytes;
  for (int shift = 21; shift >= 0; shift -= 7) bytes += static_cast<char>((n >> shift) & 0x7F);
  return bytes;
}

std::string frame(std::string_view id, std::string_view prefix, const std::string& text) {
  if (text.empty()) return {};
  std::string body(1, kUtf8);
  body += prefix;
  body += repair_utf8(text);
  return std::string(id) + synchsafe(body.size()) + std::string(2, '\0') + body;
}

}  // namespace

std::vector<std::byte> id3_tag(const AudioTags& tags) {
  using std::string_view_literals::operator""sv;
  const std::string frames =
      frame("TIT2", {}, tags.title) + frame("COMM", "eng\0"sv, tags.comment) + frame("TSSE", {}, tags.software);
  std::vector<std::byte> bytes;
  if (frames.empty()) return bytes;
  const std::string all = std::string("ID3\4\0\0"sv) + synchsafe(frames.size()) + frames;
  for (const char c : all) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

}  // namespace hocket
