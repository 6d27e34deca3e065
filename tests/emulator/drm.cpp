// SPDX-License-Identifier: MIT
// GPUs as libdrm and what is above it find them: PCI devices with two DRM nodes each. Part of the program of ioctl.cpp.
#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>

using namespace sdma::raw;

namespace {

std::set<std::string> names(const std::string& path) {
  std::set<std::string> out;
  auto* d = ::opendir(path.c_str());
  REQUIRE(d);
  while (const auto* e = ::readdir(d))
    if (e->d_name[0] != '.') out.insert(e->d_name);
  ::closedir(d);
  return out;
}

std::string target(const std::string& path) {
  std::array<char, 256> room{};
  const auto n = ::readlink(path.c_str(), room.data(), room.size());
  return n > 0 ? std::string(room.data(), static_cast<std::size_t>(n)) : "";
}

}  // namespace

TEST_CASE("each GPU is a PCI device with a primary and a render node") {
  const auto nodes = std::set<std::string>{"card0", "card1", "renderD128", "renderD129"};
  auto of_dri = names("/dev/dri");
  CHECK(of_dri.erase("by-path") == 1);
  CHECK(of_dri == nodes);
  CHECK(target("/dev/dri/by-path/pci-0000:18:00.0-render") == "../renderD129");
  auto of_class = names("/sys/class/drm");
  CHECK(of_class.erase("version") == 1);
  CHECK(of_class == nodes);
  CHECK(names("/sys/dev/char/226:129/device/drm") == std::set<std::string>{"card1", "renderD129"});
  CHECK(target("/sys/dev/char/226:128/device/subsystem") == "../../../bus/pci");
  CHECK(target("/sys/class/drm/card1") == "../../devices/pci0000:18/0000:18:00.0/drm/card1");
  CHECK(target("/sys/class/drm/card1/device") == "../../../0000:18:00.0");
  CHECK(target("/sys/class/hwmon/hwmon1/device") == "../../../0000:18:00.0");
  std::string line;
  REQUIRE(std::getline(std::ifstream("/sys/class/drm/renderD128/device/device"), line));
  CHECK(line == "0x74a1");
  struct stat s {};
  REQUIRE(::lstat("/sys/class/drm/renderD128", &s) == 0);
  CHECK(S_ISLNK(s.st_mode));
  REQUIRE(::stat("/sys/class/drm/renderD128", &s) == 0);
  CHECK(S_ISDIR(s.st_mode));
  REQUIRE(::stat("/dev/dri/card0", &s) == 0);
  CHECK(s.st_rdev == makedev(226, 0));
  CHECK(::stat("/sys/dev/char/226:130", &s) == -1);
  CHECK(::readlink("/sys/class/drm", line.data(), line.size()) == -1);
  CHECK(errno == EINVAL);
}

TEST_CASE("a primary node is the same GPU; who asks for a display's master on a render node has no right to") {
  Client c;
  const int card = ::open("/dev/dri/card1", O_RDWR | O_CLOEXEC);
  REQUIRE(card >= 0);
  std::array<std::uint64_t, 5> client{};
  CHECK(::ioctl(card, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x05, sizeof client), client.data()) == 0);
  CHECK(client[0] >> 32 == 1);  // authenticated
  CHECK(::ioctl(c.render[1], _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x05, sizeof client), client.data()) == -1);
  CHECK(errno == EACCES);
  kfd::AcquireVm vm{.drm_fd = static_cast<std::uint32_t>(card), .gpu_id = c.gpu_id(0)};
  CHECK(call(c.kfd, Nr::acquire_vm, vm) == EBUSY);
  vm.gpu_id = c.gpu_id(1);
  CHECK(call(c.kfd, Nr::acquire_vm, vm) == EBUSY);  // this process has the address space of another file
  ::close(card);
}

TEST_CASE("what a render node says of firmware and memory") {
  Client c;
  const int fd = c.render[0];
  std::array<std::uint32_t, 2> version{};
  CHECK(ask(fd, 0x0e, version, 0x0b, 15) == 0);
  CHECK(version[0] == c.node.gpus[0].sdma_firmware);
  CHECK(ask(fd, 0x0e, version, 0x0b, 16) == EINVAL);  // as many as engines
  CHECK(ask(fd, 0x0e, version, 0x08) == 0);
  CHECK(version[0] == c.node.gpus[0].firmware);
  CHECK(ask(fd, 0x0e, version, 0x04) == 0);
  CHECK(version[0] == 0);  // no graphics
  CHECK(ask(fd, 0x0e, version, 0x00) == EINVAL);
  CHECK(ask(fd, 0x0e, version, 0x7f) == EINVAL);
  CHECK(ask(fd, {.pointer = 0, .bytes = 4}) == EINVAL);
  // Buffers can be shared. There are no sync objects.
  sdma::drm::Cap cap{.capability = sdma::drm::kPrime, .value = 0};
  CHECK(drm_call(fd, sdma::drm::kGetCap, cap) == 0);
  CHECK(cap.value == 3);
  cap = {.capability = 0x13, .value = 7};
  CHECK(drm_call(fd, sdma::drm::kGetCap, cap) == 0);
  CHECK(cap.value == 0);
  std::uint64_t used = 1;
  CHECK(ask(fd, 0x10, used) == 0);
  const auto before = used;
  auto m = c.allocate(2 << 20, 0, kfd::kVram);
  CHECK(ask(fd, 0x10, used) == 0);
  CHECK(used == before + (2 << 20));
  CHECK(c.free(m) == 0);
}

TEST_CASE("libdrm_amdgpu tells two GPUs apart") {
  auto* library = ::dlopen("libdrm_amdgpu.so.1", RTLD_NOW);
  if (!library) {
    WARN("no libdrm_amdgpu here");
    return;
  }
  const auto initialize = reinterpret_cast<int (*)(int, std::uint32_t*, std::uint32_t*, void**)>(
      ::dlsym(library, "amdgpu_device_initialize"));
  const auto deinitialize = reinterpret_cast<int (*)(void*)>(::dlsym(library, "amdgpu_device_deinitialize"));
  REQUIRE((initialize && deinitialize));
  Client c;
  std::uint32_t major = 0, minor = 0;
  void *first = nullptr, *again = nullptr, *second = nullptr;
  REQUIRE(initialize(c.render[0], &major, &minor, &first) == 0);
  CHECK(major == 3);
  REQUIRE(initialize(c.render[0], &major, &minor, &again) == 0);
  REQUIRE(initialize(c.render[1], &major, &minor, &second) == 0);
  CHECK(first == again);  // one device has one handle there, however often it is opened
  CHECK(first != second);
  for (auto* d : {first, again, second}) CHECK(deinitialize(d) == 0);
}
