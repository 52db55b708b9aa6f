#include "lm/step_inputs.h"

#include <numeric>

#include "base/check.h"

namespace hocket {

namespace {

// Tensors that the architecture does not use have no memory.
void set(Tensor tensor, const void* data) {
  if (tensor && tensor->buffer) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
}

void fill_pool(const StepGraph& g, const KvCache& cache, const Placement& placement, std::size_t pool,
               std::span<const uint32_t> rows) {
  const PoolPlacement& where = placement.pools[pool];
  const std::vector<int64_t> cells(where.cells.begin(), where.cells.end());
  set(g.cells(pool), cells.data());
  std::vector<ggml_fp16_t> mask;
  const auto fill = [&](Tensor tensor, std::span<const uint32_t> queries) {
    if (!tensor || !tensor->buffer) return;
    mask.resize(queries.size() * where.n_kv);
    cache.fill_mask(placement, pool, queries, mask);
    set(tensor, mask.data());
  };
  std::vector<uint32_t> every(placement.tokens.size());
  std::iota(every.begin(), every.end(), 0u);
  if (Tensor order = g.cell_order(pool); order && order->buffer) {
    std::vector<int32_t> by_position(where.n_kv);
    cache.fill_order(placement, pool, by_position);
    set(order, by_position.data());
  }
  fill(g.mask(pool), every);
  fill(g.output_mask(pool), rows);
}

void fill_lanes(const StepGraph& g, std::span<const Lane> lanes) {
  std::size_t first = 0;
  for (const LaneGroup& group : g.lane_groups()) {
    const auto part = lanes.subspan(first, static_cast<std::size_t>(group.n_lanes));
    std::vector<int32_t> in;
    std::vector<int64_t> out;
    for (const Lane& lane : part) in.push_back(static_cast<int32_t>(lane.row_in));
    for (std::size_t s = 0; s < static_cast<std::size_t>(group.n_written); ++s)
      for (const Lane& lane : part) out.push_back(lane.rows_out[s]);
    set(group.rows_in, in.data());
    set(group.rows_out, out.data());
    first += part.size();
  }
}

}  // namespace

StepShape step_shape(const StepPlacement& placement, std::size_t n_tokens, std::size_t n_rows, StepOutput output) {
  StepShape shape;
  shape.n_tokens = n_tokens;
  shape.n_outputs = n_rows;
  shape.output = output;
  for (const PoolPlacement& pool : placement.kv.pools) shape.n_kv.push_back(pool.n_kv);
  for (const Lane& lane : placement.lanes) {
    const LaneShape one{lane.n_tokens, 1, lane.rows_out.size()};
    if (!shape.lanes.empty() && shape.lanes.back().n_tokens == one.n_tokens) {
      ++shape.lanes.back().n_lanes;
    } else {
      shape.lanes.push_back(one);
    }
  }
  return shape;
}

void fill_inputs(const StepGraph& g, const ModelMemory& memory, const StepPlacement& placement,
                 const StepInputs& inputs) {
  std::vector<int32_t> positions, output_positions;
  for (const PlacedToken& token : placement.kv.tokens) positions.push_back(token.position);
  for (const uint32_t row : inputs.rows) output_positions.push_back(positions[row]);
  set(g.tokens(), inputs.tokens.data());
  set(g.positions(), positions.data());
  set(g.output_rows(), inputs.rows.data());
  set(g.output_positions(), output_positions.data());
  if (g.activations()) {
    CHECK(inputs.activations.size() == static_cast<std::size_t>(ggml_nelements(g.activations())));
    set(g.activations(), inputs.activations.data());
  }
  for (std::size_t p = 0; p < memory.kv().n_pools(); ++p) fill_pool(g, memory.kv(), placement.kv, p, inputs.rows);
  fill_lanes(g, placement.lanes);
}

}  // namespace hocket
