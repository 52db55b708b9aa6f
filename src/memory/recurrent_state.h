// memory/recurrent_state.h: states of recurrent layers: short convolutions, gated delta nets, KDA.
//
// Each layer has a table of rows; a row is the state of some sequence after some token and is never written again while
// anything refers to it. A step reads one row of each of its sequences and writes new ones, so a failed step has
// changed nothing, forks share rows, and a checkpoint is a reference. Row 0 is all zeros: the state before the first
// token.
//
// A sequence can be cut at its length, at 0, at checkpoints, and at each token of its last step when that had at most
// n_rollback tokens.
//
// Owns     per layer conv [n_conv, n_rows] and state [n_state, n_rows], F32.
// Threads  one user at a time.
// Errors   create(): kOutOfMemory.
// Cost     host work O(sequences); bytes are (1 + n_seqs · (n_rollback + 1) + n_checkpoints) rows, of which the system
//          gives those that were used (the lowest are used first).
#pragma once

#include <ggml-backend.h>

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "compute/graph.h"
#include "memory/layer_memory.h"
#include "memory/sequence_memory.h"

namespace hocket {

struct RecurrentOptions {
  std::size_t n_seqs = 1;
  std::size_t n_rollback = 1;     // ≥ 1: tokens of a step that can be taken back one by one
  std::size_t n_checkpoints = 0;  // kept by checkpoint(), all sequences together; the oldest goes first
};

// One sequence's part of a step: n_tokens tokens next to each other in the batch.
struct Lane {
  SeqId seq = 0;
  std::size_t first_position = 0;
  std::size_t n_tokens = 0;
  uint32_t row_in = 0;
  std::vector<uint32_t> rows_out;  // [s]: the state s tokens before the end of the step
};

class RecurrentState {
 public:
  static Result<std::unique_ptr<RecurrentState>> create(std::vector<RecurrentLayerSpec> layers,
                                                        const RecurrentOptions& options, ggml_backend_dev_t device);
  static std::unique_ptr<RecurrentState> without_data(std::vector<RecurrentLayerSpec> layers,
                                                      const RecurrentOptions& options, ggml_backend_dev_t device);
  static std::size_t bytes(const std::vector<RecurrentLayerSpec>& layers, const RecurrentOptions& options);
  ~RecurrentState();
  RecurrentState(const RecurrentState&) = delete;
  RecurrentState& operator=(const RecurrentState&) = delete;

  bool any() const { return any_; }                                       // whether some layer keeps a state
  Tensor conv(std::size_t layer) const { return layers_[layer].conv; }    // [n_conv, n_rows] or nullptr
  Tensor state(std::size_t layer) const { return layers_[layer].state; }  // [n_state, n_rows] or nullptr
  std::size_t bytes_per_sequence() const;
  std::size_t n_rollback() const { return options_.n_rollback; }

  // States that a step writes for a sequence with so many tokens in it.
  std::size_t n_written(std::size_t n_tokens) const { return n_tokens <= options_.n_rollback ? n_tokens : 1; }
  // Fills the rows of each lane. Forgets what the last step of these sequences could take back.
  void place(std::span<Lane> lanes);
  void commit(std::span<const Lane> lanes);

  bool can_truncate(SeqId seq, std::size_t n_tokens) const;
  void truncate(SeqId seq, std::size_t n_tokens);  // only where can_truncate()
  void fork(SeqId source, SeqId target);
  // Makes the present length one that truncate() can return to.
  void checkpoint(SeqId seq);

  // The present state of a sequence: bytes_per_sequence() bytes.
  void read(SeqId seq, std::span<std::byte> out) const;
  void write(SeqId seq, std::size_t length, std::span<const std::byte> bytes);
  // Equal for tables that can read each other's states.
  uint64_t layout() const;

 private:
  struct Layer {
    Tensor conv = nullptr;
    Tensor state = nullptr;
  };
  // A state that a sequence can return to.
  struct Mark {
    std::size_t length = 0;
    uint32_t row = 0;
    bool kept = false;  // a checkpoint, not only of the last step
    uint64_t age = 0;   // of checkpoints: larger is newer
  };
  struct Sequence {
    Mark now;
    std::vector<Mark> marks;
  };

  RecurrentState(std::vector<RecurrentLayerSpec> layers, const RecurrentOptions& options);
  Sequence& at(SeqId seq) { return seqs_[static_cast<std::size_t>(seq)]; }
  const Sequence& at(SeqId seq) const { return seqs_[static_cast<std::size_t>(seq)]; }
  std::vector<Tensor> tensors() const;
  uint32_t free_row(std::span<const uint8_t> taken) const;
  std::vector<uint8_t> taken_rows() const;
  void drop_oldest_checkpoints();

  RecurrentOptions options_;
  std::size_t n_rows_;
  bool any_ = false;
  std::vector<Layer> layers_;
  std::vector<Sequence> seqs_;
  uint64_t clock_ = 0;
  ggml_context* context_ = nullptr;
  ggml_backend_buffer_t buffer_ = nullptr;
};

}  // namespace hocket
