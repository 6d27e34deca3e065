#include "driver.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sdma {
inline namespace v0 {
namespace detail::kfd {
namespace {

struct DrmVersion {
  std::int32_t major{}, minor{}, patch{}, pad{};
  std::uint64_t name_bytes{};
  char* name{};
  std::uint64_t date_bytes{};
  char* date{};
  std::uint64_t text_bytes{};
  char* text{};
};
static_assert(sizeof(DrmVersion) == 64);

struct AmdgpuInfo {
  std::uint64_t answer{};
  std::uint32_t answer_bytes{}, query{};
  std::uint32_t type{}, instance{}, index{}, pad{};
};
static_assert(sizeof(AmdgpuInfo) == 32);

constexpr unsigned long kDrmVersion = _IOWR('d', 0x00, DrmVersion), kAmdgpuInfo = _IOW('d', 0x45, AmdgpuInfo);
constexpr std::uint32_t kFirmware = 0x0e, kDevice = 0x16;           // queries
constexpr std::uint32_t kFirmwareMec = 0x08, kFirmwareSdma = 0x0b;  // kinds of firmware
constexpr std::size_t kCounterKhz = 28;                             // where the device's answer has its clock

}  // namespace

int call(int fd, unsigned long request, void* args) noexcept {
  int status = 0;
  do {
    status = ::ioctl(fd, request, args);
  } while (status == -1 && (errno == EINTR || errno == EAGAIN));
  return status == -1 ? errno : 0;
}

int identify(int render, Identity& out) {
  std::array<char, 32> name{};
  DrmVersion v{.name_bytes = name.size() - 1, .name = name.data()};
  if (const int error = call(render, kDrmVersion, &v)) return error;
  out.driver = fmt::format("{} {}.{}", name.data(), v.major, v.minor);

  std::array<std::byte, 512> device{};
  AmdgpuInfo question{.answer = reinterpret_cast<std::uint64_t>(device.data()),
                      .answer_bytes = static_cast<std::uint32_t>(device.size()),
                      .query = kDevice};
  if (const int error = call(render, kAmdgpuInfo, &question)) return error;
  std::uint32_t khz = 0;
  std::memcpy(&khz, device.data() + kCounterKhz, sizeof khz);
  out.clock_hz = std::uint64_t{khz} * 1000;

  const auto firmware = [&](std::uint32_t type, std::uint32_t& version, std::uint32_t& feature) {
    std::uint32_t answer[2]{};
    AmdgpuInfo q{.answer = reinterpret_cast<std::uint64_t>(answer),
                 .answer_bytes = sizeof answer,
                 .query = kFirmware,
                 .type = type};
    if (call(render, kAmdgpuInfo, &q) != 0) return;
    version = answer[0];
    feature = answer[1];
  };
  std::uint32_t unused = 0;
  firmware(kFirmwareSdma, out.sdma_firmware, out.sdma_feature);
  firmware(kFirmwareMec, out.compute_firmware, unused);
  return 0;
}

}  // namespace detail::kfd
}  // namespace v0
}  // namespace sdma
