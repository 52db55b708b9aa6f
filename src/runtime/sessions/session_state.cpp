#include "runtime/sessions/session_state.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/check.h"

namespace hocket {
namespace {

// Numbers are written as this machine has them.
static_assert(std::endian::native == std::endian::little);

constexpr char kStateMagic[8] = {'H', 'K', 'S', 'T', 'A', 'T', 'E', '1'};
constexpr char kPackMagic[8] = {'H', 'K', 'S', 'E', 'S', 'S', 'N', '1'};
constexpr std::size_t kNameBytes = 7;  // of a magic; the last byte is the version
constexpr std::size_t kMostStates = 64;
constexpr std::size_t kMostNameBytes = 4096;

// What states and packs begin with.
struct Envelope {
  char magic[8];
  uint64_t n_bytes;             // all of it
  XXH128_canonical_t checksum;  // of what follows
};
static_assert(sizeof(Envelope) == 32);

struct StateHeader {
  uint8_t kind, cuts, reserved[6];
  uint64_t n_strict, n_prompt, n_tokens, n_row, n_memory;
  uint32_t n_model, n_layout;
};
static_assert(sizeof(StateHeader) == 56 && std::is_trivially_copyable_v<StateHeader>);

Error damaged(std::string why, const char* reason = "session_damaged") {
  Error error(ErrorCode::kInvalid, "the saved session " + std::move(why), "session");
  error.reason = reason;
  return error;
}

class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), XXH3_freeState) {
    CHECK(state_ != nullptr && XXH3_128bits_reset(state_.get()) == XXH_OK);
  }
  void add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  XXH128_canonical_t digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return canonical;
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

void append(std::vector<std::byte>& out, const void* data, std::size_t n) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + n);
}

// `head` begins with room for the envelope.
void seal(std::vector<std::byte>& head, std::span<const std::byte> rest, const char (&magic)[8]) {
  Envelope envelope;
  std::memcpy(envelope.magic, magic, sizeof magic);
  envelope.n_bytes = head.size() + rest.size();
  Checksum checksum;
  checksum.add(std::span(head).subspan(sizeof envelope));
  checksum.add(rest);
  envelope.checksum = checksum.digest();
  std::memcpy(head.data(), &envelope, sizeof envelope);
}

