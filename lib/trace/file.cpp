#include "sdma/core/file.hpp"
#include "sdma/trace/write.hpp"
#include "text.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <memory>
#include <system_error>

namespace sdma {
inline namespace v0 {
namespace trace {
namespace {

std::string reason(int error) { return std::error_code(error, std::generic_category()).message(); }

struct Close {
  void operator()(std::FILE* f) const noexcept {
    if (f != stdin) static_cast<void>(std::fclose(f));
  }
};

}  // namespace

namespace detail {

void append_string(std::string& out, std::string_view s) {
  out += nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::string, Diagnostic> load(const std::string& path) {
  const bool standard = path == "-";
  const std::string where = standard ? "standard input" : path;
  errno = 0;
  const std::unique_ptr<std::FILE, Close> f(standard ? stdin : std::fopen(path.c_str(), "rb"));
  if (!f) return Diagnostic{.where = where, .message = fmt::format("cannot be read: {}", reason(errno)), .hint = ""};
  std::string text;
  char buffer[65536];
  while (const auto n = std::fread(buffer, 1, sizeof buffer, f.get())) text.append(buffer, n);
  if (std::ferror(f.get()) != 0)
    return Diagnostic{.where = where, .message = fmt::format("cannot be read: {}", reason(errno)), .hint = ""};
  return text;
}

}  // namespace detail

Result<void, Diagnostic> save_json_lines(const Trace& t, const std::string& path) {
  return save_file(path, to_json_lines(t));
}
Result<void, Diagnostic> save_perfetto(const Trace& t, const std::string& path) {
  return save_file(path, to_perfetto(t));
}
Result<Trace, Diagnostic> load_json_lines(const std::string& path) {
  const auto text = detail::load(path);
  if (!text) return text.error();
  return from_json_lines(*text, path == "-" ? "standard input" : path);
}

}  // namespace trace
}  // namespace v0
}  // namespace sdma
