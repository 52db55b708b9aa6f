// weights/gguf_writer.h: writes GGUF version 3 files: quantising, benches, tests.
//
//   GgufWriter writer(metadata);
//   TRY(writer.add("token_embd.weight", GGML_TYPE_Q6_K, {2048, 151936}, [&] { return make_rows(); }));
//   TRY(writer.write("model.gguf"));
//
// Metadata types are those that readers expect: integers become u32, or i32 when negative, wider only when they must;
// floats become f32, the nearest, or f64 beyond its range. The key general.alignment sets the alignment (default 32).
//
// Owns     metadata and tensor descriptions; tensor data only when added as bytes.
// Threads  one user.
// Errors   kInvalid naming the key or tensor; kIo; what a producer returns. write() leaves no partial file behind.
// Cost     one tensor in memory at a time with a TensorMaker, none with a TensorStream.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"
#include "weights/metadata.h"

namespace hocket {

// Takes the next bytes of a file.
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;

class GgufWriter {
 public:
  // Called once per write(); the result has exactly the bytes of the tensor.
  using TensorMaker = std::function<Result<std::vector<std::byte>>()>;
  // Puts exactly the bytes of the tensor into the sink, in pieces of any size.
  using TensorStream = std::function<Result<void>(const ByteSink& sink)>;

  explicit GgufWriter(Metadata metadata = {}) : metadata_(std::move(metadata)) {}

  // `shape` in ggml order, one to four sizes.
  Result<void> add(std::string name, ggml_type type, const std::vector<int64_t>& shape, TensorMaker make);
  Result<void> add_stream(std::string name, ggml_type type, const std::vector<int64_t>& shape, TensorStream stream);
  Result<void> add_bytes(std::string name, ggml_type type, const std::vector<int64_t>& shape,
                         std::vector<std::byte> data);

  // Writes beside `path` and renames at the end.
  Result<void> write(const std::string& path) const;
  // PREFIX-00001-of-0000N.gguf and so on, tensors divided evenly by number; returns the paths.
  Result<std::vector<std::string>> write_shards(const std::string& prefix, std::size_t n_shards) const;
  Result<std::vector<std::byte>> image() const;

 private:
  struct Item {
    TensorInfo info;
    TensorStream stream;
  };

  Result<std::size_t> alignment() const;
  Result<void> write_items(const Metadata& metadata, std::span<const Item> items, const ByteSink& sink) const;

  Metadata metadata_;
  std::vector<Item> items_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace hocket
