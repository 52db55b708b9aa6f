// The one file that sees libedit.
#include "cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"

namespace hocket {
namespace {

constexpr int kHistoryEntries = 1000;
constexpr const char* kPasteOn = "\033[?2004h";
constexpr const char* kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";

volatile std::sig_atomic_t resized = 0;

void on_resize(int) {
  resized = 1;
}

std::wstring widen(std::string_view text) {
  std::wstring out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    out += static_cast<wchar_t>(c.code_point);
    text.remove_prefix(c.n_bytes);
  }
  return out;
}

std::string narrow(std::wstring_view text) {
  std::string out;
  for (const wchar_t c : text) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

class EditLineEditor final : public LineEditor {
 public:
  EditLineEditor(InterruptFlag& interrupt, EditLine* edit, HistoryW* history)
      : interrupt_(interrupt), edit_(edit), history_(history) {
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, kHistoryEntries);
    history_w(history_, &event, H_SETUNIQUE, 1);
    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_PROMPT, prompt_of);
    el_wset(edit_, EL_GETCFN, read_key);
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_ADDFN, L"hocket-paste", L"Insert what the terminal pastes", insert_paste);
    bind(L"\\e[200~", L"hocket-paste");
    bind(L"^R", L"em-inc-search-prev");
    bind(L"^W", L"ed-delete-prev-word");
    bind(L"\\e[1;5D", L"ed-prev-word");
    bind(L"\\e[1;5C", L"em-next-word");
    bind(L"\\e[3~", L"ed-delete-next-char");
    bind(L"\\e[H", L"ed-move-to-beg");
    bind(L"\\e[F", L"ed-move-to-end");
    // By default CR and LF are exchanged; a pasted CR LF must be known as one line break.
    el_wset(edit_, EL_SETTY, L"-d", L"-icrnl", L"-inlcr", static_cast<wchar_t*>(nullptr));
    el_source(edit_, nullptr);  // ~/.editrc
    struct sigaction action {};
    action.sa_handler = on_resize;
    action.sa_flags = SA_RESTART;
    sigaction(SIGWINCH, &action, nullptr);
  }
  ~EditLineEditor() override {
    std::signal(SIGWINCH, SIG_DFL);
    el_end(edit_);
    history_wend(history_);
  }

  Status read(const std::string& prompt, std::string& line) override {
    prompt_ = widen(prompt);
    interrupted_ = false;
    write_control(kPasteOn);
    el_resize(edit_);
    el_wset(edit_, EL_PREP_TERM, 1);  // before the prompt invites to type
    int n = 0;
    const wchar_t* text = el_wgets(edit_, &n);
    write_control(kPasteOff);
    if (interrupted_) return Status::kInterrupted;
    if (text == nullptr || n <= 0) return Status::kEnd;
    line = narrow(std::wstring_view(text, static_cast<std::size_t>(n)));
    if (!line.empty() && line.back() == '\n') line.pop_back();
    return Status::kLine;
  }

  void remember(const std::string& text) override {
    HistEventW event;
    history_w(history_, &event, H_ENTER, widen(text).c_str());
  }

  bool typed(const std::string& word) override {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0 && fill()) continue;
    const std::string wanted = word + '\n';
    const std::size_t at = ahead_.find(wanted);
    if (at == std::string::npos || (at > 0 && ahead_[at - 1] != '\n')) return false;
    ahead_.erase(at, wanted.size());
    return true;
  }

 private:
  void bind(const wchar_t* keys, const wchar_t* command) {
    el_wset(edit_, EL_BIND, keys, command, static_cast<wchar_t*>(nullptr));
  }
  static void write_control(const char* text) {
    std::fputs(text, stderr);
    std::fflush(stderr);
  }
  static EditLineEditor& self_of(EditLine* edit) {
    void* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return *static_cast<EditLineEditor*>(self);
  }
  static wchar_t* prompt_of(EditLine* edit) { return self_of(edit).prompt_.data(); }
  static int read_key(EditLine* edit, wchar_t* key) { return self_of(edit).next_key(*key); }
  static unsigned char insert_paste(EditLine* edit, wint_t) { return self_of(edit).paste(); }

  // One read of whatever is there.
  bool fill() {
    char bytes[1024];
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n <= 0) return false;
    ahead_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  // 1: a character; 0: the terminal is gone; -1: Ctrl-C.
  int next_key(wchar_t& key) {
    while (ahead_.empty() || incomplete_utf8_tail(ahead_) == ahead_.size()) {
      pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}};
      const int n = poll(fds, 2, -1);
      if (interrupt_.take()) {
        interrupted_ = true;
        return -1;
      }
      if (resized != 0) {
        resized = 0;
        el_resize(edit_);
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 || (fds[0].revents != 0 && !fill())) return 0;
    }
    const Utf8Char c = decode_utf8(ahead_);
    key = static_cast<wchar_t>(c.code_point);
    ahead_.erase(0, c.n_bytes);
    return 1;
  }

  unsigned char paste() {
    std::wstring text;
    wchar_t c = 0;
    while (el_wgetc(edit_, &c) == 1) {
      text += c;
      if (std::wstring_view(text).ends_with(kPasteEnd)) break;
    }
    if (interrupted_) return CC_FATAL;
    if (std::wstring_view(text).ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
    // Terminals send a line break as CR. Other control characters are no text.
    std::wstring clean;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == L'\r') {
        if (i + 1 < text.size() && text[i + 1] == L'\n') continue;
        clean += L'\n';
      } else if (text[i] >= 0x20 || text[i] == L'\t' || text[i] == L'\n') {
        clean += text[i];
      }
    }
    if (!clean.empty() && el_winsertstr(edit_, clean.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  InterruptFlag& interrupt_;
  EditLine* edit_;
  HistoryW* history_;
  std::wstring prompt_;
  std::string ahead_;  // typed and not yet taken
  bool interrupted_ = false;
};

bool can_edit() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return false;
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

}  // namespace

std::unique_ptr<LineEditor> LineEditor::open(InterruptFlag& interrupt, const std::vector<std::string>& history) {
  if (!can_edit()) return nullptr;
  // libedit asks the C library which characters can be shown and how wide they are.
  if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
  EditLine* edit = el_init("hocket", stdin, stderr, stderr);
  HistoryW* entries = history_winit();
  if (edit == nullptr || entries == nullptr) {
    if (edit != nullptr) el_end(edit);
    if (entries != nullptr) history_wend(entries);
    return nullptr;
  }
  auto editor = std::make_unique<EditLineEditor>(interrupt, edit, entries);
  for (const std::string& text : history) editor->remember(text);
  return editor;
}

}  // namespace hocket
