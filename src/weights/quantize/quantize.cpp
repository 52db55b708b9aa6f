#include "weights/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

#include "weights/gguf_format.h"
#include "weights/gguf_writer.h"
#include "weights/quantize/row_conversion.h"

namespace hocket {
namespace {

constexpr int64_t kVersion = 2;            // of the quantised formats: general.quantization_version
constexpr int64_t kPieceValues = 4 << 20;  // of a tensor at a time: 16 MiB of floats
constexpr std::size_t kCopyBytes = 8 << 20;

struct Pattern {
  std::regex regex;
  std::string text;
  ggml_type type;
  bool matched = false;
};

Result<std::vector<Pattern>> compile(const std::vector<std::pair<std::string, ggml_type>>& types) {
  std::vector<Pattern> patterns;
  for (const auto& [text, type] : types) {
    try {
      patterns.push_back({std::regex(text, std::regex::ECMAScript | std::regex::optimize), text, type});
    } catch (const std::regex_error& error) {
      return Error(ErrorCode::kInvalid, fmt::format("--tensor-type {}: {}", text, error.what()), "--tensor-type");
    }
  }
  return patterns;
}

Metadata metadata_of(const GgufFile& file, const RecipeModel& model, const Recipe& recipe,
                     const ImportanceMatrix* importance) {
  Metadata m;
  for (const auto& [key, value] : file.metadata().entries())
    if (key != kSplitIndexKey && key != kSplitCountKey && key != kSplitTensorsKey) m.set(key, value);
  // ACE-Step's files say it in words.
  if (model.kind == RecipeModel::Kind::kLanguage) {
    m.set("general.file_type", recipe_number(recipe));
  } else {
    m.set("general.file_type", std::string(recipe_name(recipe)));
  }
  m.set("general.quantization_version", kVersion);
  if (importance) {
    m.set("quantize.imatrix.entries_count", static_cast<int64_t>(importance->n_entries()));
    if (importance->n_chunks() > 0) m.set("quantize.imatrix.chunks_count", importance->n_chunks());
  }
  return m;
}

// Which of its role's layers each tensor is in.
class Places {
 public:
  Places(const GgufFile& file, const RecipeModel& model) : model_(model) {
    for (const TensorInfo& tensor : file.tensors())
      if (const auto layer = weight_layer(tensor.name)) layers_[weight_role(model, tensor)].insert(*layer);
  }
  WeightPlace of(const TensorInfo& tensor) const {
    WeightPlace place;
    place.role = weight_role(model_, tensor);
    place.expert_stack = tensor.name.find("_exps.") != std::string::npos;
    const auto layer = weight_layer(tensor.name);
    if (!layer) return place;
    if (model_.kind != RecipeModel::Kind::kLanguage) {
      place.index = *layer;
      place.count = model_.n_layer;
      return place;
    }
    const std::set<int64_t>& layers = layers_.at(place.role);
    place.index = std::distance(layers.begin(), layers.find(*layer));
    place.count = static_cast<int64_t>(layers.size());
    return place;
  }

