// SPDX-License-Identifier: MIT
// Core files with any numbers in their headers, notes and queues are diagnosed or refused. The input: which part an
// edit is in, its position and its bytes, as often as it lasts; then what is left is the ring.
#include "../doctor/core_file.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/read.hpp"

#include <algorithm>
#include <cstdlib>

using namespace sdma;

namespace {

struct Edit {
  std::uint8_t in{}, bytes{};
  std::uint16_t at{};
  std::uint8_t value[8]{};
};

void apply(core_file::Bytes& file, const Edit& e) {
  const auto n = std::min<std::size_t>(e.bytes % 9, sizeof e.value);
  for (std::size_t i = 0; i < n; ++i) file[(e.at + i) % file.size()] = std::byte{e.value[i]};
}

void check(const doctor::Snapshot& s) {
  const auto d = diagnose(s);
  if (d.findings.empty() || d.queues.size() != s.queues.size()) std::abort();
  if (to_text(d).empty() || to_json(d).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  core_file::GpuCore gpu;
  gpu.wptr = 64;
  gpu.ring.resize(256);
  const auto files =
      core_file::files({{0x7d0000000000, 0x7d0000001000, "/dev/kfd"}, {0x7e0000000000, 0x7e0000002000, "/x"}});
  auto host =
      core_file::core(EM_X86_64, files, {{0x7d0000000000, 0x1000, {}}, {0x7e0000000000, 64, core_file::Bytes(64)}});
  std::vector<Edit> edits(size > 0 ? data[0] % 8u : 0u);
  if (size > 0) ++data, --size;
  for (auto& e : edits) {
    const auto n = std::min(size, sizeof e);
    if (n != 0) std::memcpy(&e, data, n);
    data += n;
    size -= n;
  }
  if (size != 0) std::memcpy(gpu.ring.data(), data, std::min(size, gpu.ring.size() * 4));
  auto bytes = gpu.bytes();
  // Headers and notes come first, and the ring after them.
  for (const auto& e : edits) apply(e.in % 2 == 0 ? bytes : host, e);
  doctor::Snapshot s;
  for (const auto* file : {&host, &bytes}) {
    const auto done = doctor::is_core(*file) ? doctor::add_core(s, *file, "fuzz") : Result<void, Diagnostic>{};
    if (!done && (done.error().message.empty() || done.error().where != "fuzz")) std::abort();
  }
  (void)doctor::is_gpu_core(bytes);
  check(s);
  return 0;
}
