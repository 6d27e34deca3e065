// SPDX-License-Identifier: MIT
// must not compile: this packet's length varies: use encode_to
#include "sdma/packets/write.hpp"

#include "sdma/packets/encode.hpp"

auto dwords = sdma::encode(sdma::Write{});
