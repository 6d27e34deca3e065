// SPDX-License-Identifier: MIT
#pragma once
// Objects of a large JSON text, one by one, as flat rows: nothing but the row that is being read is built. Internal.
//
//   class Events : public JsonRows {
//     bool is_row(std::string_view path) override { return path == "traceEvents"; }      // each object of that array
//     void row(std::string_view path, Row& r) override { use(r["name"], r["args.bytes"]); }
//   };
//   const auto walk = walk_json(text, events);
//
// The path of a value has the keys of the objects around it, with dots; arrays add nothing, and what an array of a row
// holds is not given. A number is given as its digits. Allocates what the longest row needs. Thread-safety: none.
// Errors: `twice` is a key that an object of a row has twice; walk_json says how far it came.
#include "../core/json.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class JsonRows : public JsonVisitor {
 public:
  using Row = std::map<std::string, std::string, std::less<>>;

  std::string twice{};

  void open(bool object) override {
    starts_.push_back(path_.size());
    add_key();
    lists_ += row_depth_ != 0 && !object;
    if (row_depth_ == 0 && object && is_row(path_)) row_depth_ = starts_.size(), row_.clear(), row_path_ = path_.size();
    else if (row_depth_ == 0 && object) entered(path_);
  }
  void close(bool object) override {
    lists_ -= row_depth_ != 0 && !object;
    if (row_depth_ == starts_.size() && row_depth_ != 0) {
      row_depth_ = 0;
      row(path_, row_);
    }
    path_.resize(starts_.back());
    starts_.pop_back();
  }
  void key(std::string_view k) override { key_ = k; }
  void value(std::string_view v, bool) override {
    const auto size = path_.size();
    add_key();
    if (row_depth_ == 0) {
      found(path_, v);
    } else if (lists_ == 0) {
      const auto name = std::string_view(path_).substr(row_path_ + (row_path_ != 0 && path_.size() > row_path_));
      if (!row_.emplace(name, v).second && twice.empty()) twice = name;
    }
    path_.resize(size);
  }

 protected:
  virtual bool is_row(std::string_view path) = 0;
  virtual void row(std::string_view path, Row&) = 0;
  /// An object outside the rows begins.
  virtual void entered(std::string_view) {}
  /// A value outside the rows.
  virtual void found(std::string_view, std::string_view) {}

 private:
  /// The key, if there is one, becomes a part of the path.
  void add_key() {
    if (key_.empty()) return;
    if (!path_.empty()) path_ += '.';
    path_ += key_;
    key_.clear();
  }

  std::string path_, key_;
  std::vector<std::size_t> starts_;  ///< of the path, for each open object or array
  Row row_;
  std::size_t row_depth_ = 0, row_path_ = 0, lists_ = 0;  ///< lists_: arrays that are open inside the row
};

}}}  // namespace sdma::v0_3::detail
