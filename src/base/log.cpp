#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "base/log_tail.h"

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

// Remembers the last lines for those who follow the log.
class TailSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<LogLine> after(uint64_t number, std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    grown_.wait_for(lock, wait, [&] { return n_lines_ > number; });
    std::vector<LogLine> lines;
    std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(lines),
                 [&](const LogLine& line) { return line.number > number; });
    return lines;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    while (line.ends_with('\n')) line.pop_back();
    lines_.push_back({++n_lines_, std::move(line)});
    constexpr std::size_t kMostLines = 512;
    if (lines_.size() > kMostLines) lines_.pop_front();
    grown_.notify_all();
  }
  void flush_() override {}

  std::condition_variable grown_;
  std::deque<LogLine> lines_;
  uint64_t n_lines_ = 0;
};

std::shared_ptr<TailSink> tail() {
  static const auto sink = std::make_shared<TailSink>();
  return sink;
}

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  bool json = false;
  std::string file;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> files;  // lets the file change under the logger's feet

  const char* pattern() const { return json ? kJsonPattern : kTextPattern; }
};

LogState make_default() {
  LogState state;
  const spdlog::sinks_init_list sinks{std::make_shared<spdlog::sinks::stderr_sink_mt>(), tail()};
  state.logger = std::make_shared<spdlog::logger>("hocket", sinks);
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
      s.logger = std::make_shared<spdlog::logger>("hocket", spdlog::sinks_init_list{s.files, tail()});
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

std::vector<LogLine> log_lines_after(uint64_t number, std::chrono::milliseconds wait) {
  state();  // the tail is one of its sinks
  return tail()->after(number, wait);
}

bool log_enabled(LogLevel level) {
  return state().logger->should_log(to_spdlog(level));
}

void log_message(LogLevel level, std::string_view message) {
  const std::string line = escaped(message, state().json);
  state().logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace hocket
