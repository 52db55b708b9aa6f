#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/text_input.h"
#include "engine/model_tools.h"

namespace hocket {
namespace {

struct TokenizeFlags {
  ModelFlags model;
  std::string text = "-";
  std::string file;
  std::vector<TokenId> decode;
  bool ids_only = false;
  bool no_special = false;
  bool no_parse_special = false;
};

int tokenize(const TokenizeFlags& flags) {
  if (const auto named = require_model(flags.model); !named) return usage_failure(named.error().message);
  if (!flags.decode.empty()) {
    const auto text = detokenize_with(flags.model.path, flags.decode);
    if (!text) return report_failure(text.error());
    fmt::print("{}\n", *text);
    return 0;
  }
  std::string text = flags.text;
  if (!flags.file.empty() || text == "-") {
    auto read = read_text(flags.file.empty() ? "-" : flags.file);
    if (!read) return report_failure(read.error());
    text = std::move(*read);
  }
  const EncodeOptions options{!flags.no_special, !flags.no_parse_special};
  const auto tokens = tokenize_with(flags.model.path, text, options);
  if (!tokens) return report_failure(tokens.error());
  if (flags.ids_only) {
    fmt::print("{}\n", dump_json(Json(tokens->ids)));
  } else {
    for (std::size_t i = 0; i < tokens->ids.size(); ++i) {
      fmt::print("{:>8}  {}\n", tokens->ids[i], dump_json(Json(tokens->pieces[i])));
    }
  }
  return 0;
}

}  // namespace

Command add_tokenize(CLI::App& root) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* app = root.add_subcommand("tokenize", "turn text into the tokens of a model");
  add_model_flag(*app, flags->model, true);
  app->add_option("TEXT", flags->text, "the text; - reads standard input")->capture_default_str();
  app->add_option("-f,--file", flags->file, "read the text from this file");
  app->add_flag("--ids", flags->ids_only, "print the ids alone, as a JSON array");
  app->add_flag("--no-special", flags->no_special, "do not add the BOS and EOS that the vocabulary asks for");
  app->add_flag("--no-parse-special", flags->no_parse_special, "take the text of control tokens as ordinary text");
  app->add_option("--decode", flags->decode, "print the text of these ids, separated by commas, instead")
      ->delimiter(',');
  return {app, [flags] { return tokenize(*flags); }};
}

}  // namespace hocket
