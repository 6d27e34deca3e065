// SPDX-License-Identifier: MIT
// What drivers write: each line of drivers.txt is one described packet of its generations, with its text, and what
// follows it is read. The text gives the same dwords again.
#include "sdma/stream/reader.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

#include <fstream>
#include <sstream>

using namespace sdma;

TEST_CASE("each packet that a driver writes is described, and nothing after it is lost") {
  std::ifstream in(SDMA_SOURCE_ROOT "/tests/stream/drivers.txt");
  REQUIRE(in);
  std::size_t packets = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    CAPTURE(line);
    std::istringstream parts(line);
    std::string generations, dwords, text;
    REQUIRE((std::getline(parts, generations, '|') && std::getline(parts, dwords, '|') && std::getline(parts, text)));
    std::vector<std::uint32_t> packet;
    std::istringstream words(dwords);
    for (std::uint32_t w; words >> std::hex >> w;) packet.push_back(w);
    std::istringstream list(generations);
    for (std::string name; std::getline(list, name, ',');) {
      const auto g = generation_of(name.substr(0, name.find(' ')));
      REQUIRE(g);
      CAPTURE(name);
      auto followed = packet;
      followed.insert(followed.end(), {5, 0x1000, 0, 1, 5, 0x1000, 0, 1, 5, 0x1000, 0, 1});
      Reader r{followed, catalogue(*g)};
      const auto first = r.next();
      CHECK(first.whole());
      CHECK_FALSE(first.info->fields_unknown);
      CHECK(first.dwords.size() == packet.size());
      for (int i = 0; i < 3; ++i) CHECK((r && r.next().is<Fence>()));
      CHECK(disassemble(packet, {.generation = *g}) == text.substr(1) + "\n");
      const auto again = assemble(text, "drivers.txt", {.generation = *g});
      CHECK((again && *again == packet));
      ++packets;
    }
  }
  CHECK(packets > 120);
}
