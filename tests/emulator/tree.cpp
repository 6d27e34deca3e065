// SPDX-License-Identifier: MIT
// What programs read in the tree about a GPU, consistent with what the topology and the ioctls say about it.
#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <dirent.h>
#include <linux/pci_regs.h>
#include <sys/klog.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

using namespace sdma::raw;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::uint64_t number_in(const std::string& path) { return std::strtoull(bytes_of(path).c_str(), nullptr, 0); }

/// A GPU's directory, by its index.
std::string of_gpu(std::size_t i) { return "/sys/class/drm/card" + std::to_string(i) + "/device/"; }

template <class T> T field(const std::string& bytes, std::size_t at) {
  T v{};
  REQUIRE(at + sizeof v <= bytes.size());
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

struct Resource {
  std::uint64_t begin{}, end{}, flags{};
};
Resource resource(const std::string& text, std::size_t line) {
  Resource r;
  constexpr std::size_t kLine = 57;
  REQUIRE(std::sscanf(text.c_str() + line * kLine, "%lx %lx %lx", &r.begin, &r.end, &r.flags) == 3);
  return r;
}

}  // namespace

TEST_CASE("the configuration space says what the files say") {
  Client c;
  for (std::size_t i = 0; i < c.node.gpus.size(); ++i) {
    const auto at = of_gpu(i);
    const auto config = bytes_of(at + "config");
    REQUIRE(config.size() >= 256);
    CHECK(field<std::uint16_t>(config, PCI_VENDOR_ID) == number_in(at + "vendor"));
    CHECK(field<std::uint16_t>(config, PCI_DEVICE_ID) == number_in(at + "device"));
    CHECK(field<std::uint16_t>(config, PCI_DEVICE_ID) == c.node.gpus[i].device_id);
    CHECK(field<std::uint32_t>(config, PCI_CLASS_REVISION) >> 8 == number_in(at + "class"));
    CHECK(field<std::uint16_t>(config, PCI_SUBSYSTEM_VENDOR_ID) == number_in(at + "subsystem_vendor"));
    CHECK(field<std::uint16_t>(config, PCI_SUBSYSTEM_ID) == number_in(at + "subsystem_device"));
    const auto resources = bytes_of(at + "resource");
    for (const std::size_t bar : {0u, 2u}) {
      const auto r = resource(resources, bar);
      const auto low = field<std::uint64_t>(config, PCI_BASE_ADDRESS_0 + 4 * bar);
      CHECK((low & PCI_BASE_ADDRESS_MEM_MASK) == r.begin);
      CHECK((low & 15) == (r.flags & 15));
      CHECK(((r.end + 1 - r.begin) & (r.end - r.begin)) == 0);  // a power of two
      CHECK(r.begin % (r.end + 1 - r.begin) == 0);
    }
    CHECK(resource(resources, 0).end - resource(resources, 0).begin + 1 >= c.node.topology.gpus[i].memory_bytes);
    CHECK(field<std::uint32_t>(config, PCI_BASE_ADDRESS_5) == resource(resources, 5).begin);
    // A chain with one capability: PCI Express, with a link of 16 lanes.
    REQUIRE((field<std::uint16_t>(config, PCI_STATUS) & PCI_STATUS_CAP_LIST) != 0);
    const auto capability = field<std::uint8_t>(config, PCI_CAPABILITY_LIST);
    CHECK(field<std::uint8_t>(config, capability) == PCI_CAP_ID_EXP);
    CHECK(field<std::uint8_t>(config, capability + 1u) == 0);
    CHECK((field<std::uint16_t>(config, capability + std::size_t{PCI_EXP_LNKSTA}) & PCI_EXP_LNKSTA_NLW) ==
          PCI_EXP_LNKSTA_NLW_X1 * 16);
    CHECK(number_in(at + "current_link_width") == 16);
    CHECK(bytes_of(at + "local_cpulist") != "");
    CHECK(bytes_of(at + "local_cpus") != "");
  }
}

