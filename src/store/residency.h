// store/residency.h: which loaded networks stay in memory.
//
//   TRY_ASSIGN(const auto vae, residency.borrow<VaeDecoder>("vae decoder " + path, [&] {
//     return VaeDecoder::load(file, compute);
//   }));
//
// kStrict: a network goes as soon as nobody borrows it, and is loaded only when no other is left: at most one is in
// memory. kKeep: what was loaded once stays.
//
// Owns     with kKeep the networks; what is borrowed lives as long as its borrower.
// Threads  any; one load at a time.
// Errors   those of the load; kInternal when a network is to be loaded while another is borrowed (kStrict).
// Source   ace-step.md §13.3.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace hocket {

enum class ResidencyPolicy { kStrict, kKeep };

class Residency {
 public:
  explicit Residency(ResidencyPolicy policy) : policy_(policy) {}
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // `key` says what is loaded and all that it depends on; one key always has the same type.
  template <class T, class Load>
  Result<std::shared_ptr<const T>> borrow(const std::string& key, const Load& load) {
    const LoadAny load_any = [&]() -> Result<std::shared_ptr<const void>> {
      TRY_ASSIGN(std::shared_ptr<const T> loaded, load());
      return std::shared_ptr<const void>(std::move(loaded));
    };
    TRY_ASSIGN(const std::shared_ptr<const void> any, borrow_any(key, load_any));
    return std::static_pointer_cast<const T>(any);
  }

  ResidencyPolicy policy() const { return policy_; }
  std::size_t n_resident() const;

 private:
  using LoadAny = std::function<Result<std::shared_ptr<const void>>()>;
  Result<std::shared_ptr<const void>> borrow_any(const std::string& key, const LoadAny& load);

  const ResidencyPolicy policy_;
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const void>> known_;
  std::map<std::string, std::shared_ptr<const void>> kept_;
};

}  // namespace hocket
