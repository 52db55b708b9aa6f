#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/interruptible.h"
#include "engine/model_quantize.h"

namespace hocket {
namespace {

struct QuantizeFlags {
  QuantizeJob job;
  bool quiet = false;
};

double gib(uint64_t bytes) {
  return static_cast<double>(bytes) / (1u << 30);
}

std::string line(const QuantizedTensor& tensor) {
  std::string text = fmt::format("{:<56} [{}]  ", tensor.name, fmt::join(tensor.shape, ", "));
  if (tensor.from == tensor.to) return text + fmt::format("{}", tensor.from);
  text += fmt::format("{} → {}  {:.2f} → {:.2f} MiB", tensor.from, tensor.to,
                      static_cast<double>(tensor.bytes_before) / (1 << 20),
                      static_cast<double>(tensor.bytes_after) / (1 << 20));
  return tensor.fallback ? text + "  (rows are no whole blocks of the wanted type)" : text;
}

int quantize(const QuantizeFlags& flags) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto show = [&](const QuantizedTensor& tensor, std::size_t index, std::size_t count) {
    const std::string text = fmt::format("[{:>4}/{}] {}", index + 1, count, line(tensor));
    if (!terminal) return fmt::print(stderr, "{}\n", text);
    fmt::print(stderr, "\r{:<110.110}", text);
    std::fflush(stderr);
  };
  Result<QuantizeReport> report = QuantizeReport();
  {
    const Interruptible work;
    report = quantize_model(flags.job, flags.quiet ? QuantizeListener() : show, work.cancel());
  }
  if (terminal && !flags.quiet && !flags.job.dry_run) fmt::print(stderr, "\r{:<110}\r", "");
  if (!report) return report_failure(report.error());
  if (flags.job.dry_run)
    for (const QuantizedTensor& tensor : report->tensors) fmt::print("{}\n", line(tensor));
  fmt::print("{}: {:.2f} → {:.2f} GiB of weights, {:.2f} bits each\n", flags.job.output, gib(report->bytes_before),
             gib(report->bytes_after),
             8.0 * static_cast<double>(report->bytes_after) / static_cast<double>(report->n_weights));
  return 0;
}

}  // namespace

Command add_quantize(CLI::App& root) {
  auto flags = std::make_shared<QuantizeFlags>();
  QuantizeJob& job = flags->job;
  CLI::App* app = root.add_subcommand("quantize", "write a model file with smaller weights");
  app->add_option("IN", job.input, "the GGUF file, best with weights in F32, F16 or BF16")->required();
  app->add_option("OUT", job.output, "the file to write")->required();
  app->add_option("TYPE", job.recipe, quantize_recipes())->required();
  app->add_option("--imatrix", job.importance, "importance matrix of llama-imatrix: a GGUF or a .dat file");
  app->add_option("--token-embedding-type", job.token_embedding, "type of the token embedding: " + quantize_types());
  app->add_option("--output-tensor-type", job.output_tensor, "type of the head");
  app->add_option("--tensor-type", job.tensor_types,
                  "PATTERN=TYPE: the type of tensors whose name has a match of this regular expression; may be given "
                  "several times, the first match counts");
  app->add_flag("--pure", job.pure, "the recipe's first type for all weights");
  app->add_flag("--allow-requantize", job.allow_requantize, "also weights that are quantised already");
  app->add_flag("--dry-run", job.dry_run, "show what would be written, and how large");
  app->add_option("-t,--threads", job.n_threads, "threads (default: the physical cores)")->check(CLI::Range(1, 1024));
  app->add_flag("-q,--quiet", flags->quiet, "no progress on stderr");
  return {app, [flags] { return quantize(*flags); }};
}

}  // namespace hocket
