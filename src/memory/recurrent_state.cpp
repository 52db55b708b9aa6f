#include "memory/recurrent_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace hocket {

namespace {

constexpr uint32_t kZeroRow = 0;

std::size_t rows_of(const RecurrentOptions& options) {
  return 1 + options.n_seqs * (options.n_rollback + 1) + options.n_checkpoints;
}

}  // namespace

RecurrentState::RecurrentState(std::vector<RecurrentLayerSpec> layers, const RecurrentOptions& options)
    : options_(options), n_rows_(rows_of(options)), seqs_(options.n_seqs) {
  CHECK(options.n_rollback >= 1);
  ggml_init_params params{};
  params.mem_size = ggml_tensor_overhead() * (2 * layers.size() + 1);
  params.no_alloc = true;
  context_ = ggml_init(params);
  const auto table = [&](int64_t width) -> Tensor {
    return width == 0 ? nullptr : ggml_new_tensor_2d(context_, GGML_TYPE_F32, width, static_cast<int64_t>(n_rows_));
  };
  for (const RecurrentLayerSpec& spec : layers) {
    layers_.push_back({table(spec.n_conv), table(spec.n_state)});
    any_ = any_ || spec.any();
  }
}

RecurrentState::~RecurrentState() {
  if (buffer_) ggml_backend_buffer_free(buffer_);
  ggml_free(context_);
}

std::size_t RecurrentState::bytes(const std::vector<RecurrentLayerSpec>& layers, const RecurrentOptions& options) {
  std::size_t floats = 0;
  for (const RecurrentLayerSpec& spec : layers) floats += static_cast<std::size_t>(spec.n_conv + spec.n_state);
  return floats * sizeof(float) * rows_of(options);
}

Result<std::unique_ptr<RecurrentState>> RecurrentState::create(std::vector<RecurrentLayerSpec> layers,
                                                               const RecurrentOptions& options,
                                                               ggml_backend_dev_t device) {
  const std::size_t n_bytes = bytes(layers, options);
  std::unique_ptr<RecurrentState> table(new RecurrentState(std::move(layers), options));
  if (!table->any_) return table;
  table->buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(table->context_, ggml_backend_dev_buffer_type(device));
  if (!table->buffer_)
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot get {:.0f} MiB for the recurrent states of {} sequences",
                             static_cast<double>(n_bytes) / (1 << 20), options.n_seqs),
                 "parallel");
  // Other rows are written whole before they are read; left alone, they take no memory until then.
  for (Tensor tensor : table->tensors()) ggml_backend_tensor_memset(tensor, 0, kZeroRow * tensor->nb[1], tensor->nb[1]);
  return table;
}

std::unique_ptr<RecurrentState> RecurrentState::without_data(std::vector<RecurrentLayerSpec> layers,
                                                             const RecurrentOptions& options,
                                                             ggml_backend_dev_t device) {
  std::unique_ptr<RecurrentState> table(new RecurrentState(std::move(layers), options));
  table->buffer_ = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 0);
  for (Tensor tensor : table->tensors()) {
    tensor->buffer = table->buffer_;
    tensor->data = reinterpret_cast<void*>(uintptr_t{64});
  }
  return table;
}

std::vector<Tensor> RecurrentState::tensors() const {
  std::vector<Tensor> all;
  for (const Layer& layer : layers_)
    for (Tensor tensor : {layer.conv, layer.state})
      if (tensor) all.push_back(tensor);
  return all;
}

std::size_t RecurrentState::bytes_per_sequence() const {
  std::size_t n = 0;
  for (Tensor tensor : tensors()) n += tensor->nb[1];
  return n;
}

uint64_t RecurrentState::layout() const {
  uint64_t layout = 0xCBF29CE484222325ull;
  for (const Layer& layer : layers_)
    for (Tensor tensor : {layer.conv, layer.state})
      layout = (layout ^ static_cast<uint64_t>(tensor ? tensor->ne[0] : 0)) * 0x100000001B3ull;
  return layout;
}

// ---- rows

std::vector<uint8_t> RecurrentState::taken_rows() const {
  std::vector<uint8_t> taken(n_rows_, 0);
  taken[kZeroRow] = 1;
  for (const Sequence& seq : seqs_) {
    taken[seq.now.row] = 1;
    for (const Mark& mark : seq.marks) taken[mark.row] = 1;
  }
  return taken;
}

uint32_t RecurrentState::free_row(std::span<const uint8_t> taken) const {
  const auto found = std::find(taken.begin(), taken.end(), uint8_t{0});
  // n_rows covers what all sequences can hold together.
  CHECK(found != taken.end());
  return static_cast<uint32_t>(found - taken.begin());
}