 private:
  const RecipeModel& model_;
  std::map<WeightRole, std::set<int64_t>> layers_;
};

struct Choice {
  ggml_type type;
  const char* option;  // what asked for it; nullptr: the recipe
};

Choice choose(const QuantizeOptions& options, std::vector<Pattern>& patterns, const RecipeModel& model,
              const Places& places, const TensorInfo& tensor) {
  for (Pattern& pattern : patterns) {
    if (!std::regex_search(tensor.name, pattern.regex)) continue;
    pattern.matched = true;
    return {pattern.type, "--tensor-type"};
  }
  const WeightPlace place = places.of(tensor);
  const bool embedding =
      place.role == WeightRole::kEmbedding || tensor.name == "token_embd.weight";  // a tied one is a head, too
  if (place.role == WeightRole::kHead && options.output) return {*options.output, "--output-tensor-type"};
  if (embedding && options.token_embedding) return {*options.token_embedding, "--token-embedding-type"};
  if (options.pure) return {recipe_base(*options.recipe), nullptr};
  return {recipe_type(*options.recipe, model, place), nullptr};
}

// Without changes: what may not be quantised, but for ACE-Step's small tensors, which its own quantiser makes F32.
ggml_type untouched_type(const RecipeModel& model, const TensorInfo& tensor) {
  const bool half = tensor.type == GGML_TYPE_F16 || tensor.type == GGML_TYPE_BF16;
  const bool vector = tensor.ne[1] * tensor.ne[2] * tensor.ne[3] == 1;
  return model.kind != RecipeModel::Kind::kLanguage && half && vector ? GGML_TYPE_F32 : tensor.type;
}

Result<void> check_importance(const TensorInfo& tensor, ggml_type to, const ImportanceMatrix* importance) {
  const std::span<const float> values = importance ? importance->find(tensor.name) : std::span<const float>();
  const auto n_in = static_cast<std::size_t>(tensor.ne[0]);
  const auto n_all = n_in * static_cast<std::size_t>(tensor.ne[2] * tensor.ne[3]);
  if (!values.empty() && values.size() != n_in && values.size() != n_all)
    return Error(ErrorCode::kInvalid,
                 fmt::format("the importance matrix has {} values for {}, which has {} inputs", values.size(),
                             tensor.name, n_all),
                 "--imatrix");
  if (values.empty() && ggml_quantize_requires_imatrix(to))
    return Error(
        ErrorCode::kInvalid,
        fmt::format("{} for tensor {} needs an importance matrix that has it", ggml_type_name(to), tensor.name),
        "--imatrix");
  return {};
}

Result<PlannedTensor> plan_tensor(const QuantizeOptions& options, std::vector<Pattern>& patterns,
                                  const RecipeModel& model, const Places& places, const ImportanceMatrix* importance,
                                  const TensorInfo& tensor) {
  PlannedTensor planned{&tensor, untouched_type(model, tensor), 0, false};
  if (may_quantise(model, tensor) && reads_as_floats(tensor.type)) {
    const Choice choice = choose(options, patterns, model, places, tensor);
    planned.to = choice.type;
    if (tensor.ne[0] % ggml_blck_size(choice.type) != 0) {
      if (choice.option)
        return Error(ErrorCode::kInvalid,
                     fmt::format("{}: rows of {} in tensor {} are no whole blocks of {}", choice.option, tensor.ne[0],
                                 tensor.name, ggml_type_name(choice.type)),
                     choice.option);
      planned.fallback = true;
      planned.to = model.kind == RecipeModel::Kind::kLanguage ? fitting_type(choice.type, tensor.ne[0]) : tensor.type;
    }
    if (planned.to != tensor.type) {
      if (ggml_is_quantized(tensor.type) && ggml_is_quantized(planned.to) && !options.allow_requantize)
        return Error(ErrorCode::kInvalid,
                     fmt::format("tensor {} is {} already; making it {} loses more than it would from the original "
                                 "(--allow-requantize does it all the same)",
                                 tensor.name, ggml_type_name(tensor.type), ggml_type_name(planned.to)),
                     "--allow-requantize");
      TRY(check_importance(tensor, planned.to, importance));
    }
  }
  planned.n_bytes = tensor_bytes(planned.to, tensor.ne);
  return planned;
}

// The tensor as it is.
Result<void> copy(const GgufFile& file, const TensorInfo& tensor, const CancelToken& cancel, const ByteSink& sink) {
  const std::span<const std::byte> mapped = file.data(tensor);
  std::vector<std::byte> buffer;
  for (uint64_t at = 0; at < tensor.n_bytes; at += kCopyBytes) {
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    const auto n = static_cast<std::size_t>(std::min<uint64_t>(kCopyBytes, tensor.n_bytes - at));
    if (!mapped.empty()) {
      TRY(sink(mapped.subspan(static_cast<std::size_t>(at), n)));
      continue;
    }
    buffer.resize(n);
    TRY(file.read(tensor, at, buffer));
    TRY(sink(buffer));
  }
  return {};
}

// With a mean of 1: an expert that the text never used has nothing but zeros, and its inputs count alike.
std::vector<float> usable(std::span<const float> importance) {
  double sum = 0;
  for (const float value : importance) sum += value;
  const double scale = sum > 0 ? static_cast<double>(importance.size()) / sum : 0.0;
  std::vector<float> out;
  for (const float value : importance) out.push_back(sum > 0 ? static_cast<float>(value * scale) : 1.0f);
  return out;
}

Result<void> convert(const GgufFile& file, const PlannedTensor& planned, std::span<const float> importance,
                     int n_threads, const CancelToken& cancel, const ByteSink& sink) {
  const TensorInfo& tensor = *planned.from;
  const std::span<const std::byte> mapped = file.data(tensor);
  const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.ne[0]);
  const int64_t n_matrices = tensor.ne[2] * tensor.ne[3];
  const int64_t rows = std::max<int64_t>(1, kPieceValues / tensor.ne[0]);
  const auto n_in = static_cast<std::size_t>(tensor.ne[0]);
  std::vector<std::byte> buffer;
  for (int64_t i = 0; i < n_matrices; ++i) {
    const bool own = importance.size() > n_in;  // of each expert
    const std::vector<float> weights =
        usable(own ? importance.subspan(static_cast<std::size_t>(i) * n_in, n_in) : importance);
    for (int64_t first = 0; first < tensor.ne[1]; first += rows) {
      if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
      const auto n = static_cast<std::size_t>(std::min(rows, tensor.ne[1] - first)) * row_bytes;
      const uint64_t at = static_cast<uint64_t>(i * tensor.ne[1] + first) * row_bytes;
      std::span<const std::byte> piece;
      if (!mapped.empty()) {
        piece = mapped.subspan(static_cast<std::size_t>(at), n);
      } else {
        buffer.resize(n);
        TRY(file.read(tensor, at, buffer));
        piece = buffer;
      }
      TRY_ASSIGN(const std::vector<std::byte> made, convert_rows(tensor, piece, planned.to, weights, n_threads));
      TRY(sink(made));
    }
  }
  return {};
}

}  // namespace

