// SPDX-License-Identifier: MIT
#pragma once
// Shared by all examples: opens the device that the command line names, and ends the program with a reason.
#include "sdma/device/open.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/sync/wait.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

namespace example {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

/// Ends the program with the reason why a wait gave up after this time.
[[noreturn]] inline void fail(const sdma::StallReport& r, const sdma::Device& d, std::chrono::nanoseconds waited) {
  const auto peek = [&](sdma::GpuVa va, std::span<std::byte> out) { return d.peek(va, out); };
  fail(to_text(sdma::doctor::diagnose(sdma::doctor::snapshot_of(r, peek, waited))));
}

/// Returns the value, or ends the program with a message.
template <class T> T must(sdma::Result<T, sdma::Diagnostic> r) {
  if (!r) fail(to_string(r.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}
template <class T> T must(sdma::Result<T> r) {
  if (!r) fail(std::string(message(r.error())));
  return std::move(*r);
}
inline void must(sdma::Errc e) {
  if (e != sdma::Errc::ok) fail(std::string(message(e)));
}

/// The exit code of main. Ends the program with a message if its
/// output could not be written (a full disk, a closed pipe).
inline int printed() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) fail("cannot write to standard output");
  return 0;
}

/// Call it between the host's stores to GPU memory and the doorbell, and between a completion and the host's
/// loads, because the hardware buffers that path. The software node has no such buffer, but a program for both
/// always calls this.
inline void flush_host_path(const sdma::Device& d) {
  for (std::uint32_t g = 0; g < d.topology().gpus.size(); ++g) (void)d.flush_host_writes(sdma::GpuId{g});
}

/// Waits for `signal` >= `value`. After that, the host may read what engines
/// have stored. Ends the program with a reason if the value does not arrive.
inline void must_reach(const sdma::Signal& signal, std::uint64_t value, const sdma::Ring<>& ring,
                       const sdma::Device& d) {
  constexpr std::chrono::seconds kPatience(10);
  const auto r = wait(signal, sdma::Compare::ge, value, sdma::Deadline::in(kPatience), ring);
  if (!r) fail(r.error(), d, kPatience);
  flush_host_path(d);
}

/// Ends the program unless the device has this many GPUs.
inline void need_gpus(const sdma::Device& d, std::uint32_t gpus) {
  if (const auto have = d.topology().gpus.size(); have < gpus)
    fail("this node has " + std::to_string(have) + " GPUs, but " + std::to_string(gpus) + " are needed");
}

/// NAME [--device=soft|kfd|cuda|rocr] [strict|rocr|adversarial [SEED]]: a software node with that ordering, or a real
/// one.
inline std::unique_ptr<sdma::Device> open_device(int argc, char** argv, std::uint32_t gpus) {
  const auto usage =
      std::string("usage: ") + argv[0] + " [--device=soft|kfd|cuda|rocr] [strict|rocr|adversarial [SEED]]";
  std::vector<std::string_view> words;
  auto kind = sdma::DeviceKind::soft;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::puts(usage.c_str());
      std::exit(0);
    }
    constexpr std::string_view kDevice = "--device=";
    const auto named = word.starts_with(kDevice) ? sdma::device_kind(word.substr(kDevice.size())) : std::nullopt;
    if (named) kind = *named;
    else words.push_back(word);
  }
  sdma::SoftOptions options{.gpus = gpus};
  bool known = words.empty();
  for (const auto o : {sdma::Ordering::strict, sdma::Ordering::rocr, sdma::Ordering::adversarial})
    if (!words.empty() && name(o) == words[0]) options.ordering = o, known = true;
  if (!known || words.size() > (kind == sdma::DeviceKind::soft ? 2 : 0)) fail(usage);
  if (words.size() > 1) options.seed = std::strtoull(std::string(words[1]).c_str(), nullptr, 0);
  auto device = must(sdma::open_device(kind, {.gpus = gpus, .soft = options}));
  if (const auto note = sdma::caveat(*device); !note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  need_gpus(*device, gpus);
  return device;
}

}  // namespace example
