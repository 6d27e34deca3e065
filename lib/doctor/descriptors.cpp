#include "descriptors.hpp"

#include "sdma/core/number.hpp"
#include "words.hpp"

#include <algorithm>
#include <optional>

namespace sdma::inline v0::doctor {
namespace {

// Dwords of a descriptor of an sDMA queue.
constexpr std::size_t kControl = 0, kRing = 1, kRptrAddressHigh = 8, kRptrAddressLow = 9, kEngine = 126, kSlot = 127,
                      kDwords = 128;
constexpr std::uint32_t kSizeShift = 1, kSizeMask = 0x1f;  // of the ring in the control dword: log2 of its dwords
constexpr std::uint64_t kRingUnit = 256;

QueueDescriptor descriptor_of(std::uint32_t gpu_id, const std::vector<std::uint32_t>& d) {
  const auto wide = [&](std::size_t low, std::size_t high) { return std::uint64_t{d[high]} << 32 | d[low]; };
  return {.gpu_id = gpu_id,
          .ring = GpuVa{wide(kRing, kRing + 1) * kRingUnit},
          .rptr = GpuVa{wide(kRptrAddressLow, kRptrAddressHigh)},
          .ring_bytes = std::uint64_t{4} << (d[kControl] >> kSizeShift & kSizeMask),
          .engine = EngineId{d[kEngine]},
          .slot = d[kSlot]};
}

}  // namespace

std::vector<QueueDescriptor> sdma_descriptors(std::string_view mqds, int pid) {
  constexpr std::string_view kProcess = "Process ", kQueue = "SDMA queue on device ";
  std::vector<QueueDescriptor> all;
  std::vector<std::uint32_t> dwords;
  std::optional<std::uint32_t> gpu;
  bool ours = false;
  const auto finish = [&] {
    if (ours && gpu && dwords.size() >= kDwords) all.push_back(descriptor_of(*gpu, dwords));
    gpu.reset();
    dwords.clear();
  };
  while (!mqds.empty()) {
    auto line = take_line(mqds);
    if (const auto at = line.find_first_not_of(' '); at != line.npos) line.remove_prefix(at);
    if (line.starts_with(kProcess)) {
      finish();
      line.remove_prefix(kProcess.size());
      ours = parse_count(take_word(line)) == static_cast<std::uint64_t>(pid);
    } else if (line.starts_with(kQueue)) {
      finish();
      line.remove_prefix(kQueue.size());
      gpu = bare_hex<std::uint32_t>(take_word(line));
    } else if (const auto offset = line.find(':');
               gpu && offset != line.npos && bare_hex<std::uint32_t>(line.substr(0, offset))) {
      line.remove_prefix(offset + 1);
      for (auto word = take_word(line); !word.empty(); word = take_word(line))
        if (const auto n = bare_hex<std::uint32_t>(word)) dwords.push_back(*n);
    } else {
      finish();
    }
  }
  finish();
  return all;
}

}  // namespace sdma::inline v0::doctor
