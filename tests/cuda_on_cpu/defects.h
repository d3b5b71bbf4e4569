// Planted defects, one at a time.
#pragma once
#include <string>

/// Runs a defect and says "right values" or "wrong values", if it gets that far. Not 0 if there is none of that name.
int run_defect(const std::string& name);
