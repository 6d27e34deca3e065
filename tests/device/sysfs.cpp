// SPDX-License-Identifier: MIT
#include "device/sysfs.hpp"

#include "support/catch.hpp"

#include <unistd.h>
#include <filesystem>
#include <fstream>

using namespace sdma;

TEST_CASE("a node survives its way through the files") {
  for (std::uint32_t n = 1; n <= 8; ++n) {
    const auto node = numbered(*mi300x(n), 24);
    const auto back = from_sysfs(to_sysfs(node));
    REQUIRE(back);
    CHECK(back->topology.links == node.topology.links);
    CHECK(back->topology.name == node.topology.name);
    CHECK(*back == node);
  }
}

TEST_CASE("partitions, other GPUs and links without a recommendation survive too") {
  Topology t{.name = "2 x gfx942 part, 1 x gfx90a"};
  t.cpus = {{.name = "socket A", .memory_bytes = 64ull << 30}, {.name = "host", .memory_bytes = 0}};
  t.gpus = {{.name = "gfx942 part",
             .gfx = 90402,
             .memory_bytes = 48ull << 30,
             .host_engines = 1,
             .xgmi_engines = 3,
             .queues_per_engine = 8},
            {.name = "gfx942 part",
             .gfx = 90402,
             .memory_bytes = 48ull << 30,
             .host_engines = 1,
             .xgmi_engines = 3,
             .queues_per_engine = 8},
            {.name = "gfx90a",
             .gfx = 90010,
             .memory_bytes = 0,
             .host_engines = 2,
             .xgmi_engines = 0,
             .queues_per_engine = 2}};
  t.links = {{.from = LinkEnd::cpu(1),
              .to = LinkEnd::gpu(2),
              .type = LinkType::pcie,
              .rate = Rate::mb_per_s(1),
              .atomics_64 = false,
              .engine_mask = 0},
             {.from = LinkEnd::gpu(0),
              .to = LinkEnd::gpu(1),
              .type = LinkType::xgmi,
              .rate = Rate::mb_per_s(64000),
              .atomics_64 = true,
              .engine_mask = 1ull << 40},
             {.from = LinkEnd::gpu(2),
              .to = LinkEnd::cpu(1),
              .type = LinkType::other,
              .rate = Rate::mb_per_s(0),
              .atomics_64 = true,
              .engine_mask = 3}};
  const auto node = numbered(t);
  const auto back = from_sysfs(to_sysfs(node));
  REQUIRE(back);
  CHECK(*back == node);
}

TEST_CASE("nodes that are neither a processor nor a GPU do not count") {
  auto files = to_sysfs(numbered(*mi300x(1)));
  files["nodes/2/gpu_id"] = "7\n";
  files["nodes/2/properties"] = "cpu_cores_count 0\nsimd_count 0\n";
  auto more = to_sysfs(numbered(*mi300x(2)));
  // A number that is missing is a GPU that this user may not see, and no end.
  files["nodes/5/gpu_id"] = more["nodes/2/gpu_id"];
  files["nodes/5/properties"] = more["nodes/2/properties"];
  const auto node = from_sysfs(files);
  REQUIRE(node);
  REQUIRE(node->gpus.size() == 2);
  CHECK(node->gpus[1].kfd_node == 5);
  CHECK(node->topology.gpus[1].gfx == 90402);
}

TEST_CASE("a link without flags does not promise 64-bit atomics") {
  auto files = to_sysfs(numbered(*mi300x(2)));
  const auto link = [&] { return *from_sysfs(files)->topology.link(LinkEnd::gpu(0), LinkEnd::gpu(1)); };
  CHECK(link().atomics_64);
  for (auto& [name, text] : files)
    if (name.find("io_links") != std::string::npos) text.erase(text.find("flags"));
  CHECK_FALSE(link().atomics_64);
}

TEST_CASE("a tree that is none says which file") {
  CHECK_FALSE(from_sysfs({}));
  auto files = to_sysfs(numbered(*mi300x(1)));
  files["nodes/1/gpu_id"] = "many\n";
  const auto bad = from_sysfs(files);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().where == "nodes/1/gpu_id");
  files.erase("nodes/1/gpu_id");
  REQUIRE_FALSE(from_sysfs(files));
}

TEST_CASE("a directory is read as the map is") {
  namespace fs = std::filesystem;
  const auto root =
      fs::temp_directory_path() / ("sdma-sysfs-test-" + std::to_string(::getpid()));  // two builds may be under test
  fs::remove_all(root);
  CHECK_FALSE(read_sysfs(root.string()));
  auto files = to_sysfs(numbered(*mi300x(2)));
  for (const auto& [path, text] : files) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  const auto read = read_sysfs(root.string());
  fs::remove_all(root);
  REQUIRE(read);
  std::erase_if(files,
                [](const auto& f) { return f.first.find("/caches/") != std::string::npos; });  // nobody asks for them
  CHECK(*read == files);
}
