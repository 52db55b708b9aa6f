// One sampling step at the vocabulary size of a large model, free and constrained by a JSON schema.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "runtime/sampling.h"
#include "tokenizer/grammar.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace hocket {
namespace {

constexpr std::size_t kVocabulary = 151'936;

// All single bytes, then words of letters, quotes and digits: about the mix of a real vocabulary.
std::unique_ptr<Tokenizer> large_tokenizer() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    std::string text;
    static char32_t next = 256;
    append_utf8(text, printable ? static_cast<char32_t>(byte) : next++);
    tokens.push_back(text);
  }
  const std::string letters = "etaoinshrdlucmfwypvbgkjqxz0123456789,.:\"{}[]";
  uint64_t state = 1;
  while (tokens.size() + 1 < kVocabulary) {
    std::string text = tokens.size() % 2 ? "Ġ" : "";
    for (std::size_t i = 0; i < 2 + tokens.size() % 6; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::size_t r = static_cast<std::size_t>(state >> 40);
      text += letters[r % 7 == 0 ? r / 7 % letters.size() : r / 7 % 26];
    }
    tokens.push_back(text + "#" + std::to_string(tokens.size()));
  }
  tokens.push_back("<|end|>");
  std::vector<int64_t> types(tokens.size(), 1);
  types.back() = 3;
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.eos_token_id", static_cast<int64_t>(tokens.size() - 1));
  metadata.set("tokenizer.ggml.tokens", MetadataArray{std::move(tokens)});
  metadata.set("tokenizer.ggml.token_type", MetadataArray{std::move(types)});
  metadata.set("tokenizer.ggml.merges", MetadataArray{std::vector<std::string>{}});
  auto loaded = Tokenizer::load(metadata);
  if (!loaded) {
    fprintf(stderr, "%s\n", loaded.error().message.c_str());
    exit(1);
  }
  return std::move(loaded).value();
}

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> instance = large_tokenizer();
  return *instance;
}

std::vector<float> row() {
  std::vector<float> logits(tokenizer().size());
  uint64_t state = 7;
  for (float& l : logits) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    l = -8 + 6 * std::sqrt(static_cast<float>(state >> 40) / static_cast<float>(1 << 24));
  }
  for (int i = 0; i < 50; ++i) logits[static_cast<std::size_t>(i) * 2999] += 8 - 0.1f * static_cast<float>(i);
  return logits;
}

void step(benchmark::State& state, SamplingParams params, TokenConstraint* constraint) {
  params.seed = 1;
  auto sampler = Sampler::create(params, tokenizer(), tokenizer().size(), 4096);
  const std::vector<float> logits = row();
  for (auto _ : state) {
    auto id = (*sampler)->sample(logits, constraint);
    benchmark::DoNotOptimize(id);
  }
}

void free_default(benchmark::State& state) {
  step(state, {}, nullptr);
}
void free_greedy(benchmark::State& state) {
  SamplingParams params;
  params.temperature = 0;
  step(state, params, nullptr);
}
void free_top_p_only(benchmark::State& state) {
  SamplingParams params;
  params.top_k = 0;
  step(state, params, nullptr);
}

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name","n"]})";

// A whole constrained answer, as time a token: masks change with every token.
void constrained_answer(benchmark::State& state) {
  auto compiler = GrammarCompiler::create(tokenizer(), tokenizer().size());
  auto grammar = (*compiler)->json_schema(kSchema, "schema");
  if (!grammar) return state.SkipWithError(grammar.error().message.c_str());
  SamplingParams params;
  params.seed = 1;
  auto sampler = Sampler::create(params, tokenizer(), tokenizer().size(), 4096);
  const std::vector<float> logits = row();
  std::size_t n_tokens = 0;
  for (auto _ : state) {
    const auto constraint = (*grammar)->clone();
    for (int i = 0; i < 64 && !constraint->complete(); ++i, ++n_tokens) {
      auto id = (*sampler)->sample(logits, constraint.get());
      if (!id || !constraint->accept(*id)) return state.SkipWithError("the answer broke off");
    }
  }
  state.counters["s/token"] =
      benchmark::Counter(static_cast<double>(n_tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void compile_schema(benchmark::State& state) {
  GrammarLimits limits;
  limits.max_cache_bytes = 0;
  auto compiler = GrammarCompiler::create(tokenizer(), tokenizer().size(), limits);
  for (auto _ : state) {
    auto grammar = (*compiler)->json_schema(kSchema, "schema");
    benchmark::DoNotOptimize(grammar);
  }
}

BENCHMARK(free_greedy);
BENCHMARK(free_default);
BENCHMARK(free_top_p_only);
BENCHMARK(constrained_answer);
BENCHMARK(compile_schema)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hocket

BENCHMARK_MAIN();
