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

Result<void, Diagnostic> save(std::string_view text, const std::string& path) {
  const bool standard = path == "-";
  const std::string where = standard ? "standard output" : path;
  errno = 0;
  auto* f = standard ? stdout : std::fopen(path.c_str(), "wb");
  if (!f) return Diagnostic{.where = where, .message = fmt::format("cannot be written: {}", reason(errno)), .hint = ""};
  const auto written = std::fwrite(text.data(), 1, text.size(), f);
  auto error = written == text.size() && std::fflush(f) == 0 ? 0 : errno;
  if (error == 0 && written != text.size()) error = EIO;
  // The last bytes of a full or remote disk are refused as late as here.
  if (!standard && std::fclose(f) != 0 && error == 0) error = errno;
  if (error == 0) return {};
  return Diagnostic{
      .where = where,
      .message = fmt::format("the trace of {} bytes was not written completely: {}", text.size(), reason(error)),
      .hint = "what is there is cut off: make room, or name another file"};
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
  return detail::save(to_json_lines(t), path);
}
Result<void, Diagnostic> save_perfetto(const Trace& t, const std::string& path) {
  return detail::save(to_perfetto(t), path);
}
Result<Trace, Diagnostic> load_json_lines(const std::string& path) {
  const auto text = detail::load(path);
  if (!text) return text.error();
  return from_json_lines(*text, path == "-" ? "standard input" : path);
}

}  // namespace trace
}  // namespace v0
}  // namespace sdma
