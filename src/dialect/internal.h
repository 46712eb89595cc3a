#pragma once
/* What the files of dialect/ share. */
#include "dialect/dialect.h"

extern const struct dialect dialect_anubis;
