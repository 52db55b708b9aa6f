// music/dit/adapter.h: LoRA and LoKr adapters, merged into the weights of a DiT while they are loaded.
//
// An AdaptedWeights is the source of a network's weights in which some tensors are no longer those of the file.
//
// Owns     the open adapter file; the base file is shared.
// Threads  find() by one user; read() from any thread.
// Errors   open(): those of the files; kInvalid ("model mismatch") when no module fits, with how many were left out.
//          Single modules that do not fit are left out with a warning.
// Cost     reading a merged tensor: out · in · rank multiply-adds in double precision.
// Source   ace-step.md §3.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "weights/safetensors.h"
#include "weights/weight_source.h"

namespace hocket {

class AdaptedWeights final : public FileWeights {
 public:
  // `path`: a .safetensors file, or a folder with adapter_model.safetensors. `scale` multiplies the adapter's effect.
  static Result<std::shared_ptr<AdaptedWeights>> open(std::shared_ptr<const GgufFile> base, const std::string& path,
                                                      float scale);

  std::span<const std::byte> mapped(const TensorInfo& tensor) const override;
  Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const override;

  std::size_t n_merged() const { return modules_.size(); }
  std::size_t n_skipped() const { return n_skipped_; }

 private:
  // What changes one tensor: names of the adapter's tensors, "" where there is none.
  struct Module {
    bool lokr = false;
    std::string a, b;                // LoRA
    std::string w1, w2, w2_a, w2_b;  // LoKr
    std::string dora;
    double factor = 1;  // alpha / rank
  };

  AdaptedWeights(std::shared_ptr<const GgufFile> base, float scale) : FileWeights(base), base_(base), scale_(scale) {}
  Result<void> find_lora(const std::string& config_folder);
  Result<void> find_lokr();
  // Why a module cannot be merged into the tensor, or "".
  std::string misfit(const Module& module, const TensorInfo* tensor) const;
  void add(const std::string& tensor, Module module);
  Result<double> scalar(const std::string& name) const;
  // delta[out][in] of a module, already rounded.
  Result<std::vector<float>> delta(const Module& module, int64_t n_in, int64_t n_out) const;

  std::shared_ptr<const GgufFile> base_;
  std::unique_ptr<SafetensorsFile> file_;
  float scale_;
  std::map<std::string, Module, std::less<>> modules_;  // by tensor of the base
  std::size_t n_skipped_ = 0;
};

}  // namespace hocket
