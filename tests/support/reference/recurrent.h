// tests/support/reference/recurrent.h: naive double-precision twins of recurrent blocks and latent attention. Plain
// loops over one sequence from its first token; no state is carried in.
#pragma once

#include "support/reference/transformer.h"

namespace hocket::test::reference {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}

// kernel [K, n_channels]: y_t[c] = Σ_j w[j, c] u_{t−K+1+j}[c].
inline Rows causal_conv(const Rows& u, const Row& kernel) {
  const std::size_t n_channels = u[0].size(), k = kernel.size() / n_channels;
  Rows y(u.size(), Row(n_channels, 0.0));
  for (std::size_t t = 0; t < u.size(); ++t)
    for (std::size_t c = 0; c < n_channels; ++c)
      for (std::size_t j = 0; j < k; ++j)
        if (t + j + 1 >= k) y[t][c] += kernel[c * k + j] * u[t + j + 1 - k][c];
  return y;
}

inline Row unit(Row x, double eps) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  for (double& v : x) v /= std::max(std::sqrt(sum), eps);
  return x;
}

inline Row slice(const Row& x, std::size_t first, std::size_t n) {
  return {x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(first + n)};
}

// One head: q, k of norm 1, v, log-decay g of each key channel, beta of each token.
inline Rows delta_rule(const Rows& q, const Rows& k, const Rows& v, const Rows& g, const Row& beta) {
  const std::size_t n = v[0].size();
  std::vector<Row> m(n, Row(n, 0.0));  // m[key channel][value channel]
  Rows out;
  for (std::size_t t = 0; t < v.size(); ++t) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) m[i][j] *= std::exp(g[t][i]);
    Row read(n, 0.0), o(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) read[j] += m[i][j] * k[t][i];
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) m[i][j] += k[t][i] * beta[t] * (v[t][j] - read[j]);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) o[j] += m[i][j] * q[t][i] / std::sqrt(static_cast<double>(n));
    out.push_back(o);
  }
  return out;
}

struct KdaWeights {
  Row q, k, v, conv_q, conv_k, conv_v, f_a, f_b, dt, a, beta, g_a, g_b, norm, output;  // f_b, g_b empty: full rank
};

inline Rows kda(const Rows& x, const KdaWeights& w, std::size_t n_head, std::size_t head_dim, double eps,
                double lower_bound) {
  const auto project = [&](const Row& weight) {
    Rows rows;
    for (const Row& row : x) rows.push_back(product(weight, row));
    return rows;
  };
  const auto low_rank = [&](const Row& a, const Row& b, const Row& row) {
    return b.empty() ? product(a, row) : product(b, product(a, row));
  };
  const auto mix = [&](const Row& weight, const Row& kernel) {
    Rows rows = causal_conv(project(weight), kernel);
    for (Row& row : rows)
      for (double& v : row) v = silu(v);
    return rows;
  };
  const Rows q = mix(w.q, w.conv_q), k = mix(w.k, w.conv_k), v = mix(w.v, w.conv_v);
  Rows heads_out(x.size());
  for (std::size_t h = 0; h < n_head; ++h) {
    Rows hq, hk, hv, hg;
    Row hb;
    for (std::size_t t = 0; t < x.size(); ++t) {
      hq.push_back(unit(slice(q[t], h * head_dim, head_dim), eps));
      hk.push_back(unit(slice(k[t], h * head_dim, head_dim), eps));
      hv.push_back(slice(v[t], h * head_dim, head_dim));
      Row g = slice(low_rank(w.f_a, w.f_b, x[t]), h * head_dim, head_dim);
      for (std::size_t i = 0; i < head_dim; ++i) {
        const double f = g[i] + w.dt[h * head_dim + i];
        g[i] = lower_bound != 0 ? lower_bound * sigmoid(w.a[h] * f) : w.a[h] * softplus(f);
      }
      hg.push_back(g);
      hb.push_back(sigmoid(product(w.beta, x[t])[h]));
    }
    const Rows o = delta_rule(hq, hk, hv, hg, hb);
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row normal = rms_norm(o[t], w.norm, eps);
      heads_out[t].insert(heads_out[t].end(), normal.begin(), normal.end());
    }
  }
  Rows y;
  for (std::size_t t = 0; t < x.size(); ++t) {
    const Row gate = low_rank(w.g_a, w.g_b, x[t]);
    for (std::size_t i = 0; i < gate.size(); ++i) heads_out[t][i] *= sigmoid(gate[i]);
    y.push_back(product(w.output, heads_out[t]));
  }
  return y;
}

struct DeltaNetWeights {
  Row qkv, gate, conv, dt, a, beta, alpha, beta_alpha, norm, output;  // beta and alpha, or beta_alpha when grouped
};

