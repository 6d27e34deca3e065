// SPDX-License-Identifier: MIT
// What a browser lacks. The verbs that need devices, processes or
// threads are here in name only, so that `sdma --help` is the same.
#include "archive.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <sys/types.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace sdma::tool {
// No signal comes: the page ends a run with its worker.
void end_at_interrupt(bool) {}
Doing::Doing(const std::string&) : outer_(nullptr) {}
Doing::~Doing() { static_cast<void>(which_), static_cast<void>(outer_); }
void Doing::now(const std::string&) {}
void Doing::show_now(const std::string&) {}
Unbroken::Unbroken() noexcept = default;
Unbroken::~Unbroken() = default;
void answered() noexcept {}
int stopped(const std::string& how_far) { return complain(how_far), kInterrupted; }

Result<Unpacked, Diagnostic> unpack_parts(std::string_view bytes, const std::string& name) {
  const auto& p = *packing_of(bytes);
  return Diagnostic{.where = name,
                    .message = fmt::format("this is packed ({}), and the playground does not unpack", p.name),
                    .hint = fmt::format("{} {}, then give the file that it writes", p.command, name)};
}
void add_absent(VerbOptions& verb, Action& action) {
  verb.values("WORDS", *std::make_shared<std::vector<std::string>>(), "ignored");
  verb.flag("--json", *std::make_shared<bool>(), "ignored");
  action = [name = verb.name()] {
    complain("the playground has no sdma " + name,
             "it has dis, as, check, fmt and simulate; the installed program has all verbs");
    return kUsage;
  };
}

}  // namespace sdma::tool

/// Extended attributes, which Emscripten's C library declares only.
extern "C" ssize_t fgetxattr(int, const char*, void*, size_t) {
  errno = ENOTSUP;
  return -1;
}
