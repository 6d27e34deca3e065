// SPDX-License-Identifier: MIT
#pragma once
// A schedule as Python holds it: with its text, if it was read, and safe from changes while it is used.
//
//   Box b = ...;
//   const Snapshot s = b.snapshot();               // constant from now on; keep it, and pass it to a thread
//   b.edit().add_host("main");                     // copies the schedule first if a snapshot exists
//
// Every member is called with the interpreter's lock held. A Snapshot may be used and destroyed by any thread, without
// the lock. Errors: `valid` raises what problems() says.
#include "msccl/msccl.hpp"
#include "sdma/schedule/text.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sdma::python {

struct Content {
  Schedule schedule{};
  std::string file = "schedule";
  std::optional<std::string> source{};  ///< nothing if it was built or changed in Python
  std::optional<msccl::Text> made{};    ///< of `source`, if that is XML of MSCCL
  ParseOptions parse{};                 ///< the params that were given; `map` and `decisions` are not used
  SourceMap map{};
  /// Null if there is no source.
  const SourceMap* lines() const noexcept { return source ? &map : nullptr; }
};
using Snapshot = std::shared_ptr<const Content>;

/// (name, value) of each.
using Words = std::vector<std::pair<std::string, std::string>>;
/// How a text is read: with these params, and with the files beside it.
inline ParseOptions parse_options(const Words& params, const std::string& file) {
  ParseOptions o{.read = files_beside(file)};
  for (const auto& [name, value] : params) o.set.push_back({name, value});
  return o;
}

class Box {
 public:
  explicit Box(Content c) : content_(std::make_shared<Content>(std::move(c))) {}

  const Content& now() const noexcept { return *content_; }
  /// Raises an error if the schedule has a problem.
  Snapshot snapshot();
  Schedule& edit();
  /// Another schedule, which changes by itself.
  Box copy() {
    taken_ = true;
    return *this;
  }

 private:
  std::shared_ptr<Content> content_;
  bool taken_ = false;  // a snapshot of this content exists, or has existed
  bool valid_ = false;
};

}  // namespace sdma::python