inline Rows gated_delta_net(const Rows& x, const DeltaNetWeights& w, std::size_t n_k_head, std::size_t n_v_head,
                            std::size_t head_dim, double eps) {
  const bool grouped = !w.beta_alpha.empty();
  const std::size_t r = n_v_head / n_k_head, n_keys = n_k_head * head_dim;
  Rows u;
  for (const Row& row : x) u.push_back(product(w.qkv, row));
  Rows mixed = causal_conv(u, w.conv);
  for (Row& row : mixed)
    for (double& v : row) v = silu(v);
  Rows heads_out(x.size());
  for (std::size_t h = 0; h < n_v_head; ++h) {
    const std::size_t key_head = grouped ? h / r : h % n_k_head;
    Rows hq, hk, hv, hg;
    Row hb;
    for (std::size_t t = 0; t < x.size(); ++t) {
      hq.push_back(unit(slice(mixed[t], key_head * head_dim, head_dim), eps));
      hk.push_back(unit(slice(mixed[t], n_keys + key_head * head_dim, head_dim), eps));
      hv.push_back(slice(mixed[t], 2 * n_keys + h * head_dim, head_dim));
      double b, a;
      if (grouped) {
        const Row both = product(w.beta_alpha, x[t]);
        b = both[key_head * 2 * r + h % r];
        a = both[key_head * 2 * r + r + h % r];
      } else {
        b = product(w.beta, x[t])[h];
        a = product(w.alpha, x[t])[h];
      }
      hg.push_back(Row(head_dim, w.a[h] * softplus(a + w.dt[h])));
      hb.push_back(sigmoid(b));
    }
    const Rows o = delta_rule(hq, hk, hv, hg, hb);
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row normal = rms_norm(o[t], w.norm, eps);
      heads_out[t].insert(heads_out[t].end(), normal.begin(), normal.end());
    }
  }
  Rows y;
  for (std::size_t t = 0; t < x.size(); ++t) {
    const Row z = product(w.gate, x[t]);
    for (std::size_t i = 0; i < z.size(); ++i) heads_out[t][i] *= silu(z[i]);
    y.push_back(product(w.output, heads_out[t]));
  }
  return y;
}

struct MlaWeights {
  Row q, q_a, q_a_norm, q_b;                    // q, or the other three
  Row kv_a, kv_a_norm, k_b, v_b, gate, output;  // gate may be empty
};

// The form that is not absorbed: keys and values of every head are made from the latent.
inline Rows mla(const Rows& x, const MlaWeights& w, std::size_t n_head, std::size_t n_latent, std::size_t nope,
                const Rope& rope, std::size_t head_dim_v, double eps, double scale) {
  const std::size_t n_rot = rope.n_rot, head_dim = nope + n_rot;
  Rows q, latent, key_rot;
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row row = w.q.empty() ? product(w.q_b, rms_norm(product(w.q_a, x[t]), w.q_a_norm, eps)) : product(w.q, x[t]);
    for (std::size_t h = 0; h < n_head; ++h) rotate(&row[h * head_dim + nope], static_cast<double>(t), rope);
    q.push_back(row);
    const Row kv = product(w.kv_a, x[t]);
    latent.push_back(rms_norm(slice(kv, 0, n_latent), w.kv_a_norm, eps));
    Row k = slice(kv, n_latent, n_rot);
    rotate(k.data(), static_cast<double>(t), rope);
    key_rot.push_back(k);
  }
  Rows y;
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row all;
    for (std::size_t h = 0; h < n_head; ++h) {
      Row scores;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t i = 0; i < nope; ++i) {
          double key = 0;
          for (std::size_t r = 0; r < n_latent; ++r) key += w.k_b[(h * n_latent + r) * nope + i] * latent[s][r];
          score += q[t][h * head_dim + i] * key;
        }
        for (std::size_t i = 0; i < n_rot; ++i) score += q[t][h * head_dim + nope + i] * key_rot[s][i];
        scores.push_back(score * scale);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& s : scores) sum += s = std::exp(s - most);
      Row o(head_dim_v, 0.0);
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t j = 0; j < head_dim_v; ++j)
          for (std::size_t r = 0; r < n_latent; ++r)
            o[j] += scores[s] / sum * w.v_b[(h * head_dim_v + j) * n_latent + r] * latent[s][r];
      const double gate = w.gate.empty() ? 1 : sigmoid(product(w.gate, x[t])[h]);
      for (const double v : o) all.push_back(v * gate);
    }
    y.push_back(product(w.output, all));
  }
  return y;
}

}  // namespace hocket::test::reference
