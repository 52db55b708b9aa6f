// tokenizer_bench: encoding and decoding speed in bytes of text a second, on the vocabularies of the llama.cpp source
// archive, or on the model files given after the benchmark flags.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

constexpr std::size_t kTextBytes = 1u << 20;

// Words of the lengths and frequencies of English (Zipf), drawn from a fixed seed: some common, many rare.
std::string prose() {
  std::mt19937 random(1);
  const char* letters = "etaoinshrdlcumwfgypbvkjxqz";
  std::vector<std::string> words;
  for (int i = 0; i < 20'000; ++i) {
    std::string word;
    for (std::size_t n = 2 + random() % 9; n > 0; --n) word += letters[random() % (1 + random() % 26)];
    words.push_back(word);
  }
  std::string text;
  while (text.size() < kTextBytes) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    text += words[static_cast<std::size_t>(static_cast<double>(words.size()) * u * u * u)];
    text += random() % 12 == 0 ? ".\n" : random() % 9 == 0 ? ", " : " ";
  }
  return text;
}

std::string code() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < kTextBytes) {
    const auto indent = std::string(4 * (random() % 4), ' ');
    const unsigned name = static_cast<unsigned>(random() % 3000), number = static_cast<unsigned>(random() % 100'000);
    switch (random() % 4) {
      case 0:
        text += fmt::format("{}if (value_{} != nullptr && count < {}) {{\n", indent, name, number);
        break;
      case 1:
        text += fmt::format("{}result[{}] = transform(item{}, \"key_{}\");\n", indent, number, name, name);
        break;
      case 2:
        text += fmt::format("{}// TheName{} follows from equation {}.\n", indent, name, number);
        break;
      default:
        text += indent + "}\n\n";
        break;
    }
  }
  return text;
}

std::string long_word() {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 100'000) text += static_cast<char>('a' + random() % 26);
  return text;
}

struct Text {
  const char* name;
  std::string text;
};

std::vector<Text> texts() {
  std::string cjk;
  std::mt19937 random(4);
  while (cjk.size() < kTextBytes) {
    const auto c = static_cast<unsigned>(0x4E00 + random() % 3000);
    cjk += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
            static_cast<char>(0x80 | (c & 0x3F))};
  }
  return {{"prose", prose()},
          {"code", code()},
          {"chinese", cjk},
          {"word_100KB", long_word()},
          {"spaces_1MB", std::string(kTextBytes, ' ')},
          {"newlines_1MB", std::string(kTextBytes, '\n')},
          {"one_letter_1MB", std::string(kTextBytes, 'a')}};
}

void encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  std::size_t n_tokens = 0;
  for (auto _ : state) {
    const auto ids = tokenizer.encode(text, {false, true});
    if (!ids) return state.SkipWithError(ids.error().message.c_str());
    n_tokens = ids->size();
    benchmark::DoNotOptimize(ids->data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["tokens"] = static_cast<double>(n_tokens);
}

void decode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text, {false, true});
  if (!ids) return state.SkipWithError(ids.error().message.c_str());
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(*ids, true).size());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

void load(benchmark::State& state, const Metadata& metadata) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(metadata).ok());
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> files(argv + 1, argv + argc);
  if (files.empty()) {
    for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "llama-spm", "gemma-4"})
      files.push_back(fmt::format("{}/models/ggml-vocab-{}.gguf", HOCKET_LLAMA_SOURCE, name));
  }
  const std::vector<Text> all = texts();
  std::vector<std::unique_ptr<GgufFile>> opened;
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& path : files) {
    auto file = GgufFile::open(path);
    if (!file) return fmt::print(stderr, "{}: {}\n", path, file.error().message), 1;
    auto tokenizer = Tokenizer::load((*file)->metadata());
    if (!tokenizer) return fmt::print(stderr, "{}: {}\n", path, tokenizer.error().message), 1;
    opened.push_back(std::move(file).value());
    tokenizers.push_back(std::move(tokenizer).value());
    const std::string name = path.substr(path.rfind('/') + 1);
    const Tokenizer* encoder = tokenizers.back().get();
    const Metadata* metadata = &opened.back()->metadata();
    for (const Text& text : all) {
      benchmark::RegisterBenchmark(fmt::format("encode/{}/{}", name, text.name).c_str(), [=, &text](
                                                                                             benchmark::State& state) {
        encode(state, *encoder, text.text);
      })->Unit(benchmark::kMillisecond);
    }
    benchmark::RegisterBenchmark(fmt::format("decode/{}/prose", name).c_str(), [=, &all](benchmark::State& state) {
      decode(state, *encoder, all[0].text);
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(fmt::format("load/{}", name).c_str(), [=](benchmark::State& state) {
      load(state, *metadata);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  return hocket::run(argc, argv);
}
