#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/chat_request.h"

namespace hocket {
namespace {

bool is_token(const Json& value, std::size_t n_vocab) {
  return value.is_number_unsigned() && value.get<uint64_t>() < n_vocab;
}

std::optional<std::vector<TokenId>> read_ids(FieldReader& fields, const Json& array, const std::string& path,
                                             std::size_t n_vocab) {
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (!is_token(array[i], n_vocab)) {
      const std::string item = indexed_path(path, i);
      fields.fail(Error(ErrorCode::kInvalid, fmt::format("{} is not a token id below {}", item, n_vocab), item));
      return std::nullopt;
    }
    ids.push_back(array[i].get<TokenId>());
  }
  return ids;
}

}  // namespace

std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name, std::size_t max_prompts,
                                 std::size_t n_vocab, bool allow_empty) {
  std::vector<Prompt> prompts;
  const std::string path = fields.path_of(name);
  const auto refuse_empty = [&](const std::string& which) {
    fields.fail(Error(ErrorCode::kInvalid, fmt::format("{} is empty", which), which));
  };
  const Json* value = fields.find(name);
  if (!value) {
    fields.fail(name, fmt::format("{} is missing", path));
    return prompts;
  }
  if (value->is_string()) {
    prompts.emplace_back(value->get<std::string>());
    if (!allow_empty && value->get_ref<const std::string&>().empty()) refuse_empty(path);
    return prompts;
  }
  if (!value->is_array()) {
    fields.fail(name, fmt::format("{} must be a string or an array, not {}", path, json_kind(*value)));
    return prompts;
  }
  if (value->empty()) {
    refuse_empty(path);
    return prompts;
  }
  if (value->front().is_number()) {
    if (auto ids = read_ids(fields, *value, path, n_vocab)) prompts.emplace_back(std::move(*ids));
    return prompts;
  }
  if (value->size() > max_prompts) {
    fields.fail(name, fmt::format("{} has more than {} items", path, max_prompts));
    return prompts;
  }
  for (std::size_t i = 0; i < value->size() && fields.ok(); ++i) {
    const Json& item = (*value)[i];
    const std::string item_path = indexed_path(path, i);
    if (!item.is_string() && !item.is_array()) {
      fields.fail(Error(ErrorCode::kInvalid,
                        fmt::format("{} must be a string or an array of token ids, not {}", item_path, json_kind(item)),
                        item_path));
    } else if (!allow_empty && (item.is_array() ? item.empty() : item.get_ref<const std::string&>().empty())) {
      refuse_empty(item_path);
    } else if (item.is_string()) {
      prompts.emplace_back(item.get<std::string>());
    } else if (auto ids = read_ids(fields, item, item_path, n_vocab)) {
      prompts.emplace_back(std::move(*ids));
    }
  }
  return prompts;
}

}  // namespace hocket
