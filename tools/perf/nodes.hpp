// SPDX-License-Identifier: MIT
#pragma once
// Several nodes: how many processes each has, and the ways to perform a collective over them. These are the algorithms
// of share/sdma/collectives/nodes.sdma, in place of variants.
//
//   read_nodes(reader, given, settings);     // --ranks-per-node=4 --variant=hierarchical,flat
//
// The processes, the number of GPUs, the collective and its root have been read before. Errors go to the Reader.
#include "reader.hpp"
#include "settings.hpp"

namespace collectives::perf {

void read_nodes(Reader&, const Given&, Settings&);

}  // namespace collectives::perf
