// SPDX-License-Identifier: MIT
// must not compile: nodiscard
// with: -Werror=unused-result
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"

using namespace sdma;

void wrong() {
  save_file("a", "b");      // refused
  FileWriter("a").open();   // refused
  FileWriter("a").close();  // refused
  parse_count("1");         // refused
  parse_size("1K");         // refused
  parse_time("1s");         // refused
  parse_gpus("1");          // refused
}
