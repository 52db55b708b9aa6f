// Writes the seed files of the GGUF fuzzer: gguf_corpus FOLDER
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "weights/gguf_format.h"
#include "weights/gguf_writer.h"

namespace hocket {
namespace {

Metadata small_metadata() {
  Metadata m;
  m.set("general.architecture", std::string("llama"));
  m.set("llama.block_count", int64_t{2});
  m.set("llama.rope.freq_base", 10000.0);
  return m;
}

Metadata every_kind() {
  Metadata m = small_metadata();
  m.set("negative", int64_t{-1});
  m.set("wide", int64_t{1} << 40);
  m.set("unsigned", ~uint64_t{0});
  m.set("double", 1e300);
  m.set("flag", true);
  m.set("split.count", int64_t{1});
  m.set("tokenizer.ggml.tokens", MetadataArray{std::vector<std::string>{"<s>", "", "a"}});
  m.set("tokenizer.ggml.scores", MetadataArray{std::vector<double>{0.0, -1.5, 2.0}});
  m.set("tokenizer.ggml.token_type", MetadataArray{std::vector<int64_t>{3, 1, 1}});
  m.set("longs", MetadataArray{std::vector<int64_t>{-1, int64_t{1} << 40}});
  m.set("doubles", MetadataArray{std::vector<double>{1e300}});
  m.set("pattern", MetadataArray{std::vector<bool>{true, false}});
  return m;
}

Result<void> add_zeros(GgufWriter& writer, const std::string& name, ggml_type type, const std::vector<int64_t>& shape) {
  std::size_t n = ggml_row_size(type, shape[0]);
  for (std::size_t i = 1; i < shape.size(); ++i) n *= static_cast<std::size_t>(shape[i]);
  return writer.add_bytes(name, type, shape, std::vector<std::byte>(n));
}

Result<void> write_corpus(const std::string& folder) {
  TRY(GgufWriter().write(folder + "/empty.gguf"));
  TRY(GgufWriter(every_kind()).write(folder + "/metadata.gguf"));
  GgufWriter small(small_metadata());
  TRY(add_zeros(small, "token_embd.weight", GGML_TYPE_F16, {8, 4}));
  TRY(add_zeros(small, "output_norm.weight", GGML_TYPE_F32, {8}));
  TRY(small.write(folder + "/small.gguf"));
  GgufWriter types;
  for (uint32_t id = 0; id < GGML_TYPE_COUNT; ++id)
    if (is_tensor_type(id)) {
      const auto type = static_cast<ggml_type>(id);
      TRY(add_zeros(types, ggml_type_name(type), type, {ggml_blck_size(type), 2}));
    }
  TRY(types.write(folder + "/types.gguf"));
  Metadata aligned = small_metadata();
  aligned.set("general.alignment", int64_t{1});
  GgufWriter unaligned(aligned);
  TRY(add_zeros(unaligned, "a", GGML_TYPE_I8, {3, 1, 1, 1}));
  TRY(add_zeros(unaligned, std::string(256, 'n'), GGML_TYPE_F32, {3}));
  return unaligned.write(folder + "/aligned.gguf");
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gguf_corpus FOLDER\n");
    return 2;
  }
  const auto written = hocket::write_corpus(argv[1]);
  if (!written.ok()) std::fprintf(stderr, "gguf_corpus: %s\n", written.error().message.c_str());
  return written.ok() ? 0 : 1;
}
