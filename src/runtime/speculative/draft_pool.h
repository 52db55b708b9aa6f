// runtime/speculative/draft_pool.h: a source of drafts for each lane, and what each was used for last.
//
// Owns     the sources. A DraftLease is one in use and returns it at its end.
// Threads  one user at a time.
// Errors   lease(): those of DraftSource::begin().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/speculative/draft_source.h"

namespace hocket {

class DraftLease {
 public:
  DraftLease() = default;
  DraftLease(DraftSource& source, bool& in_use) : source_(&source), in_use_(&in_use) { in_use = true; }
  DraftLease(DraftLease&& other) noexcept
      : source_(std::exchange(other.source_, nullptr)), in_use_(std::exchange(other.in_use_, nullptr)) {}
  DraftLease& operator=(DraftLease&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(in_use_, other.in_use_);
    return *this;
  }
  ~DraftLease() {
    if (in_use_) *in_use_ = false;
  }
  DraftSource* get() const { return source_; }

 private:
  DraftSource* source_ = nullptr;
  bool* in_use_ = nullptr;
};

class DraftPool {
 public:
  DraftPool() = default;
  explicit DraftPool(std::vector<std::unique_ptr<DraftSource>> sources);

  // A source that has begun this prompt, of which the model needs no steps for the first n_cached tokens: the one whose
  // last prompt of the same tenant has most in common with it. Empty when all are in use.
  Result<DraftLease> lease(std::span<const TokenId> prompt, const std::string& tenant, std::size_t n_cached);

 private:
  struct Slot {
    std::unique_ptr<DraftSource> source;
    std::unique_ptr<bool> in_use = std::make_unique<bool>(false);
    std::string tenant;
    std::vector<TokenId> prompt;
  };
  std::vector<Slot> slots_;
};

}  // namespace hocket
