// weights/safetensors.h: reads safetensors files within strict bounds.
//
// A file is: u64 length, a JSON header of that length (name → dtype, shape, data_offsets; texts under __metadata__),
// the data. Offsets and sizes are checked before anything is allocated from them.
//
// Owns     the descriptor; data stay in the file.
// Threads  const after open(); read() from any thread.
// Errors   kNotFound, kIo; kBadModel naming the tensor; kUnsupported from read() for types other than F32, F16, BF16.
// Source   the format's page in the safetensors repository.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/model_file.h"

namespace hocket {

struct SafeTensor {
  std::string dtype;           // "F32", "BF16", …
  std::vector<int64_t> shape;  // slowest first
  uint64_t offset_bytes = 0;   // absolute
  uint64_t n_bytes = 0;
  uint64_t n_elements() const;
};

class SafetensorsFile {
 public:
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path);

  const std::map<std::string, SafeTensor, std::less<>>& tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  // "" when there is no such text.
  std::string metadata(std::string_view key) const;
  static bool readable(const SafeTensor& tensor);  // of a type that read() takes
  Result<std::vector<float>> read(const SafeTensor& tensor) const;

 private:
  SafetensorsFile() = default;

  std::unique_ptr<ModelFile> file_;
  std::map<std::string, SafeTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace hocket
