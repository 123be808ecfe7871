#include "CGateOpenSSL.h"
