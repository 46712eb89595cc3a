#include "driver/boot_program.h"

#include "base/buf.h"

void boot_program_put(const char *urls, const char *sha256, struct buf *out)
{
	buf_addz(
		out,
		"has() {\n"
		"	command -v \"$1\" >/dev/null\n"
		"}\n"
		"get() {\n"
		"	has curl && curl -fsSkL -m 600 --connect-timeout 10 -o new \"$1\" && return\n"
		"	has wget && wget -q --no-check-certificate -T 30 -O new \"$1\" && return\n"
		"	has python3 && python3 -IS -c 'import shutil,ssl,sys,urllib.request as u\n"
		"shutil.copyfileobj(u.urlopen(sys.argv[1],timeout=30,"
		"context=ssl._create_unverified_context()),open(\"new\",\"wb\"))' \"$1\"\n"
		"}\n"
		"program() {\n"
		"	for url in ");
	buf_printf(
		out,
		"%s; do\n"
		"		get \"$url\" && echo \"%s  new\" | sha256sum -c - && chmod 755 new && "
		"mv new regatta && return\n"
		"		echo \"regatta: not the program: ${url%%%%\\?*}\"\n"
		"	done\n"
		"	false\n"
		"}\n",
		urls, sha256);
}
