/* job_template - what `regatta init` writes: job files that run as they are, and say what to change. */
#include "spec/job.h"

static const char single[] =
	"# The same command on `count` nodes, each with an address of its own.\n"
	"# Run it:          regatta run job.toml\n"
	"# See what it is:  regatta plan job.toml\n"
	"# Meaning of keys: regatta explain\n"
	"\n"
	"name    = \"hello\"\n"
	"count   = 2\n"
	"command = [\"sh\", \"-c\", '''\n"
	"for step in 1 2 3; do\n"
	"    echo \"rank $REGATTA_RANK of $REGATTA_NODES: step=$step loss=0.$((9 / step))\"\n"
	"done\n"
	"''']\n"
	"\n"
	"# source      = \"./src\"     # each node gets its own copy as its work directory\n"
	"# max_runtime = \"2h\"\n"
	"# env         = { BATCH = \"512\" }\n"
	"\n"
	"[metrics.loss]\n"
	"pattern = 'step=(?<step>[0-9]+) loss=(?<value>[-+.0-9eE]+)'\n"
	"better  = \"lower\"\n"
	"\n"
	"# [output]\n"
	"# keep = [\"model/**\"]       # copied to outputs/<node>/ of the run\n";

static const char roles[] =
	"# Several kinds of nodes.  `after` says who waits for whom, `service` who is\n"
	"# stopped when the others are done.\n"
	"# Run it:          regatta run job.toml\n"
	"# See what it is:  regatta plan job.toml\n"
	"# Meaning of keys: regatta explain roles\n"
	"\n"
	"name     = \"roles\"\n"
	"strategy = \"roles\"\n"
	"\n"
	"[roles.prepare]\n"
	"command    = [\"sh\", \"-c\", 'echo \"prepared by $REGATTA_NODE\"']\n"
	"ready_when = \"finished\"     # or \"started\", or \"port\" with port = 8080\n"
	"\n"
	"[roles.store]\n"
	"service = true\n"
	"command = [\"sh\", \"-c\", 'echo serving; exec sleep 3600']\n"
	"\n"
	"[roles.worker]\n"
	"count   = 2\n"
	"after   = [\"prepare\", \"store\"]\n"
	"command = [\"sh\", \"-c\", 'echo \"$REGATTA_NODE sees $REGATTA_MEMBERS\"']\n"
	"# memory = \"2GiB\"\n"
	"# env    = { OMP_NUM_THREADS = \"2\" }\n";

static const char pserver[] =
	"# Parameter servers and trainers.  Trainers start when every server's port\n"
	"# answers; the run is done when the trainers are.  Both find each other in the\n"
	"# environment: PSERVERS, SERVER_ENDPOINT, TRAINERS, TRAINER_INDEX, TRAINING_ROLE.\n"
	"# Run it:          regatta run job.toml\n"
	"# See what it is:  regatta plan job.toml\n"
	"# Meaning of keys: regatta explain roles\n"
	"\n"
	"name     = \"ctr\"\n"
	"strategy = \"pserver\"\n"
	"\n"
	"[roles.pserver]\n"
	"count   = 2\n"
	"port    = 5436\n"
	"command = [\"python3\", \"-c\", '''\n"
	"import os, socketserver\n"
	"class Answer(socketserver.BaseRequestHandler):\n"
	"    def handle(self):\n"
	"        self.request.sendall(b\"0.5\\n\")\n"
	"host, port = os.environ[\"SERVER_ENDPOINT\"].split(\":\")\n"
	"socketserver.TCPServer.allow_reuse_address = True\n"
	"socketserver.TCPServer((host, int(port)), Answer).serve_forever()\n"
	"''']\n"
	"\n"
	"[roles.trainer]\n"
	"count   = 3\n"
	"command = [\"python3\", \"-c\", '''\n"
	"import os, socket\n"
	"for server in os.environ[\"PSERVERS\"].split(\",\"):\n"
	"    host, port = server.split(\":\")\n"
	"    weight = socket.create_connection((host, int(port))).recv(64).decode().strip()\n"
	"    print(\"trainer\", os.environ[\"TRAINER_INDEX\"], \"got\", weight, \"from\", server, \"loss=\" + weight)\n"
	"''']\n"
	"\n"
	"[metrics.loss]\n"
	"pattern = 'loss=(?<value>[-+.0-9eE]+)'\n"
	"better  = \"lower\"\n";

static const struct {
	const char *strategy, *text;
} templates[] = {
	{"single", single},
	{"roles", roles},
	{"pserver", pserver},
};

const char *job_template(const char *strategy)
{
	for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
		if (strcmp(templates[i].strategy, strategy) == 0)
			return templates[i].text;
	return NULL;
}
