// SPDX-License-Identifier: MIT
#pragma once
// The options of nccl-tests that mean little to DMA engines. Scripts
// give them, so they are accepted, and a note says what they do not do.
//
//   -d TYPE   counts are in elements of this type; engines move bytes, so times do not depend on it
//   -t N      N times -g GPUs take part; one host thread drives all of them
//   -o OP     no collective here reduces
//   -z 0      each round is waited for before the next begins, as with -z 1
//   -m N -G N -C 1 -p 1       no effect;    -a 0..3      one process has one time, which is its own average
//
// Errors: values that nccl-tests would not take either, sizes that
// are not whole numbers of elements, and more GPUs than there can be.
#include "reader.hpp"
#include "settings.hpp"

namespace collectives::perf {

/// Call it after sizes and GPUs have been read.
void read_habits(Reader&, const Given&, Settings&);

}  // namespace collectives::perf
