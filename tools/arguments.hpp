// SPDX-License-Identifier: MIT
#pragma once
// The command line of small tools: --name value or --name=value. Each option has a default.
//
//   Arguments a{argc, argv, kUsage};
//   const auto n = a.size("-n", 20);               // K, M, G after a number are powers of 1024
//   const auto csv = a.word("--csv", "");
//   const auto kind = a.device();                   // --device: soft, kfd, cuda or rocr
//   a.done();                                       // unused arguments are an error
//
// For --help, it prints the usage and ends the program. For an invalid argument, it ends the program with exit code 2,
// after the reason and the first line of the usage.
// An Arguments belongs to one thread.
#include "sdma/core/number.hpp"
#include "sdma/device/open.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::tool {

class Arguments {
 public:
  Arguments(int argc, char** argv, const char* usage) : usage_(usage) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--help" || word == "-h") std::fputs(usage, stdout), std::exit(0);
      const auto equals = word.find('=');
      if (equals != word.npos) given_.push_back({word.substr(0, equals), word.substr(equals + 1)});
      else if (i + 1 < argc) given_.push_back({word, argv[++i]});
      else fail(word + ": its value is missing");
    }
  }

  std::string word(const std::string& name, const std::string& otherwise) {
    const auto at = std::find_if(given_.begin(), given_.end(), [&](const auto& g) { return g.name == name; });
    if (at == given_.end()) return otherwise;
    auto value = at->value;
    given_.erase(at);
    return value;
  }
  std::uint64_t size(const std::string& name, std::uint64_t otherwise, std::uint64_t least = 1,
                     std::uint64_t most = std::uint64_t{1} << 40) {
    const auto text = word(name, "");
    if (text.empty()) return otherwise;
    const auto v = parse_size(text);
    if (!v || *v < least || *v > most)
      fail(name + ": '" + text + "' is not a number from " + std::to_string(least) + " to " + std::to_string(most));
    return *v;
  }
  /// The device that --device names; soft if there is no such option.
  DeviceKind device() { return *device_or({}); }
  /// The same, or nothing if --device names `other`, which is not a device.
  std::optional<DeviceKind> device_or(std::string_view other) {
    const auto text = word("--device", "soft");
    const auto kind = device_kind(text);
    if (!kind && (other.empty() || text != other))
      fail("--device: '" + text + "' is not " + std::string(kDeviceNames) +
           (other.empty() ? "" : ", nor " + std::string(other)));
    return kind;
  }
  void done() const {
    if (!given_.empty()) fail("unknown argument " + given_.front().name);
  }
  [[noreturn]] void fail(const std::string& why) const {
    const std::string usage = usage_;
    std::fprintf(stderr, "%s\n%s\n", why.c_str(), usage.substr(0, usage.find('\n')).c_str());
    std::exit(2);
  }

 private:
  struct Given {
    std::string name, value;
  };
  std::vector<Given> given_;
  const char* usage_;
};

}  // namespace sdma::tool
