// SPDX-License-Identifier: MIT
// What a browser lacks: Ctrl-C, archives, extended attributes. tests/tools/absent_verb.py runs it natively, too.
#include "archive.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <sys/types.h>

#include <cerrno>
#include <string>

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

}  // namespace sdma::tool

/// Extended attributes, which Emscripten's C library declares only.
extern "C" ssize_t fgetxattr(int, const char*, void*, size_t) {
  errno = ENOTSUP;
  return -1;
}
