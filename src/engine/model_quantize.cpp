#include "engine/model_quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>

#include "compute/device.h"
#include "weights/quantize/quantize.h"

namespace hocket {
namespace {

Result<ggml_type> type_of(const std::string& name, const char* flag) {
  const auto type = parse_weight_type(name);
  if (!type)
    return Error(ErrorCode::kInvalid, fmt::format("{}: no type '{}'; there are {}", flag, name, quantize_types()),
                 flag);
  return *type;
}

Result<QuantizeOptions> options_of(const QuantizeJob& job) {
  QuantizeOptions options;
  options.recipe = find_recipe(job.recipe);
  if (!options.recipe)
    return Error(ErrorCode::kInvalid, fmt::format("no type '{}'; there are {}", job.recipe, quantize_recipes()),
                 "--type");
  if (!job.token_embedding.empty()) {
    TRY_ASSIGN(options.token_embedding, type_of(job.token_embedding, "--token-embedding-type"));
  }
  if (!job.output_tensor.empty()) {
    TRY_ASSIGN(options.output, type_of(job.output_tensor, "--output-tensor-type"));
  }
  for (const std::string& text : job.tensor_types) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return Error(ErrorCode::kInvalid, fmt::format("--tensor-type '{}' is no PATTERN=TYPE", text), "--tensor-type");
    TRY_ASSIGN(const ggml_type type, type_of(text.substr(equals + 1), "--tensor-type"));
    options.tensor_types.emplace_back(text.substr(0, equals), type);
  }
  options.pure = job.pure;
  options.allow_requantize = job.allow_requantize;
  return options;
}

QuantizedTensor describe(const PlannedTensor& planned) {
  const TensorInfo& tensor = *planned.from;
  QuantizedTensor out{
      tensor.name,     ggml_type_name(tensor.type), ggml_type_name(planned.to), {}, tensor.n_bytes, planned.n_bytes,
      planned.fallback};
  out.shape.assign(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims);
  return out;
}

}  // namespace

Result<QuantizeReport> quantize_model(const QuantizeJob& job, const QuantizeListener& listener,
                                      const CancelToken& cancel) {
  TRY_ASSIGN(const QuantizeOptions options, options_of(job));
  TRY_ASSIGN(const auto file, GgufFile::open(job.input));
  std::error_code ignored;
  if (std::filesystem::equivalent(job.input, job.output, ignored))
    return Error(ErrorCode::kInvalid, fmt::format("{} would be written over itself", job.input), "--output");
  std::optional<ImportanceMatrix> importance;
  if (!job.importance.empty()) {
    TRY_ASSIGN(importance, ImportanceMatrix::open(job.importance));
  }
  const ImportanceMatrix* matrix = importance ? &*importance : nullptr;
  TRY_ASSIGN(const QuantizePlan plan, plan_quantising(*file, options, matrix));
  QuantizeReport report;
  report.bytes_before = plan.bytes_before;
  report.bytes_after = plan.bytes_after;
  report.n_weights = plan.n_weights;
  for (const PlannedTensor& planned : plan.tensors) report.tensors.push_back(describe(planned));
  if (job.dry_run) return report;
  const auto progress = [&](const PlannedTensor&, std::size_t index) {
    if (listener) listener(report.tensors[index], index, report.tensors.size());
  };
  const int n_threads = job.n_threads > 0 ? job.n_threads : physical_cores();
  TRY(write_quantised(*file, plan, matrix, job.output, n_threads, cancel, progress));
  return report;
}

std::string quantize_recipes() {
  return fmt::format("{}", fmt::join(recipe_names(), ", "));
}

std::string quantize_types() {
  return fmt::format("{}", fmt::join(weight_type_names(), ", "));
}

}  // namespace hocket
