#include "compute/delta_rules.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"

namespace hocket {
namespace {

bool has_rows(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
}

int64_t stride(const ggml_tensor* t) {
  return static_cast<int64_t>(t->nb[2] / sizeof(float));
}

const float* at(const ggml_tensor* t, int64_t head, int64_t lane) {
  return reinterpret_cast<const float*>(static_cast<const std::byte*>(t->data) +
                                        static_cast<std::size_t>(head) * t->nb[1] +
                                        static_cast<std::size_t>(lane) * t->nb[3]);
}

float* scratch_of_thread(int64_t n_floats) {
  thread_local std::vector<float> scratch;
  if (scratch.size() < static_cast<std::size_t>(n_floats)) scratch.resize(static_cast<std::size_t>(n_floats));
  return scratch.data();
}

}  // namespace

bool DeltaRules::can_run(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v, const ggml_tensor* gate) {
  return v->ne[0] % kDeltaRows == 0 && has_rows(q) && has_rows(k) && has_rows(v) && has_rows(gate);
}

ggml_tensor* DeltaRules::run(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k,
                             ggml_tensor* v, ggml_tensor* gate, ggml_tensor* beta, ggml_tensor* before,
                             int64_t n_written) {
  const int64_t dim = v->ne[0], n_head = v->ne[1], n_tokens = v->ne[2], n_lanes = v->ne[3];
  CHECK(can_run(q, k, v, gate) && has_rows(beta) && ggml_is_contiguous(before) && before->type == GGML_TYPE_F32);
  CHECK(q->ne[0] == dim && k->ne[0] == dim && n_head % k->ne[1] == 0 && q->ne[1] == k->ne[1]);
  CHECK((gate->ne[0] == 1 || gate->ne[0] == dim) && beta->ne[0] == 1 &&
        ggml_nelements(before) == dim * dim * n_head * n_lanes);
  CHECK(n_written >= 1 && n_written <= n_tokens);
  Rule& rule = rules_.emplace_back();
  rule.kernels = &kernels;
  rule.n_written = n_written;
  ggml_tensor* args[] = {q, k, v, gate, beta, before};
  const int64_t width = dim * n_head * n_lanes;
  return ggml_custom_4d(context, GGML_TYPE_F32, width * (n_tokens + n_written * dim), 1, 1, 1, args, 6, compute,
                        GGML_N_TASKS_MAX, &rule);
}

void DeltaRules::compute(ggml_tensor* dst, int, int nth, void* data) {
  auto& rule = *static_cast<Rule*>(data);
  const ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *gate = dst->src[3], *beta = dst->src[4];
  const auto* before = static_cast<const float*>(dst->src[5]->data);
  const int64_t dim = v->ne[0], n_head = v->ne[1], n_tokens = v->ne[2], n_lanes = v->ne[3], n_k_head = k->ne[1];
  auto* out = static_cast<float*>(dst->data);
  float* states = out + dim * n_head * n_tokens * n_lanes;

  const auto run_head = [&](int64_t unit) {
    const int64_t lane = unit / n_head, head = unit % n_head, place = unit * dim * dim;
    DeltaHead h{};
    h.head_dim = dim;
    h.n_tokens = n_tokens;
    h.q = at(q, head % n_k_head, lane);
    h.k = at(k, head % n_k_head, lane);
    h.v = at(v, head, lane);
    h.gate = at(gate, head, lane);
    h.beta = at(beta, head, lane);
    h.q_stride = stride(q);
    h.k_stride = stride(k);
    h.v_stride = stride(v);
    h.gate_stride = stride(gate);
    h.beta_stride = stride(beta);
    h.n_gate = gate->ne[0];
    h.out = out + (lane * n_tokens * n_head + head) * dim;
    h.out_stride = n_head * dim;
    h.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    h.state = states + place;
    h.n_kept = rule.n_written;
    h.kept = states + place;
    h.kept_stride = dim * dim * n_head * n_lanes;
    h.scratch = scratch_of_thread(delta_scratch(dim));
    std::memcpy(h.state, before + place, static_cast<std::size_t>(dim * dim) * sizeof(float));
    rule.kernels->delta(h);
  };
  rule.queue.run(n_head * n_lanes, 4 * dim * dim * n_head * n_tokens * n_lanes, nth, run_head);
}

}  // namespace hocket
