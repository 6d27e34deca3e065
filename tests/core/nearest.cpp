// SPDX-License-Identifier: MIT
#include "core/nearest.hpp"

#include "support/catch.hpp"

using namespace sdma;

namespace {

std::string_view nearest(std::string_view word, std::initializer_list<std::string_view> known) {
  Nearest n{word};
  for (const auto k : known) n.offer(k);
  return n.best();
}

TEST_CASE("letters that are missing, wrong, too many or exchanged") {
  CHECK(nearest("copy_liner", {"copy_linear", "copy_swap"}) == "copy_linear");
  CHECK(nearest("fance", {"fence"}) == "fence");
  CHECK(nearest("trapp", {"trap"}) == "trap");
  CHECK(nearest("chekc", {"check"}) == "check");
  CHECK(nearest("--sed", {"--set", "--seed"}) == "--seed");
  CHECK(nearest("--sed", {"--seed", "--set"}) == "--seed");
  CHECK(nearest("fence", {"fences", "fence"}) == "fence");
}

TEST_CASE("what is far away is not meant") {
  CHECK(nearest("x", {"fence"}).empty());
  CHECK(nearest("ab", {"cd"}).empty());
  CHECK(nearest("copy", {"fence", "trap"}).empty());
  CHECK(nearest(std::string(65, 'a'), {std::string_view("a")}).empty());
}

TEST_CASE("the beginning of a word") {
  CHECK(nearest("ref", {"func", "reference"}) == "reference");
  CHECK(nearest("ib", {"func", "ib_size"}) == "ib_size");
  CHECK(nearest("re", {"func", "reference"}).empty());
  CHECK(nearest("", {"_reference"}).empty());
}

TEST_CASE("the end of a message") {
  CHECK(did_you_mean("chekc", {"check", "run"}) == "; did you mean 'check'?");
  CHECK(did_you_mean("adv", {"strict", "adversarial"}) == "; did you mean 'adversarial'?");
  CHECK(did_you_mean("s", {"strict", "soft"}).empty());
  CHECK(did_you_mean("", {"strict"}).empty());
}

}  // namespace
