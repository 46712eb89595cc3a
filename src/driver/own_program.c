#include "driver/own_program.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fmt/doc.h"
#include "net/digest.h"

int own_program_add(struct doc *facts, struct arena *a, struct err *err)
{
	CLEANUP(close_fdp) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct doc *binary = doc_new(a, DOC_TABLE);
	char hex[SHA256_TEXT];
	uint64_t size;

	if (fd < 0)
		return err_errno(err, errno, "open this program");
	if (sha256_fd_hex(fd, hex, &size, err) < 0)
		return err_wrap(err, "read this program");
	doc_set(a, binary, STR("sha256"), doc_new_str(a, str_from(hex)));
	doc_set(a, binary, STR("size"), doc_new_int(a, (int64_t)size));
	doc_set(a, facts, STR("binary"), binary);
	return 0;
}
