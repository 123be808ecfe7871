#include "CGateBuild.h"

const char *gate_build_commit(void) { return GATE_BUILD_COMMIT; }
