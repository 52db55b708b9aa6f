#include "memory/model_memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace hocket {

namespace {

std::vector<KvLayerSpec> kv_of(const std::vector<LayerMemory>& layers) {
  std::vector<KvLayerSpec> specs;
  for (const LayerMemory& layer : layers) specs.push_back(layer.kv);
  return specs;
}

std::vector<RecurrentLayerSpec> recurrent_of(const std::vector<LayerMemory>& layers) {
  std::vector<RecurrentLayerSpec> specs;
  for (const LayerMemory& layer : layers) specs.push_back(layer.recurrent);
  return specs;
}

// A snapshot is this header, the KV cache's part, and the recurrent state.
struct SnapshotHeader {
  char magic[8];
  uint64_t recurrent_layout;
  uint64_t n_bytes;  // all of the snapshot
  uint64_t n_kv_bytes;
  uint64_t length;
};
constexpr char kMagic[8] = {'H', 'K', 'M', 'E', 'M', 'R', 'Y', '1'};

}  // namespace

Result<std::unique_ptr<ModelMemory>> ModelMemory::create(const std::vector<LayerMemory>& layers,
                                                         const ModelMemoryOptions& options, ggml_backend_dev_t device) {
  std::unique_ptr<ModelMemory> memory(new ModelMemory());
  TRY_ASSIGN(memory->kv_, KvCache::create(kv_of(layers), options.kv, device));
  TRY_ASSIGN(memory->recurrent_, RecurrentState::create(recurrent_of(layers), options.recurrent, device));
  memory->recurrent_bytes_ = RecurrentState::bytes(recurrent_of(layers), options.recurrent);
  return memory;
}

std::unique_ptr<ModelMemory> ModelMemory::without_data(const std::vector<LayerMemory>& layers,
                                                       const ModelMemoryOptions& options, ggml_backend_dev_t device) {
  std::unique_ptr<ModelMemory> memory(new ModelMemory());
  memory->kv_ = KvCache::without_data(kv_of(layers), options.kv, device);
  memory->recurrent_ = RecurrentState::without_data(recurrent_of(layers), options.recurrent, device);
  return memory;
}

std::size_t ModelMemory::bytes(const std::vector<LayerMemory>& layers, const ModelMemoryOptions& options) {
  return KvCache::bytes(kv_of(layers), options.kv) + RecurrentState::bytes(recurrent_of(layers), options.recurrent);
}

// ---- a step

Result<StepPlacement> ModelMemory::place(std::span<const SeqId> seqs) {
  StepPlacement placement;
  TRY_ASSIGN(placement.kv, kv_->place(seqs));
  if (!recurrent_->any()) return placement;
  for (std::size_t i = 0; i < seqs.size(); ++i) {
    if (i == 0 || seqs[i] != seqs[i - 1]) placement.lanes.push_back({seqs[i], kv_->length(seqs[i]), 0, 0, {}});
    ++placement.lanes.back().n_tokens;
  }
  recurrent_->place(placement.lanes);
  return placement;
}

void ModelMemory::commit(const StepPlacement& placement) {
  kv_->commit(placement.kv);
  recurrent_->commit(placement.lanes);
}

// ---- SequenceMemory

MemoryTraits ModelMemory::traits() const {
  MemoryTraits traits;
  traits.cuts_anywhere = !recurrent_->any();
  traits.n_rollback = recurrent_->any() ? recurrent_->n_rollback() : 0;
  traits.n_window = kv_->shortest_window();
  traits.bytes_per_token = kv_->bytes_per_token();
  traits.bytes_per_sequence = recurrent_->bytes_per_sequence();
  traits.device_bytes = kv_->device_bytes() + recurrent_bytes_;
  return traits;
}

bool ModelMemory::can_truncate(SeqId seq, std::size_t n_tokens) const {
  return kv_->can_truncate(seq, n_tokens) && recurrent_->can_truncate(seq, n_tokens);
}

Result<void> ModelMemory::truncate(SeqId seq, std::size_t n_tokens) {
  if (kv_->valid(seq) && !recurrent_->can_truncate(seq, n_tokens))
    return Error(ErrorCode::kInvalid, "this model's recurrent state has no checkpoint there", "seq");
  TRY(kv_->truncate(seq, n_tokens));
  recurrent_->truncate(seq, n_tokens);
  return {};
}

void ModelMemory::clear(SeqId seq) {
  kv_->clear(seq);
  recurrent_->truncate(seq, 0);
}

Result<void> ModelMemory::fork(SeqId source, SeqId target) {
  TRY(kv_->fork(source, target));
  recurrent_->fork(source, target);
  return {};
}

Result<std::vector<std::byte>> ModelMemory::snapshot(SeqId seq) const {
  TRY_ASSIGN(const std::vector<std::byte> kv, kv_->snapshot(seq));
  const std::size_t n_recurrent = recurrent_->bytes_per_sequence();
  SnapshotHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.recurrent_layout = recurrent_->layout();
  header.n_bytes = sizeof header + kv.size() + n_recurrent;
  header.n_kv_bytes = kv.size();
  header.length = length(seq);
  std::vector<std::byte> out(header.n_bytes);
  std::memcpy(out.data(), &header, sizeof header);
  std::copy(kv.begin(), kv.end(), out.begin() + sizeof header);
  recurrent_->read(seq, std::span(out).last(n_recurrent));
  return out;
}

Result<void> ModelMemory::restore(SeqId seq, std::span<const std::byte> snapshot) {
  const auto damaged = [](const char* why) {
    return Error(ErrorCode::kInvalid, std::string("the snapshot ") + why, "snapshot");
  };
  SnapshotHeader header;
  if (snapshot.size() < sizeof header) return damaged("has no valid header");
  std::memcpy(&header, snapshot.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return damaged("has no valid header");
  if (header.n_bytes != snapshot.size()) return damaged("is incomplete");
  if (header.recurrent_layout != recurrent_->layout()) return damaged("belongs to another model");
  const std::size_t n_recurrent = recurrent_->bytes_per_sequence();
  const std::size_t n_rest = snapshot.size() - sizeof header;
  if (n_rest < n_recurrent || header.n_kv_bytes != n_rest - n_recurrent) return damaged("has the wrong size");
  const auto kv = snapshot.subspan(sizeof header, header.n_kv_bytes);
  if (KvCache::snapshot_length(kv) != header.length) return damaged("holds states of different lengths");
  TRY(kv_->restore(seq, kv));
  recurrent_->write(seq, header.length, snapshot.last(n_recurrent));
  return {};
}

}  // namespace hocket
