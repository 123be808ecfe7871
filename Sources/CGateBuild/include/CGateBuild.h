// Facts of the build that only the manifest knows. No logic.
#ifndef CGATE_BUILD_H
#define CGATE_BUILD_H

// The commit the sources are of, or the empty text.
const char *gate_build_commit(void);

#endif
