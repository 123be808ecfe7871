#include "CGateNGHTTP2.h"