Result<QuantizePlan> plan_quantising(const GgufFile& file, const QuantizeOptions& options,
                                     const ImportanceMatrix* importance) {
  TRY_ASSIGN(RecipeModel model, RecipeModel::read(file));
  model.with_importance = importance != nullptr;
  TRY_ASSIGN(std::vector<Pattern> patterns, compile(options.tensor_types));
  const Places places(file, model);
  QuantizePlan plan;
  plan.metadata = metadata_of(file, model, *options.recipe, importance);
  for (const TensorInfo& tensor : file.tensors()) {
    TRY_ASSIGN(const PlannedTensor planned, plan_tensor(options, patterns, model, places, importance, tensor));
    plan.bytes_before += tensor.n_bytes;
    plan.bytes_after += planned.n_bytes;
    plan.n_weights += static_cast<uint64_t>(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]);
    plan.tensors.push_back(planned);
  }
  for (const Pattern& pattern : patterns)
    if (!pattern.matched)
      return Error(ErrorCode::kInvalid,
                   fmt::format("--tensor-type {} matches no tensor that can be quantised", pattern.text),
                   "--tensor-type");
  return plan;
}

Result<void> write_quantised(const GgufFile& file, const QuantizePlan& plan, const ImportanceMatrix* importance,
                             const std::string& path, int n_threads, const CancelToken& cancel,
                             const QuantizeProgress& progress) {
  GgufWriter writer(plan.metadata);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& planned = plan.tensors[i];
    const TensorInfo& tensor = *planned.from;
    const auto stream = [&, i](const ByteSink& sink) -> Result<void> {
      if (progress) progress(plan.tensors[i], i);
      const PlannedTensor& p = plan.tensors[i];
      const TensorInfo& from = *p.from;
      if (p.to == from.type) {
        TRY(copy(file, from, cancel, sink));
      } else {
        const auto weights = importance ? importance->find(from.name) : std::span<const float>();
        TRY(convert(file, p, weights, n_threads, cancel, sink));
      }
      file.drop_pages(from);
      return {};
    };
    const auto n_dims = static_cast<std::ptrdiff_t>(tensor.n_dims);
    TRY(writer.add_stream(tensor.name, planned.to, {tensor.ne.begin(), tensor.ne.begin() + n_dims}, stream));
  }
  return writer.write(path);
}

}  // namespace hocket
