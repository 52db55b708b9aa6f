#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace hocket {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

constexpr const char* kTextPattern = "%H:%M:%S.%e %-5l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%v"})";

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  bool json = false;
  std::string file;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> files;  // lets the file change under the logger's feet

  const char* pattern() const { return json ? kJsonPattern : kTextPattern; }
};

LogState make_default() {
  LogState state;
  state.logger = std::make_shared<spdlog::logger>("hocket", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  state.logger->set_pattern(kTextPattern);
  state.logger->flush_on(spdlog::level::info);
  return state;
}

LogState& state() {
  static LogState instance = make_default();
  return instance;
}

// Control characters as \n, \t or \xHH; with `json`, also quotes and backslashes.
std::string escaped(std::string_view text, bool json) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (json && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += json ? fmt::format("\\u{:04x}", byte) : fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Result<void> configure_log(const LogOptions& options) {
  LogState& s = state();
  try {
    if (!options.file.empty()) {
      s.files = std::make_shared<spdlog::sinks::dist_sink_mt>();
      s.files->add_sink(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
      s.file = options.file;
      s.logger = std::make_shared<spdlog::logger>("hocket", s.files);
      s.logger->flush_on(spdlog::level::info);
    }
    s.json = options.format == LogFormat::kJson;
    s.logger->set_pattern(s.pattern());
    s.logger->set_level(to_spdlog(options.level));
  } catch (const std::exception& e) {
    return Error(ErrorCode::kIo, fmt::format("cannot write the log file {}: {}", options.file, e.what()), "log-file");
  }
  return {};
}

Result<void> reopen_log() {
  LogState& s = state();
  if (s.file.empty()) return {};
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(s.file);
    sink->set_pattern(s.pattern());
    s.files->set_sinks({std::move(sink)});
  } catch (const std::exception& e) {
    return Error(ErrorCode::kIo, fmt::format("cannot write the log file {}: {}", s.file, e.what()), "log-file");
  }
  return {};
}

bool log_enabled(LogLevel level) {
  return state().logger->should_log(to_spdlog(level));
}

void log_message(LogLevel level, std::string_view message) {
  const std::string line = escaped(message, state().json);
  state().logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace hocket
