#pragma once
/* yaml_scalar - what a plain scalar is by the YAML 1.2 core schema.  Internal to fmt/. */
#include "fmt/doc.h"

/* Sets type and value; a string's text is left to the caller.  False: a number above 64 bits. */
bool yaml_scalar(struct str text, struct doc *ret);