void RecurrentState::place(std::span<Lane> lanes) {
  for (const Lane& lane : lanes) std::erase_if(at(lane.seq).marks, [](const Mark& mark) { return !mark.kept; });
  std::vector<uint8_t> taken = taken_rows();
  for (Lane& lane : lanes) {
    CHECK(lane.first_position == at(lane.seq).now.length);
    lane.row_in = at(lane.seq).now.row;
    lane.rows_out.clear();
    for (std::size_t i = 0; i < n_written(lane.n_tokens); ++i) {
      lane.rows_out.push_back(free_row(taken));
      taken[lane.rows_out.back()] = 1;
    }
  }
}

void RecurrentState::commit(std::span<const Lane> lanes) {
  for (const Lane& lane : lanes) {
    Sequence& seq = at(lane.seq);
    const std::size_t end = lane.first_position + lane.n_tokens;
    if (lane.rows_out.size() == lane.n_tokens) {
      if (seq.now.length > 0) seq.marks.push_back({seq.now.length, seq.now.row});
      for (std::size_t back = lane.rows_out.size() - 1; back > 0; --back)
        seq.marks.push_back({end - back, lane.rows_out[back]});
    }
    seq.now = {end, lane.rows_out[0]};
  }
}

// ---- sequences

bool RecurrentState::can_truncate(SeqId seq, std::size_t n_tokens) const {
  const Sequence& s = at(seq);
  return !any_ || n_tokens == 0 || n_tokens == s.now.length ||
         std::any_of(s.marks.begin(), s.marks.end(), [&](const Mark& mark) { return mark.length == n_tokens; });
}

void RecurrentState::truncate(SeqId seq, std::size_t n_tokens) {
  if (!any_) return;
  Sequence& s = at(seq);
  if (n_tokens == 0) {
    s = {};
    return;
  }
  if (n_tokens == s.now.length) return;
  const auto mark = std::find_if(s.marks.begin(), s.marks.end(), [&](const Mark& m) { return m.length == n_tokens; });
  CHECK(mark != s.marks.end());
  s.now = {mark->length, mark->row};
  std::erase_if(s.marks, [&](const Mark& m) { return m.length > n_tokens || (m.length == n_tokens && !m.kept); });
}

void RecurrentState::fork(SeqId source, SeqId target) {
  if (!any_) return;
  at(target) = at(source);
  // What only the last step can take back stays with the source.
  std::erase_if(at(target).marks, [](const Mark& mark) { return !mark.kept; });
}

void RecurrentState::checkpoint(SeqId seq) {
  Sequence& s = at(seq);
  if (!any_ || options_.n_checkpoints == 0 || s.now.length == 0) return;
  std::erase_if(s.marks, [&](const Mark& mark) { return mark.length == s.now.length; });
  s.marks.push_back({s.now.length, s.now.row, true, ++clock_});
  drop_oldest_checkpoints();
}

void RecurrentState::drop_oldest_checkpoints() {
  for (;;) {
    std::set<uint32_t> rows;
    uint64_t oldest = clock_ + 1;
    for (const Sequence& seq : seqs_)
      for (const Mark& mark : seq.marks)
        if (mark.kept) {
          rows.insert(mark.row);
          oldest = std::min(oldest, mark.age);
        }
    if (rows.size() <= options_.n_checkpoints) return;
    for (Sequence& seq : seqs_)
      std::erase_if(seq.marks, [&](const Mark& mark) { return mark.kept && mark.age == oldest; });
  }
}

void RecurrentState::read(SeqId seq, std::span<std::byte> out) const {
  CHECK(out.size() == bytes_per_sequence());
  std::size_t to = 0;
  for (Tensor tensor : tensors()) {
    ggml_backend_tensor_get(tensor, out.data() + to, at(seq).now.row * tensor->nb[1], tensor->nb[1]);
    to += tensor->nb[1];
  }
}

void RecurrentState::write(SeqId seq, std::size_t length, std::span<const std::byte> bytes) {
  CHECK(bytes.size() == bytes_per_sequence());
  if (!any_) return;
  at(seq) = {};
  if (length == 0) return;
  const uint32_t row = free_row(taken_rows());
  std::size_t from = 0;
  for (Tensor tensor : tensors()) {
    ggml_backend_tensor_set(tensor, bytes.data() + from, row * tensor->nb[1], tensor->nb[1]);
    from += tensor->nb[1];
  }
  at(seq).now = {length, row};
}

}  // namespace hocket
