// SPDX-License-Identifier: MIT
#pragma once
// In a verb of many steps on a device: the value of a Result, or the end of the verb.
//
//   action = [o] { return to_the_end([&] { return fetch_verb(*o); }); };
//
//   auto device = must(open_device(kind));            // an error is reported, and the verb ends with kInput
//   if (!w) fail(w.error(), *device, kPatience);      // a wait that gave up: why, as sdma doctor says it
//
// Each thread that calls these functions begins in `to_the_end`. Errors: reported, once.
#include "json/exit.hpp"
#include "output.hpp"
#include "sdma/device/device.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/sync/wait.hpp"

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

namespace sdma::tool {

/// What `fail` throws: the verb ends with this exit code, and the error has been reported.
struct VerbEnds {
  int code;
};

[[noreturn]] inline void fail(const Diagnostic& why, int code = kInput) {
  report(why);
  throw VerbEnds{code};
}
[[noreturn]] inline void fail(const std::string& why, int code = kInput) {
  complain(why);
  throw VerbEnds{code};
}
/// After a wait that gave up after this time.
[[noreturn]] inline void fail(const StallReport& r, const Device& d, std::chrono::nanoseconds waited) {
  const auto peek = [&](GpuVa va, std::span<std::byte> out) { return d.peek(va, out); };
  auto why = to_text(doctor::diagnose(doctor::snapshot_of(r, peek, waited)));
  while (why.ends_with('\n')) why.pop_back();
  fail(why, kRefuted);
}

template <class T> T must(Result<T, Diagnostic> r) {
  if (!r) fail(r.error());
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}
template <class T> T must(Result<T> r) {
  if (!r) fail(std::string(message(r.error())), kRefuted);
  return std::move(*r);
}
inline void must(Errc e) {
  if (e != Errc::ok) fail(std::string(message(e)), kRefuted);
}

template <class Work> int to_the_end(Work work) {
  try {
    return work();
  } catch (const VerbEnds& e) {
    return e.code;
  }
}

}  // namespace sdma::tool
