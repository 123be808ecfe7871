// nghttp2's header. No logic.
#ifndef CGATE_NGHTTP2_H
#define CGATE_NGHTTP2_H

#include <nghttp2/nghttp2.h>

#endif
