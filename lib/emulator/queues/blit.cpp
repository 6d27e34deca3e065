#include "blit.hpp"

#include "../rocr.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr std::size_t kCodeBytes = 96;    ///< enough to distinguish kernels
constexpr std::size_t kEntryOffset = 16;  ///< in a kernel object: the offset of its code, relative to the object

struct Job {
  GpuVa src{}, dst{};  ///< a fill has no source
  std::uint64_t bytes{};
  bool fill{};
  std::uint32_t value{};
};

/// Decodes arguments with `phases` phases; bytes = 0: they do not have that form.
Job copy_of(const std::byte* args, std::size_t phases, std::uint32_t items) noexcept {
  std::array<std::uint64_t, 5> src{}, dst{};
  for (std::size_t i = 0; i <= phases; ++i) {
    src[i] = field<std::uint64_t>(args, i * 16);
    dst[i] = field<std::uint64_t>(args, i * 16 + 8);
    if (src[i] < src[0] || src[i] - src[0] != dst[i] - dst[0] || (i != 0 && src[i] < src[i - 1])) return {};
  }
  if (field<std::uint32_t>(args, (phases + 1) * 16) != items) return {};
  return {.src = GpuVa{src[0]}, .dst = GpuVa{dst[0]}, .bytes = src[phases] - src[0]};
}

Job fill_of(const std::byte* args, std::uint32_t items) noexcept {
  const auto begin = field<std::uint64_t>(args, 0), middle = field<std::uint64_t>(args, 8),
             end = field<std::uint64_t>(args, 16);
  if (begin > middle || middle > end || (end - begin) % 4 != 0 || field<std::uint32_t>(args, 28) != items) return {};
  return {.dst = GpuVa{begin}, .bytes = end - begin, .fill = true, .value = field<std::uint32_t>(args, 24)};
}

}  // namespace

Blit run_blit(const std::byte* packet, AddressSpace::Reader& memory, std::uint64_t* done, GpuVa* missing) noexcept {
  constexpr std::size_t kArgBytes = 96;
  const GpuVa object{field<std::uint64_t>(packet, 32)}, arguments{field<std::uint64_t>(packet, 40)};
  const auto items = field<std::uint32_t>(packet, 12);
  const auto* header = memory.at(object, 64, Access::read);
  if (!header) return Blit::not_ours;
  const auto* code = memory.at(object + field<std::uint64_t>(header, kEntryOffset), kCodeBytes, Access::read);
  if (!code || !search_rocr({code, kCodeBytes}).found) return Blit::not_ours;
  const auto* args = memory.at(arguments, kArgBytes, Access::read);
  if (!args) return Blit::not_ours;
  auto job = copy_of(args, 4, items);
  if (job.bytes == 0) job = copy_of(args, 2, items);
  if (job.bytes == 0) job = fill_of(args, items);
  if (job.bytes == 0) return Blit::not_ours;
  // The program may have changed the arguments since the last call.
  const auto before = std::min(*done, job.bytes);
  job.src = job.src + before;
  job.dst = job.dst + before;
  job.bytes -= before;
  const auto rest = job.bytes > kBlitStep ? job.bytes - kBlitStep : 0;
  *done = before + (job.bytes - rest);
  while (job.bytes != rest) {
    const auto to = memory.run(job.dst, job.bytes - rest, Access::write);
    if (to.empty()) return *missing = job.dst, Blit::unmapped;
    auto n = to.size();
    if (job.fill) {
      for (std::size_t i = 0; i + 4 <= n; i += 4) std::memcpy(to.data() + i, &job.value, 4);
    } else {
      const auto from = memory.run(job.src, n, Access::read);
      if (from.empty()) return *missing = job.src, Blit::unmapped;
      n = from.size();
      std::memmove(to.data(), from.data(), n);
      job.src = job.src + n;
    }
    job.dst = job.dst + n;
    job.bytes -= n;
  }
  return rest == 0 ? Blit::done : Blit::more;
}

}  // namespace sdma::emulator
