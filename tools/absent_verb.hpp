// SPDX-License-Identifier: MIT
#pragma once
// A verb that this build has in name only: --help lists it, any words may follow it, and it ends with a usage error.
//
//   {"doctor", "find out why queues hang ..", nullptr}        its row in verbs.hpp
//
//   if (v.add) v.add(options, action);                         main
//   else add_absent(options, action, present);
//
// The playground has such verbs. tests/tools/absent_verb.py runs them natively.
#include "verb.hpp"

#include <string>
#include <vector>

namespace sdma::tool {

/// `present`: the verbs that this build has.
void add_absent(VerbOptions&, Action&, const std::vector<std::string>& present);

}  // namespace sdma::tool
