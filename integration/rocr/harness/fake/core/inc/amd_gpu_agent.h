// SPDX-License-Identifier: MIT
#pragma once
// See agent.h.
#include "core/inc/agent.h"
