#include "engine/model_report.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "chat/template.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

constexpr std::size_t kFirstItems = 8;

Json value_json(const MetadataValue& value, bool whole) {
  return std::visit(
      [&](const auto& v) -> Json {
        using Value = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, MetadataArray>) {
          return std::visit(
              [&](const auto& items) -> Json {
                Json list = Json::array();
                const std::size_t n = whole ? items.size() : std::min(items.size(), kFirstItems);
                using Item = typename std::decay_t<decltype(items)>::value_type;
                for (std::size_t i = 0; i < n; ++i) list.push_back(static_cast<Item>(items[i]));
                if (whole) return list;
                Json out;
                out["length"] = items.size();
                out["first"] = std::move(list);
                return out;
              },
              v.items);
        } else {
          return Json(v);
        }
      },
      value);
}

Json error_json(const Error& error) {
  Json out;
  out["code"] = std::string(error_code_name(error.code));
  out["message"] = error.message;
  if (!error.param.empty()) out["about"] = error.param;
  return out;
}

Json types_json(const GgufFile& file) {
  struct Share {
    std::size_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Share> shares;
  for (const TensorInfo& tensor : file.tensors()) {
    Share& share = shares[ggml_type_name(tensor.type)];
    ++share.count;
    share.bytes += tensor.n_bytes;
  }
  Json out = Json::array();
  for (const auto& [type, share] : shares) {
    out.push_back(Json{{"type", type}, {"tensors", share.count}, {"bytes", share.bytes}});
  }
  return out;
}

Json tensors_json(const GgufFile& file) {
  Json out = Json::array();
  for (const TensorInfo& tensor : file.tensors()) {
    Json shape = Json::array();
    for (int d = 0; d < tensor.n_dims; ++d) shape.push_back(tensor.ne[static_cast<std::size_t>(d)]);
    out.push_back(Json{{"name", tensor.name},
                       {"type", ggml_type_name(tensor.type)},
                       {"shape", std::move(shape)},
                       {"bytes", tensor.n_bytes}});
  }
  return out;
}

Json model_json(const ModelSummary& summary) {
  Json out;
  out["architecture"] = summary.arch;
  out["name"] = summary.name;
  out["quantisation"] = summary.quantisation;
  out["n_params"] = summary.n_params;
  out["weight_bytes"] = summary.weight_bytes;
  out["n_layer"] = summary.n_layer;
  out["n_embd"] = summary.n_embd;
  out["n_head"] = summary.n_head;
  out["n_kv_head"] = summary.n_kv_head;
  out["n_vocab"] = summary.n_vocab;
  out["n_ctx_train"] = summary.n_ctx_train;
  out["pooling"] = summary.pooling;
  out["kernels"] = summary.kernels;
  return out;
}

Json tokenizer_json(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  Json out;
  out["kind"] = std::string(tokenizer.kind());
  out["pre"] = std::string(tokenizer.pre());
  out["size"] = tokenizer.size();
  const auto add = [&](const char* role, TokenId id) {
    if (id != kNoToken) out[role] = Json{{"id", id}, {"text", tokenizer.text(id)}};
  };
  add("bos", special.bos);
  add("eos", special.eos);
  add("eot", special.eot);
  add("unk", special.unk);
  add("pad", special.pad);
  add("fim_prefix", special.fim_prefix);
  add("fim_suffix", special.fim_suffix);
  add("fim_middle", special.fim_middle);
  out["add_bos"] = special.add_bos;
  out["add_eos"] = special.add_eos;
  out["end_of_generation"] = tokenizer.end_of_generation();
  return out;
}

Json template_json(const Metadata& metadata, const Tokenizer& tokenizer) {
  Json out;
  const auto source = metadata.string_or("tokenizer.chat_template", "");
  if (!source) {
    out["error"] = error_json(source.error());
    return out;
  }
  out["present"] = !source->empty();
  if (source->empty()) return out;
  const SpecialTokens& special = tokenizer.special();
  const auto text = [&](TokenId id) { return id == kNoToken ? std::string() : tokenizer.piece(id, true); };
  const auto parsed = ChatTemplate::parse(*source, text(special.bos), text(special.eos));
  out["bytes"] = source->size();
  if (!parsed) {
    out["error"] = error_json(parsed.error());
    return out;
  }
  const ChatTemplate::Capabilities& can = (*parsed)->capabilities();
  out["system_role"] = can.system_role;
  out["tools"] = can.tools;
  out["tool_calls"] = can.tool_calls;
  out["thinking"] = can.thinking;
  return out;
}

Result<Json> memory_json(const GgufFile& file, RunnerOptions options, const LoadOptions& load,
                         std::size_t n_ctx_train) {
  if (options.n_ctx == 0) options.n_ctx = n_ctx_train == 0 ? 4096 : n_ctx_train;
  TRY_ASSIGN(const MemoryPlan plan, plan_memory(file, options, load));
  Json out;
  out["n_ctx"] = options.n_ctx;
  out["cache_type_k"] = std::string(cache_type_name(options.cache_k));
  out["cache_type_v"] = std::string(cache_type_name(options.cache_v));
  out["weight_bytes"] = plan.weight_bytes;
  out["cache_bytes"] = plan.cache_bytes;
  out["compute_bytes"] = plan.compute_bytes;
  out["total_bytes"] = plan.total_bytes();
  return out;
}

std::string mib(const Json& bytes) {
  return fmt::format("{:.1f} MiB", bytes.get<double>() / (1 << 20));
}

void format_section(std::string& out, const char* title, const Json& values) {
  out += fmt::format("\n{}\n", title);
  for (const auto& [key, value] : values.items()) out += fmt::format("  {:<18} {}\n", key, dump_json(value));
}

}  // namespace