// What is in the envelope.
Result<std::span<const std::byte>> open(std::span<const std::byte> bytes, const char (&magic)[8]) {
  Envelope envelope;
  if (bytes.size() < sizeof envelope) return damaged("is too short");
  std::memcpy(&envelope, bytes.data(), sizeof envelope);
  if (std::memcmp(envelope.magic, magic, kNameBytes) != 0) return damaged("does not begin like one", "session_format");
  if (envelope.magic[kNameBytes] != magic[kNameBytes]) return damaged("is of another format version", "session_format");
  if (envelope.n_bytes != bytes.size())
    return damaged(fmt::format("has {} bytes instead of {}", bytes.size(), envelope.n_bytes));
  Checksum checksum;
  checksum.add(bytes.subspan(sizeof envelope));
  const XXH128_canonical_t sum = checksum.digest();
  if (std::memcmp(&sum, &envelope.checksum, sizeof sum) != 0) return damaged("does not have its checksum");
  return bytes.subspan(sizeof envelope);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool take(void* to, std::size_t n) {
    if (n > bytes_.size()) return false;
    if (n > 0) std::memcpy(to, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return true;
  }
  template <class T>
  bool take_array(std::vector<T>& to, uint64_t n) {
    if (n > bytes_.size() / sizeof(T)) return false;
    to.resize(n);
    return take(to.data(), n * sizeof(T));
  }
  bool take_text(std::string& to, uint64_t n) {
    if (n > kMostNameBytes || n > bytes_.size()) return false;
    to.resize(n);
    return take(to.data(), n);
  }
  bool done() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

std::size_t encoded_bytes(const SessionState& state) {
  const StateKey& key = state.key;
  return sizeof(Envelope) + sizeof(StateHeader) + key.identity.model.size() + key.identity.layout.size() +
         key.tokens.size() * sizeof(TokenId) + state.row.size() * sizeof(float) + state.memory.size();
}

std::vector<std::byte> encode_state_head(const SessionState& state) {
  const StateKey& key = state.key;
  StateHeader header{};
  header.kind = static_cast<uint8_t>(key.kind);
  header.cuts = key.cuts ? 1 : 0;
  header.n_strict = key.lineage.n_strict;
  header.n_prompt = key.lineage.n_prompt;
  header.n_tokens = key.tokens.size();
  header.n_row = state.row.size();
  header.n_memory = state.memory.size();
  header.n_model = static_cast<uint32_t>(key.identity.model.size());
  header.n_layout = static_cast<uint32_t>(key.identity.layout.size());
  std::vector<std::byte> head(sizeof(Envelope));
  head.reserve(encoded_bytes(state) - state.memory.size());
  append(head, &header, sizeof header);
  append(head, key.identity.model.data(), key.identity.model.size());
  append(head, key.identity.layout.data(), key.identity.layout.size());
  append(head, key.tokens.data(), key.tokens.size() * sizeof(TokenId));
  append(head, state.row.data(), state.row.size() * sizeof(float));
  seal(head, state.memory, kStateMagic);
  return head;
}

Result<SessionState> decode_state(std::span<const std::byte> bytes) {
  TRY_ASSIGN(const std::span<const std::byte> content, open(bytes, kStateMagic));
  Reader reader(content);
  StateHeader header;
  SessionState state;
  StateKey& key = state.key;
  if (!reader.take(&header, sizeof header) || !reader.take_text(key.identity.model, header.n_model) ||
      !reader.take_text(key.identity.layout, header.n_layout) || !reader.take_array(key.tokens, header.n_tokens) ||
      !reader.take_array(state.row, header.n_row) || !reader.take_array(state.memory, header.n_memory) ||
      !reader.done())
    return damaged("does not have the parts it claims");
  // The checksum is no proof of who wrote it.
  if (header.kind > static_cast<uint8_t>(StateKind::kContinuation) || header.cuts > 1)
    return damaged("is of an unknown kind", "session_format");
  if (header.n_strict > header.n_prompt || header.n_prompt > header.n_tokens || header.n_tokens == 0)
    return damaged("has a lineage that cannot be");
  if (std::any_of(state.row.begin(), state.row.end(), [](float x) { return !std::isfinite(x); }))
    return damaged("has a row that is not finite");
  key.kind = static_cast<StateKind>(header.kind);
  key.cuts = header.cuts == 1;
  key.has_row = !state.row.empty();
  key.lineage = {header.n_strict, header.n_prompt};
  return state;
}

std::vector<std::byte> pack_states(std::span<const std::vector<std::byte>> parts) {
  std::vector<std::byte> out(sizeof(Envelope));
  const uint64_t n_parts = parts.size();
  append(out, &n_parts, sizeof n_parts);
  for (const std::vector<std::byte>& part : parts) {
    const uint64_t n_bytes = part.size();
    append(out, &n_bytes, sizeof n_bytes);
    append(out, part.data(), part.size());
  }
  seal(out, {}, kPackMagic);
  return out;
}

Result<std::vector<SessionState>> unpack_states(std::span<const std::byte> bytes) {
  TRY_ASSIGN(std::span<const std::byte> content, open(bytes, kPackMagic));
  const auto take_number = [&](uint64_t& n) {
    if (content.size() < sizeof n) return false;
    std::memcpy(&n, content.data(), sizeof n);
    content = content.subspan(sizeof n);
    return true;
  };
  uint64_t n_parts = 0;
  if (!take_number(n_parts) || n_parts == 0 || n_parts > kMostStates) return damaged("holds no states or too many");
  std::vector<SessionState> states;
  for (uint64_t i = 0; i < n_parts; ++i) {
    uint64_t n_bytes = 0;
    if (!take_number(n_bytes) || n_bytes > content.size()) return damaged("does not have the parts it claims");
    TRY_ASSIGN(SessionState state, decode_state(content.first(n_bytes)));
    states.push_back(std::move(state));
    content = content.subspan(n_bytes);
  }
  if (!content.empty()) return damaged("has more than its parts");
  return states;
}

Result<void> check_identity(const StateIdentity& ours, const StateIdentity& theirs) {
  if (ours == theirs) return {};
  const bool other_model = ours.model != theirs.model;
  Error error(ErrorCode::kInvalid,
              other_model ? fmt::format("the saved session is of another model ({}, not {})", theirs.model, ours.model)
                          : fmt::format("the saved session was made with other settings ({}, not {})", theirs.layout,
                                        ours.layout),
              "session");
  error.reason = other_model ? "session_model" : "session_layout";
  return error;
}

}  // namespace hocket
