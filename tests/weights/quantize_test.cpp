#include "weights/quantize/quantize.h"

#include <gtest/gtest.h>

#include "weights/quantize_source.h"

namespace hocket {
namespace {

constexpr int64_t kIn = 512, kOut = 48;

TEST(Quantize, EveryTypeStaysWithinItsError) {
  const std::map<std::string, double> bounds{
      {"F32", 0},        {"F16", 3e-4},   {"BF16", 2e-3},  {"Q8_0", 0.007}, {"Q6_K", 0.02},  {"Q5_K", 0.04},
      {"Q5_0", 0.05},    {"Q5_1", 0.05},  {"Q4_K", 0.08},  {"Q4_0", 0.10},  {"Q4_1", 0.09},  {"IQ4_NL", 0.08},
      {"IQ4_XS", 0.085}, {"MXFP4", 0.15}, {"NVFP4", 0.15}, {"Q3_K", 0.16},  {"IQ3_S", 0.15}, {"IQ3_XXS", 0.20},
      {"Q2_K", 0.30},    {"TQ1_0", 0.85}, {"TQ2_0", 0.85}, {"Q1_0", 0.75},  {"Q2_0", 0.75}};
  check_errors(bounds);
  for (const std::string& name : weight_type_names()) EXPECT_NE(bounds.contains(name), has_large_tables(name)) << name;
}

TEST(Quantize, ExtremeValuesOfEveryTypeComeThrough) {
  std::vector<std::string> names;
  for (const std::string& name : weight_type_names())
    if (!has_large_tables(name)) names.push_back(name);
  check_extremes(names);
}

TEST(Quantize, ThreadsAndPiecesChangeNothing) {
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {256, 20'011});  // more than a piece
  const auto file = source.file();
  const TempFolder one, many;
  const auto a = quantised(*file, recipe("Q4_K_S"), one, nullptr, 1),
             b = quantised(*file, recipe("Q4_K_S"), many, nullptr, 7);
  const auto bytes = [](const GgufFile& f) {
    const auto data = f.data(f.tensors()[0]);
    return std::vector<std::byte>(data.begin(), data.end());
  };
  EXPECT_EQ(bytes(*a), bytes(*b));
}

TEST(Quantize, MixturesOfLanguageModels) {
  Source source("qwen3", 16);
  source.add("token_embd.weight", {256, 64}).add("output_norm.weight", {256});
  for (int il = 0; il < 16; ++il) {
    const std::string p = "blk." + std::to_string(il) + ".";
    source.add(p + "attn_v.weight", {256, 8}).add(p + "attn_q.weight", {256, 8}).add(p + "ffn_down.weight", {256, 8});
    source.add(p + "attn_output.weight", {256, 8}).add(p + "attn_norm.weight", {256});
  }
  const auto file = source.file();
  auto got = types(*file, recipe("q4_k_m"));
  EXPECT_EQ(got["token_embd.weight"], "q6_K");  // it is the head, too
  EXPECT_EQ(got["output_norm.weight"], "f32");
  EXPECT_EQ(got["blk.3.attn_norm.weight"], "f32");
  EXPECT_EQ(got["blk.3.attn_q.weight"], "q4_K");
  const std::string spread[16] = {"q6_K", "q6_K", "q4_K", "q4_K", "q6_K", "q4_K", "q4_K", "q6_K",
                                  "q4_K", "q4_K", "q6_K", "q4_K", "q4_K", "q6_K", "q6_K", "q6_K"};
  for (std::size_t il = 0; il < 16; ++il) {
    EXPECT_EQ(got["blk." + std::to_string(il) + ".attn_v.weight"], spread[il]) << il;
    EXPECT_EQ(got["blk." + std::to_string(il) + ".ffn_down.weight"], spread[il]) << il;
  }
  got = types(*file, recipe("Q3_K_M"));
  EXPECT_EQ(got["blk.0.ffn_down.weight"], "q5_K");
  EXPECT_EQ(got["blk.1.ffn_down.weight"], "q4_K");
  EXPECT_EQ(got["blk.1.attn_v.weight"], "q5_K");
  EXPECT_EQ(got["blk.2.attn_v.weight"], "q4_K");
  EXPECT_EQ(got["blk.2.attn_output.weight"], "q4_K");
  EXPECT_EQ(got["blk.2.attn_q.weight"], "q3_K");
  got = types(*file, recipe("Q8_0"));
  EXPECT_EQ(got["token_embd.weight"], "q8_0");
  got = types(*file, recipe("BF16"));
  EXPECT_EQ(got["blk.2.attn_q.weight"], "bf16");
  EXPECT_EQ(got["output_norm.weight"], "f32");
  QuantizeOptions pure = recipe("Q4_K_M");
  pure.pure = true;
  got = types(*file, pure);
  EXPECT_EQ(got["token_embd.weight"], "q4_K");
  EXPECT_EQ(got["blk.0.attn_v.weight"], "q4_K");
  QuantizeOptions own = recipe("Q4_K_M");
  own.output = GGML_TYPE_Q8_0;
  own.tensor_types = {{"blk\\.1\\..*_v", GGML_TYPE_F16}, {"attn_v", GGML_TYPE_Q5_0}};
  got = types(*file, own);
  EXPECT_EQ(got["token_embd.weight"], "q8_0");
  EXPECT_EQ(got["blk.1.attn_v.weight"], "f16");
  EXPECT_EQ(got["blk.2.attn_v.weight"], "q5_0");
}

TEST(Quantize, ModelsThatShareKeysOrHaveTheirOwnHead) {
  Source source("llama", 8);
  source.metadata.set("llama.attention.head_count_kv", int64_t{2});
  source.add("token_embd.weight", {256, 64}).add("output.weight", {256, 64});
  source.add("blk.7.attn_v.weight", {256, 8}).add("blk.7.ffn_gate_inp.weight", {256, 8});
  source.add("blk.7.ffn_down_exps.weight", {256, 8, 3});
  const auto file = source.file();
  auto got = types(*file, recipe("Q2_K"));
  EXPECT_EQ(got["blk.7.attn_v.weight"], "q4_K");
  EXPECT_EQ(got["blk.7.ffn_gate_inp.weight"], "f32");
  EXPECT_EQ(got["token_embd.weight"], "q2_K");
  EXPECT_EQ(got["output.weight"], "q6_K");
  got = types(*file, recipe("MXFP4_MOE"));
  EXPECT_EQ(got["blk.7.ffn_down_exps.weight"], "mxfp4");
  EXPECT_EQ(got["blk.7.attn_v.weight"], "q8_0");
  QuantizeOptions own = recipe("Q4_K_M");
  own.token_embedding = GGML_TYPE_IQ4_NL;
  got = types(*file, own);
  EXPECT_EQ(got["token_embd.weight"], "iq4_nl");
  EXPECT_EQ(got["output.weight"], "q6_K");
}

TEST(Quantize, MixturesOfMusic) {
  Source dit("acestep-dit", 24);
  for (const int il : {0, 1, 3, 4, 23})
    dit.add("decoder.layers." + std::to_string(il) + ".self_attn.v_proj.weight", {256, 8});
  dit.add("decoder.layers.4.self_attn.o_proj.weight", {256, 8});
  dit.add("decoder.layers.4.scale_shift_table", {256, 6, 1}).add("decoder.proj_in.1.weight", {2, 192, 8});
  dit.add("encoder.lyric_encoder.embed_tokens.weight", {1024, 8}).add("detokenizer.special_tokens", {256, 5, 1});
  dit.add("silence_latent", {64, 8}).add("null_condition_emb", {256, 1, 1});
  const auto file = dit.file();
  auto got = types(*file, recipe("Q4_K_M"));
  EXPECT_EQ(got["decoder.layers.0.self_attn.v_proj.weight"], "q6_K");
  EXPECT_EQ(got["decoder.layers.1.self_attn.v_proj.weight"], "q6_K");
  EXPECT_EQ(got["decoder.layers.3.self_attn.v_proj.weight"], "q6_K");
  EXPECT_EQ(got["decoder.layers.4.self_attn.v_proj.weight"], "q4_K");
  EXPECT_EQ(got["decoder.layers.23.self_attn.v_proj.weight"], "q6_K");
  EXPECT_EQ(got["decoder.layers.4.self_attn.o_proj.weight"], "q4_K");
  EXPECT_EQ(got["encoder.lyric_encoder.embed_tokens.weight"], "q6_K");
  EXPECT_EQ(got["detokenizer.special_tokens"], "q4_K");
  for (const char* name :
       {"decoder.layers.4.scale_shift_table", "decoder.proj_in.1.weight", "silence_latent", "null_condition_emb"})
    EXPECT_EQ(got[name], "f32") << name;
  got = types(*file, recipe("Q3_K_L"));
  EXPECT_EQ(got["decoder.layers.4.self_attn.o_proj.weight"], "q5_K");

  Source text("acestep-text-enc", 2);
  text.add("embed_tokens.weight", {256, 8}).add("layers.1.mlp.down_proj.weight", {256, 8});
  const auto text_file = text.file();
  got = types(*text_file, recipe("Q8_0"));
  EXPECT_EQ(got["embed_tokens.weight"], "f32");
  EXPECT_EQ(got["layers.1.mlp.down_proj.weight"], "q8_0");
  const TempFolder folder;
  const auto out = quantised(*text_file, recipe("Q8_0"), folder);
  EXPECT_EQ(*out->metadata().string("general.file_type"), "Q8_0");

  Source vae("acestep-vae");
  vae.add("decoder.conv1.weight_v", {256, 8, 8});
  const auto refused = plan_quantising(*vae.file(), recipe("Q8_0"), nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

TEST(Quantize, RowsThatAreNoWholeBlocksTakeTheNextTypeThatFits) {
  Source source("llama");
  source.add("blk.0.ffn_up.weight", {96, 8}).add("blk.0.ffn_gate.weight", {50, 8}).add("output.weight", {64, 8});
  const auto file = source.file();
  const auto plan = plan_quantising(*file, recipe("Q4_K_S"), nullptr);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tensors[0].to, GGML_TYPE_Q5_0);
  EXPECT_TRUE(plan->tensors[0].fallback);
  EXPECT_EQ(plan->tensors[1].to, GGML_TYPE_F16);
  EXPECT_EQ(plan->tensors[2].to, GGML_TYPE_Q8_0);
  QuantizeOptions own = recipe("Q4_K_S");
  own.tensor_types = {{"ffn_up", GGML_TYPE_Q6_K}};
  const auto refused = plan_quantising(*file, own, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "--tensor-type");
  EXPECT_NE(refused.error().message.find("blk.0.ffn_up.weight"), std::string::npos);
}

TEST(Quantize, KeepsWhatTheFileSays) {
  Source source("qwen3");
  MetadataArray tokens;
  tokens.items = std::vector<std::string>{"a", "b"};
  source.metadata.set("tokenizer.ggml.tokens", tokens);
  source.metadata.set("general.alignment", int64_t{64});
  source.metadata.set("split.tensors.count", int64_t{1});
  source.add("blk.0.ffn_up.weight", {256, 8}).add("rope_freqs", {16});
  const auto file = source.file();
  const TempFolder folder;
  const auto out = quantised(*file, recipe("Q6_K"), folder);
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(*out->metadata().integer("general.file_type"), 18);
  EXPECT_EQ(*out->metadata().integer("general.quantization_version"), 2);
  EXPECT_EQ(**out->metadata().strings("tokenizer.ggml.tokens"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(out->metadata().has("split.tensors.count"));
  EXPECT_EQ(out->alignment(), 64u);
  EXPECT_EQ(floats_of(*out, "rope_freqs"), floats_of(*file, "rope_freqs"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Quantize, WeightsThatAreQuantisedAlreadyAreRefused) {
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {256, 8});
  const TempFolder folder, again;
  const auto small = quantised(*source.file(), recipe("Q8_0"), folder);
  const auto refused = plan_quantising(*small, recipe("Q4_0"), nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "--allow-requantize");
  EXPECT_EQ(types(*small, recipe("Q8_0"))["blk.0.ffn_up.weight"], "q8_0");
  EXPECT_EQ(types(*small, recipe("F16"))["blk.0.ffn_up.weight"], "f16");
  QuantizeOptions all_the_same = recipe("Q4_0");
  all_the_same.allow_requantize = true;
  const auto out = quantised(*small, all_the_same, again);
  ASSERT_NE(out, nullptr);
  EXPECT_LT(distance(floats_of(*out, "blk.0.ffn_up.weight"), floats_of(*small, "blk.0.ffn_up.weight")), 0.11);
}

TEST(Quantize, ImportanceFavoursWhatMatters) {
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {kIn, kOut});
  const auto file = source.file();
  const Floats before = floats_of(*file, "blk.0.ffn_up.weight");
  Floats weights(kIn, 0.01f);
  for (std::size_t i = 0; i < kIn; i += 16) weights[i] = 50.0f;
  const TempFolder folder;
  const auto importance = importance_of(folder, legacy({{"blk.0.ffn_up.weight", weights}}));
  ASSERT_TRUE(importance.ok());
  const char* const names[] = {"Q2_K_S", "Q3_K_S", "Q4_K_S", "Q4_0", "IQ4_NL", "IQ3_S"};
  for (const char* name : names) {
    QuantizeOptions options = recipe(name);
    options.pure = true;
    const TempFolder plain_folder, weighed_folder;
    const auto plain = quantised(*file, options, plain_folder);
    const auto weighed = quantised(*file, options, weighed_folder, &*importance);
    const std::string t = "blk.0.ffn_up.weight";
    EXPECT_LT(distance(floats_of(*weighed, t), before, weights), 0.9 * distance(floats_of(*plain, t), before, weights))
        << name;
    EXPECT_EQ(*weighed->metadata().integer("quantize.imatrix.entries_count"), 1);
  }
}

TEST(Quantize, BothFormsOfAnImportanceMatrixSayTheSame) {
  Source source("qwen3moe");
  source.add("blk.0.ffn_up_exps.weight", {256, 8, 3});
  const auto file = source.file();
  const Floats weights = [] {
    Floats out = random_values(256 * 3, 9);
    for (float& value : out) value *= value;
    std::fill(out.begin() + 256, out.begin() + 512, 0.0f);  // an expert that was never used
    return out;
  }();
  const TempFolder folder;
  const auto old = importance_of(folder, legacy({{"blk.0.ffn_up_exps.weight", weights}}));
  ASSERT_TRUE(old.ok());
  Metadata metadata;
  metadata.set("general.type", std::string("imatrix"));
  metadata.set("imatrix.chunk_count", int64_t{7});
  GgufWriter writer(metadata);
  Floats sums = weights;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] *= i < 256 ? 4.0f : 8.0f;
  ASSERT_TRUE(writer.add_bytes("blk.0.ffn_up_exps.weight.in_sum2", GGML_TYPE_F32, {256, 3}, bytes_of(sums)).ok());
  ASSERT_TRUE(writer.add_bytes("blk.0.ffn_up_exps.weight.counts", GGML_TYPE_F32, {1, 3}, bytes_of({4, 0, 8})).ok());
  ASSERT_TRUE(writer.write(folder.file("imatrix.gguf")).ok());
  const auto now = ImportanceMatrix::open(folder.file("imatrix.gguf"));
  ASSERT_TRUE(now.ok()) << now.error().message;
  EXPECT_EQ(now->n_chunks(), 7);
  for (const char* name : {"IQ3_XXS", "Q4_K_S"}) {
    const TempFolder a, b;
    const auto from_old = quantised(*file, recipe(name), a, &*old), from_new = quantised(*file, recipe(name), b, &*now);
    EXPECT_EQ(floats_of(*from_old, "blk.0.ffn_up_exps.weight"), floats_of(*from_new, "blk.0.ffn_up_exps.weight"));
  }
}

TEST(Quantize, ImportanceThatIsWrongIsRefused) {
  const TempFolder folder;
  const std::string good = legacy({{"blk.0.ffn_up.weight", Floats(256, 1.0f)}});
  ASSERT_TRUE(importance_of(folder, good + "more").ok());
  for (std::size_t n = 0; n < good.size(); n += 5) {
    const auto cut = importance_of(folder, good.substr(0, n));
    ASSERT_FALSE(cut.ok()) << n;
    EXPECT_EQ(cut.error().code, ErrorCode::kInvalid) << n;
    EXPECT_EQ(cut.error().param, "--imatrix") << n;
  }
  EXPECT_FALSE(importance_of(folder, legacy({{"a", {1, -1}}})).ok());
  EXPECT_FALSE(importance_of(folder, legacy({{"a", {1, std::nanf("")}}})).ok());
  EXPECT_FALSE(importance_of(folder, legacy({{"a", {1}}, {"a", {1}}})).ok());
  EXPECT_FALSE(importance_of(folder, legacy({{"a", {}}})).ok());
  std::string huge = good;
  const int32_t many = 0x7FFFFFFF;
  std::memcpy(huge.data(), &many, sizeof many);
  EXPECT_FALSE(importance_of(folder, huge).ok());
  EXPECT_EQ(ImportanceMatrix::open(folder.file("none")).error().code, ErrorCode::kNotFound);
  GgufWriter model;
  ASSERT_TRUE(model.write(folder.file("model.gguf")).ok());
  EXPECT_FALSE(ImportanceMatrix::open(folder.file("model.gguf")).ok());

  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {512, 8});
  const auto file = source.file();
  const auto other = importance_of(folder, good);
  EXPECT_EQ(plan_quantising(*file, recipe("Q4_K_M"), &*other).error().param, "--imatrix");
  const auto without = plan_quantising(*file, recipe("IQ2_XXS"), nullptr);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().param, "--imatrix");
}

TEST(Quantize, ValuesThatNoTypeHoldsAreRefusedAndNothingIsLeft) {
  const float bad[] = {std::nanf(""), INFINITY, -INFINITY, 1e30f, -70'000.0f};
  for (const float value : bad)
    for (const char* name : {"F16", "Q8_0", "Q4_0", "Q4_K_S", "IQ4_XS", "IQ3_S", "TQ1_0"}) {
      Source source("qwen3");
      Floats values = random_values(256 * 4, 3);
      values[700] = value;
      source.add("blk.0.ffn_up.weight", {256, 4}, values);
      const auto file = source.file();
      const auto plan = plan_quantising(*file, recipe(name), nullptr);
      ASSERT_TRUE(plan.ok());
      const TempFolder folder;
      const auto written = write_quantised(*file, *plan, nullptr, folder.file("out.gguf"), 2, {});
      ASSERT_FALSE(written.ok()) << name;
      EXPECT_EQ(written.error().code, ErrorCode::kBadModel);
      EXPECT_EQ(written.error().param, "blk.0.ffn_up.weight");
      EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << name;
    }
}

TEST(Quantize, OptionsThatCannotBe) {
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {256, 8});
  const auto file = source.file();
  QuantizeOptions options = recipe("Q4_0");
  options.tensor_types = {{"[", GGML_TYPE_Q8_0}};
  EXPECT_EQ(plan_quantising(*file, options, nullptr).error().param, "--tensor-type");
  options.tensor_types = {{"attn_q", GGML_TYPE_Q8_0}};
  EXPECT_EQ(plan_quantising(*file, options, nullptr).error().param, "--tensor-type");
  EXPECT_EQ(find_recipe("Q4_K_X"), nullptr);
  EXPECT_FALSE(parse_weight_type("Q8_1").has_value());
  EXPECT_FALSE(parse_weight_type("i32").has_value());
  source.metadata.set("general.type", std::string("adapter"));
  EXPECT_EQ(plan_quantising(*source.file(), recipe("Q4_0"), nullptr).error().code, ErrorCode::kUnsupported);
}

TEST(Quantize, CancelledWorkLeavesNothing) {
  Source source("qwen3");
  source.add("blk.0.ffn_up.weight", {256, 8}).add("blk.0.ffn_down.weight", {256, 8});
  const auto file = source.file();
  const auto plan = plan_quantising(*file, recipe("Q4_0"), nullptr);
  ASSERT_TRUE(plan.ok());
  const TempFolder folder;
  const CancelToken cancel;
  const auto at_second = [&](const PlannedTensor&, std::size_t index) {
    if (index == 1) cancel.cancel();
  };
  const auto written = write_quantised(*file, *plan, nullptr, folder.file("out.gguf"), 1, cancel, at_second);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace hocket
