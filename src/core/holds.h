#pragma once
/* What an agent says that it holds when it (re)connects.  In a header of its own, because link/
 * uses it and may include nothing else of the core. */
enum holds {
	HOLDS_NOTHING,	  /* it never acted on a start */
	HOLDS_STARTED,	  /* it started an attempt during this boot, which runs or has ended */
	HOLDS_OTHER_BOOT, /* it started an attempt, or may have, before the machine rebooted */
};
