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
namespace {

void absent(VerbOptions& verb, Action& action, const std::string& name) {
  auto words = std::make_shared<std::vector<std::string>>();
  verb.values("WORDS", *words, "ignored");
  action = [name] {
    complain("the playground has no sdma " + name,
             "it has dis, as, check, fmt and simulate; the installed program has all verbs");
    return kUsage;
  };
}

}  // namespace

// No signal comes: the page ends a run with its worker.
void end_at_interrupt(bool) {}
Doing::Doing(const std::string&) : outer_(nullptr) {}
Doing::~Doing() { static_cast<void>(which_), static_cast<void>(outer_), static_cast<void>(shown_); }
void Doing::now(const std::string&) {}
void Doing::show_now(const std::string&) {}
Unbroken::Unbroken() noexcept = default;
Unbroken::~Unbroken() = default;
void answered() noexcept {}
int stopped(const std::string& how_far) { return complain(how_far), kInterrupted; }

Result<std::vector<Member>, Diagnostic> unpack(std::string_view bytes, const std::string& name) {
  const auto& p = *packing_of(bytes);
  return Diagnostic{.where = name,
                    .message = fmt::format("this is packed ({}), and the playground does not unpack", p.name),
                    .hint = fmt::format("{} {}, then give the file that it writes", p.command, name)};
}
void add_doctor(VerbOptions& verb, Action& action) { absent(verb, action, "doctor"); }
void add_run(VerbOptions& verb, Action& action) { absent(verb, action, "run"); }
void add_explore(VerbOptions& verb, Action& action) { absent(verb, action, "explore"); }
void add_reduce(VerbOptions& verb, Action& action) { absent(verb, action, "reduce"); }
void add_compare(VerbOptions& verb, Action& action) { absent(verb, action, "compare"); }
void add_calibrate(VerbOptions& verb, Action& action) { absent(verb, action, "calibrate"); }
void add_contact(VerbOptions& verb, Action& action) { absent(verb, action, "contact"); }
void add_topology(VerbOptions& verb, Action& action) { absent(verb, action, "topology"); }
void add_trace(VerbOptions& verb, Action& action) { absent(verb, action, "trace"); }
void add_emulate(VerbOptions& verb, Action& action) {
  verb.flag("--json", *std::make_shared<bool>(), "ignored"), absent(verb, action, "emulate");
}

}  // namespace sdma::tool

/// Extended attributes, which Emscripten's C library declares only.
extern "C" ssize_t fgetxattr(int, const char*, void*, size_t) {
  errno = ENOTSUP;
  return -1;
}
