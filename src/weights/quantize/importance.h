// weights/quantize/importance.h: how much each input of each weight matters, measured on a text by another program.
//
// Read from llama-imatrix's files: GGUF (`general.type` "imatrix", tensors NAME.in_sum2 and NAME.counts) and the older
// .dat. Only the ratios of a matrix's values matter.
//
// Owns     the values.
// Threads  const after open().
// Errors   kNotFound, kIo; kInvalid with param "--imatrix" for files that are no such thing, values below zero or not
//          finite.
// Cost     4 bytes an input of each matrix; files to 2 GiB.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

class ImportanceMatrix {
 public:
  static Result<ImportanceMatrix> open(const std::string& path);

  // [n_in] or [n_in, n_expert]; empty when the file has none for this tensor.
  std::span<const float> find(const std::string& tensor) const;
  std::size_t n_entries() const { return entries_.size(); }
  int64_t n_chunks() const { return n_chunks_; }  // of the text; 0: the file does not say

 private:
  Result<void> read_gguf(const GgufFile& file);
  Result<void> read_legacy(const std::string& path);
  Result<void> add(const std::string& tensor, std::vector<float> values);

  std::map<std::string, std::vector<float>, std::less<>> entries_;
  int64_t n_chunks_ = 0;
};

}  // namespace hocket