Result<Json> report_model(const std::string& path, const ReportOptions& options) {
  TRY_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::open(path));
  Json out;
  out["file"] = Json{{"path", path},
                     {"bytes", file->file_bytes()},
                     {"gguf_version", file->version()},
                     {"alignment", file->alignment()},
                     {"shards", file->n_shards()},
                     {"tensors", file->tensors().size()}};
  Json problems = Json::array();
  const auto summary = inspect_model(*file, options.load);
  const auto tokenizer = Tokenizer::load(file->metadata());
  if (!summary) problems.push_back(error_json(summary.error()));
  if (!tokenizer) problems.push_back(error_json(tokenizer.error()));
  Json memory;
  if (summary) {
    auto plan = memory_json(*file, options.runner, options.load, summary->n_ctx_train);
    if (plan) {
      memory = std::move(*plan);
    } else {
      problems.push_back(error_json(plan.error()));
    }
  }
  out["can_run"] = problems.empty();
  out["problems"] = std::move(problems);
  if (summary) out["model"] = model_json(*summary);
  Json metadata = Json::object();
  for (const auto& [key, value] : file->metadata().entries()) metadata[key] = value_json(value, options.vocabulary);
  out["metadata"] = std::move(metadata);
  out["types"] = types_json(*file);
  if (tokenizer) {
    out["tokenizer"] = tokenizer_json(**tokenizer);
    out["chat_template"] = template_json(file->metadata(), **tokenizer);
  }
  if (!memory.is_null()) out["memory"] = std::move(memory);
  if (options.tensors) out["tensors"] = tensors_json(*file);
  return out;
}

std::string format_report(const Json& report) {
  std::string out = fmt::format("{}\n", dump_json(report["file"]["path"]));
  if (report["can_run"].get<bool>()) {
    out += "can run: yes\n";
  } else {
    out += "can run: no\n";
    for (const Json& problem : report["problems"]) {
      out += fmt::format("  {}", dump_json(problem["message"]));
      if (problem.contains("about")) out += fmt::format(" ({})", dump_json(problem["about"]));
      out += '\n';
    }
  }
  format_section(out, "file", report["file"]);
  if (report.contains("model")) format_section(out, "model", report["model"]);
  if (report.contains("tokenizer")) format_section(out, "tokenizer", report["tokenizer"]);
  if (report.contains("chat_template")) format_section(out, "chat template", report["chat_template"]);
  if (report.contains("memory")) {
    const Json& memory = report["memory"];
    out += fmt::format("\nmemory for {} tokens of context ({} keys, {} values)\n", memory["n_ctx"].get<std::size_t>(),
                       memory["cache_type_k"].get<std::string>(), memory["cache_type_v"].get<std::string>());
    for (const char* part : {"weight", "cache", "compute", "total"}) {
      out += fmt::format("  {:<18} {:>12}\n", part, mib(memory[std::string(part) + "_bytes"]));
    }
  }
  out += "\nweights by type\n";
  for (const Json& type : report["types"]) {
    out += fmt::format("  {:<8} {:>6} tensors {:>14}\n", type["type"].get<std::string>(),
                       type["tensors"].get<std::size_t>(), mib(type["bytes"]));
  }
  out += "\nmetadata\n";
  for (const auto& [key, value] : report["metadata"].items()) {
    std::string text = dump_json(value);
    constexpr std::size_t kMost = 100;
    if (text.size() > kMost) text = repair_utf8(std::string_view(text).substr(0, kMost)) + "…";
    std::string name = dump_json(Json(key));
    out += fmt::format("  {:<44} {}\n", name.substr(1, name.size() - 2), text);
  }
  if (report.contains("tensors")) {
    out += "\ntensors\n";
    for (const Json& tensor : report["tensors"]) {
      std::string name = dump_json(tensor["name"]);
      out += fmt::format("  {:<44} {:<8} {}\n", name.substr(1, name.size() - 2), tensor["type"].get<std::string>(),
                         dump_json(tensor["shape"]));
    }
  }
  return out;
}

}  // namespace hocket
