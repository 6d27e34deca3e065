// SPDX-License-Identifier: MIT
// What is loaded at run time, and the files of the kernel that stand for an energy counter.
#include "device/energy_counters.hpp"
#include "device/requested_library.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace sdma::detail;
namespace fs = std::filesystem;

namespace {

const LibraryRequest kRequest{.option = "--against",
                              .what = "NCCL",
                              .variable = "SDMA_TEST_NO_LIBRARY",
                              .names = {"libno-such-library.so.7", "libc.so.6"},
                              .hint = "look elsewhere"};

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A folder of its own, with the monitor of one GPU.
class Sysfs {
 public:
  Sysfs() {
    fs::remove_all(root_);
    fs::create_directories(monitor());
  }
  ~Sysfs() { fs::remove_all(root_); }
  fs::path monitor() const { return root_ / "0000:06:00.0/hwmon/hwmon3"; }
  void write(const char* name, const char* text) const { std::ofstream(monitor() / name) << text; }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("sdma-hwmon-" + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("a library is the first of its names that the loader finds") {
  auto library = RequestedLibrary::load(kRequest);
  REQUIRE(library);
  CHECK(library->name() == "libc.so.6");
  int (*absolute)(int) = (*library)["abs"];
  CHECK_FALSE(library->lacking());
  REQUIRE(absolute);
  CHECK(absolute(-3) == 3);
  absolute = library->may("no_such_function");
  CHECK_FALSE(library->lacking());
  CHECK_FALSE(absolute);
  absolute = (*library)["no_such_function"];
  REQUIRE(library->lacking());
  CHECK(library->lacking()->message == "libc.so.6 has no function no_such_function");
}

TEST_CASE("a library that is missing: what, where it was searched, and what to do") {
  auto request = kRequest;
  request.names.pop_back();
  const auto missing = RequestedLibrary::load(request);
  REQUIRE_FALSE(missing);
  const auto said = to_string(missing.error());
  INFO(said);
  CHECK(has(said, "--against: error: NCCL was not found: libno-such-library.so.7: "));
  CHECK(has(said, "LD_LIBRARY_PATH"));
  CHECK(has(said, "hint: look elsewhere; or give the path of the file in SDMA_TEST_NO_LIBRARY"));
}

TEST_CASE("the file that the variable names is the only one that is tried") {
  ::setenv("SDMA_TEST_NO_LIBRARY", "/no/such/file.so", 1);
  const auto wrong = RequestedLibrary::load(kRequest);
  ::setenv("SDMA_TEST_NO_LIBRARY", "libc.so.6", 1);
  auto request = kRequest;
  request.names.pop_back();
  const auto right = RequestedLibrary::load(request);
  ::unsetenv("SDMA_TEST_NO_LIBRARY");
  REQUIRE_FALSE(wrong);
  CHECK(has(wrong.error().message, "NCCL cannot be loaded from SDMA_TEST_NO_LIBRARY: /no/such/file.so: "));
  CHECK(right);
}

TEST_CASE("an AMD GPU's energy is a file's, or power summed over time") {
  const Sysfs sys;
  const std::vector<std::string> gpu{"0000:06:00.0"};
  const auto none = hwmon_counters("--energy", gpu, sys.root());
  REQUIRE_FALSE(none);
  CHECK(has(none.error().message, "0000:06:00.0/hwmon/*: none of energy1_input, power1_average and power1_input"));
  CHECK_FALSE(hwmon_counters("--energy", {"0000:07:00.0"}, sys.root()));

  sys.write("power1_average", "250000000\n");
  auto power = hwmon_counters("--energy", gpu, sys.root());
  REQUIRE(power);
  const auto begin = std::chrono::steady_clock::now();
  const auto first = *(*power)[0]();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto gained = *(*power)[0]() - first;
  const std::chrono::duration<double> t = std::chrono::steady_clock::now() - begin;
  CHECK(gained >= 250 * 0.05);
  CHECK(gained <= 250 * t.count());

  sys.write("energy1_input", "7500000\n");
  auto energy = hwmon_counters("--energy", gpu, sys.root());
  REQUIRE(energy);
  CHECK(*(*energy)[0]() == Approx(7.5));
  fs::remove(sys.monitor() / "energy1_input");
  CHECK_FALSE((*energy)[0]());
}
