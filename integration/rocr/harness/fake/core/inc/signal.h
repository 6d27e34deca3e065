#pragma once
// See agent.h.
#include "core/inc/agent.h"
