// engine/model_report.h: what is in a model file, and whether and why (not) it can run here.
//
// Threads  pure functions.
// Errors   those of opening the file. What is wrong further on is part of the report.
// Cost     reads the header only.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "lm/language_model.h"
#include "lm/runner.h"

namespace hocket {

struct ReportOptions {
  RunnerOptions runner;  // n_ctx 0: the model's trained length
  LoadOptions load;
  bool tensors = false;     // list every tensor
  bool vocabulary = false;  // whole metadata arrays; else their length and first items
};

// Keys: file, can_run, problems, model, metadata, types, tokenizer, chat_template, memory, tensors.
Result<Json> report_model(const std::string& path, const ReportOptions& options);
// The same for people. Control characters of the file are escaped.
std::string format_report(const Json& report);

}  // namespace hocket