TEST_CASE("blocks of the discovery table") {
  Client c;
  const auto gfx = c.node.topology.gpus[0].gfx;
  const auto die = of_gpu(0) + "ip_discovery/die/0/";
  const auto version = [&](const std::string& block) {
    return std::to_string(number_in(die + block + "/0/major")) + "." +
           std::to_string(number_in(die + block + "/0/minor")) + "." +
           std::to_string(number_in(die + block + "/0/revision"));
  };
  CHECK(version("GC") == (gfx == 90010 ? "9.4.2" : "9.4.3"));
  CHECK(version("42") == (gfx == 90010 ? "4.4.0" : "4.4.2"));
  CHECK(version("NBIF") == (gfx == 90010 ? "7.4.4" : "7.9.0"));
  const auto engines = c.node.topology.gpus[0].engines();
  CHECK(number_in(die + "SDMA0/" + std::to_string(engines - 1) + "/num_instance") == engines - 1);
  CHECK(bytes_of(die + "SDMA0/" + std::to_string(engines) + "/num_instance").empty());
  CHECK(bytes_of(die + "11/0/base_addr").starts_with("0x00002000\n0x0000A000\n"));
  CHECK(number_in(die + "11/0/num_base_addresses") == 3);
  // num_ips counts the instances of all blocks.
  std::uint64_t instances = 0;
  auto* blocks = ::opendir(die.c_str());
  REQUIRE(blocks);
  while (const auto* b = ::readdir(blocks)) {
    if (b->d_type != DT_DIR || b->d_name[0] == '.') continue;
    auto* d = ::opendir((die + b->d_name).c_str());
    while (const auto* e = ::readdir(d)) instances += e->d_name[0] != '.';
    ::closedir(d);
  }
  ::closedir(blocks);
  CHECK(number_in(die + "num_ips") == instances);
}

TEST_CASE("xGMI, product and capability") {
  Client c;
  const auto n = c.node.gpus.size();
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = of_gpu(i);
    CHECK(number_in(at + "xgmi_physical_id") == i);
    CHECK(bytes_of(at + "vbios_version") == "sdma-emulator\n");
    CHECK(bytes_of(at + "product_name") == "AMD Instinct " + c.node.topology.gpus[i].name + "\n");
    if (n == 1) continue;
    CHECK(number_in(at + "xgmi_hive_info/xgmi_hive_id") == c.node.gpus[i].hive_id);
    CHECK(number_in(at + "xgmi_hive_info/node" + std::to_string(n) + "/xgmi_physical_id") == n - 1);
    std::string hops;
    for (std::size_t k = 0; k < n; ++k) hops += k == i ? "00 " : "01 ";
    CHECK(bytes_of(at + "xgmi_num_hops") == hops + "\n");
    const auto properties =
        bytes_of("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(c.node.gpus[i].kfd_node) + "/properties");
    const auto capability = std::strtoull(properties.c_str() + properties.find("\ncapability ") + 12, nullptr, 10);
    constexpr std::uint64_t kSramEcc = 1u << 26;
    CHECK((capability & kSramEcc) != 0);
  }
}

TEST_CASE("used memory follows allocations, and so does the directory of the process") {
  Client c;
  const auto used = of_gpu(0) + "mem_info_vram_used";
  const auto own = "/sys/class/kfd/kfd/proc/" + std::to_string(::getpid()) + "/";
  const auto of_process = own + "vram_" + std::to_string(c.node.gpus[0].gpu_id);
  CHECK(number_in(of_gpu(0) + "mem_info_vram_total") == c.node.topology.gpus[0].memory_bytes);
  const auto before = number_in(of_process);
  constexpr std::uint64_t kBytes = 1 << 20;
  kfd::AllocMemory a{};
  a.va = 0x7000'0000'0000;
  a.bytes = kBytes;
  a.gpu_id = c.node.gpus[0].gpu_id;
  a.flags = kfd::kVram | kfd::kWritable;
  REQUIRE(call(c.kfd, Nr::alloc_memory, a) == 0);
  CHECK(number_in(of_process) == before + kBytes);
  CHECK(number_in(used) >= before + kBytes);  // other processes of this machine count, too
  kfd::FreeMemory f{.handle = a.handle};
  REQUIRE(call(c.kfd, Nr::free_memory, f) == 0);
  CHECK(number_in(of_process) == before);
  CHECK(number_in(own + "pasid") != 0);
  CHECK(::access((own + "queues").c_str(), X_OK) == 0);
  // Only processes that use a node have a directory.
  CHECK(::access("/sys/class/kfd/kfd/proc/1", F_OK) == -1);
  bool listed = false;
  auto* d = ::opendir("/sys/class/kfd/kfd/proc");
  REQUIRE(d);
  while (const auto* e = ::readdir(d)) listed = listed || e->d_name == std::to_string(::getpid());
  ::closedir(d);
  CHECK(listed);
}

