#pragma once
// What every example needs and none is about: a device of the ordering that the command line names, and an end with a reason.
#include "sdma/device/soft.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/wait.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace example {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

/// The value, or the end of the program with what is wrong, where, and what to do about it.
template <class T> T must(sdma::Result<T, sdma::Diagnostic> r) {
  if (!r) fail(to_string(r.error()));
  return std::move(*r);
}

/// Waits for `signal` >= `value`; ends the program with the reason why it did not come.
inline void must_reach(const sdma::Signal& signal, std::uint64_t value, const sdma::Ring<>& ring,
                       const sdma::Device& d) {
  const auto r = wait(signal, sdma::Compare::ge, value, sdma::Deadline::in(std::chrono::seconds(10)), ring);
  const auto peek = [&](sdma::GpuVa va, std::span<std::byte> out) { return d.peek(va, out); };
  if (!r) fail(describe(r.error(), peek));
}

/// A software node. NAME [strict|rocr|adversarial [SEED]]: how weakly ordered it is.
inline std::unique_ptr<sdma::Device> open_device(int argc, char** argv, std::uint32_t gpus) {
  sdma::SoftOptions options{.gpus = gpus};
  const std::string_view wanted = argc > 1 ? argv[1] : "strict";
  const auto usage = std::string("usage: ") + argv[0] + " [strict|rocr|adversarial [SEED]]";
  if (wanted == "--help" || wanted == "-h") {
    std::puts(usage.c_str());
    std::exit(0);
  }
  bool known = false;
  for (const auto o : {sdma::Ordering::strict, sdma::Ordering::rocr, sdma::Ordering::adversarial})
    if (name(o) == wanted) options.ordering = o, known = true;
  if (!known) fail(usage);
  if (argc > 2) options.seed = std::strtoull(argv[2], nullptr, 0);
  return must(sdma::SoftDevice::open(options));
}

}  // namespace example
