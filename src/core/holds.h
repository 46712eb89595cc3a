#pragma once
/* What an agent says it holds when it (re)connects.  A header of its own, because the link sends it and
 * may see nothing else of the core. */
enum holds {
	HOLDS_NOTHING,	  /* no start was ever acted on here */
	HOLDS_STARTED,	  /* an attempt was started on this boot; it runs or has ended */
	HOLDS_OTHER_BOOT, /* an attempt was started, or may have been, before the node rebooted */
};