TEST_CASE("the table of metrics has the driver's version, and no value that looks measured") {
  Client c;
  const auto table = bytes_of(of_gpu(0) + "gpu_metrics");
  REQUIRE(table.size() > 4);
  const bool mi200 = c.node.topology.gpus[0].gfx == 90010;
  CHECK(field<std::uint16_t>(table, 0) == table.size());
  CHECK(table[2] == 1);
  CHECK(table[3] == (mi200 ? 3 : 5));
  for (const std::size_t temperature : {4u, 6u}) CHECK(field<std::uint16_t>(table, temperature) == 25);
  CHECK(field<std::uint16_t>(table, 8) == (mi200 ? 25 : 0xffff));
  CHECK(field<std::uint16_t>(table, 10) == (mi200 ? 0xffff : 0));  // a temperature, or power
  const std::size_t lanes = mi200 ? 74 : 112, host_ns = mi200 ? 32 : 96, activity = mi200 ? 80 : 120;
  CHECK(field<std::uint64_t>(table, activity) == 0);  // of the GPU and of its memory, summed up
  CHECK(field<std::uint16_t>(table, lanes) == 16);
  CHECK(field<std::uint16_t>(table, lanes + 2) == (mi200 ? 160 : 320));
  const auto again = bytes_of(of_gpu(0) + "gpu_metrics");
  CHECK(field<std::uint64_t>(again, host_ns) > field<std::uint64_t>(table, host_ns));
  for (const auto* sensor : {"temp2_input", "temp3_input"})
    CHECK(bytes_of(of_gpu(0) + "hwmon/hwmon0/" + sensor) == "25000\n");
  CHECK(bytes_of(of_gpu(0) + "hwmon/hwmon0/in0_input") == "0\n");
  CHECK(bytes_of(of_gpu(0) + "hwmon/hwmon0/" + (mi200 ? "power1_average" : "power1_input")) == "0\n");
}

TEST_CASE("a process finds its GPU memory by the names of the driver's files in /proc/self/maps") {
  Client c;
  const auto memory = c.allocate(4096);
  const Queue q(c, 1, kfd::kQueueSdma);
  const auto file_at = [](const void* at) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uint64_t begin = 0, end = 0;
      const auto va = reinterpret_cast<std::uint64_t>(at);
      if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2 || va < begin || va >= end) continue;
      const auto name = line.find('/');
      return name == line.npos ? std::string() : line.substr(name);
    }
    return std::string("not mapped");
  };
  CHECK(file_at(memory.as<std::byte>()) == "/dev/dri/renderD128");
  CHECK(file_at(q.doorbell) == "/dev/kfd");
  CHECK(file_at(&c) != "/dev/kfd");
  // Other programs see the files that there are.
  std::ifstream real("/proc/" + std::to_string(::getpid()) + "/maps");
  const std::string all{std::istreambuf_iterator<char>(real), {}};
  CHECK(all.find("/memfd:sdma-kfd") != all.npos);
  CHECK(all.find("/dev/dri/") == all.npos);
}

TEST_CASE("the kernel's log is the node's, and only root reads it") {
  char text[256];
  constexpr int kRead = 2, kReadAll = 3, kClear = 5, kUnread = 9, kSize = 10;
  for (const int changes : {kRead, kClear}) {
    CHECK(::klogctl(changes, text, sizeof text) == -1);
    CHECK(errno == EPERM);
  }
  if (::geteuid() != 0) {
    CHECK(::klogctl(kSize, nullptr, 0) == -1);
    CHECK(errno == EPERM);
    return;
  }
  CHECK(::klogctl(kSize, nullptr, 0) > 0);
  CHECK(::klogctl(kUnread, nullptr, 0) > 0);
  CHECK(::klogctl(kReadAll, text, sizeof text) >= 0);
  CHECK(::klogctl(kReadAll, nullptr, 10) == -1);
  CHECK(errno == EINVAL);
}
