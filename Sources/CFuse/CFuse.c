#include "CFuse.h"
