#include "sys/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#define REQUEST_MAX 1024
#define ANSWER_MAX (256 * 1024) /* the kernel sends at most 32 KiB at once */
#define WAIT_S 10		/* the kernel answers at once; this is against a hang */

/* A request is a header, a body of fixed size and attributes, which may be nested. */
struct netlink_request {
	union {
		struct nlmsghdr h;
		char room[REQUEST_MAX];
	};
};

static void *request_begin(struct netlink_request *r, int type, int flags, size_t body)
{
	*r = (struct netlink_request){0};
	r->h.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	r->h.nlmsg_type = (uint16_t)type;
	r->h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	return NLMSG_DATA(&r->h);
}

/* Not checked for overflow: all attributes are small (names of at most 15 bytes, one alias). */
static struct rtattr *put(struct netlink_request *r, int type, const void *data, size_t n)
{
	size_t at = NLMSG_ALIGN(r->h.nlmsg_len);
	struct rtattr *a = (struct rtattr *)(r->room + at);

	a->rta_type = (unsigned short)type;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	if (n)
		memcpy(RTA_DATA(a), data, n);
	r->h.nlmsg_len = (uint32_t)(at + RTA_ALIGN(a->rta_len));
	return a;
}

static void put_text(struct netlink_request *r, int type, const char *text)
{
	put(r, type, text, strlen(text) + 1);
}

static void put_u32(struct netlink_request *r, int type, uint32_t v)
{
	put(r, type, &v, sizeof(v));
}

static void put_end(struct netlink_request *r, struct rtattr *outer)
{
	outer->rta_len = (unsigned short)(r->room + r->h.nlmsg_len - (char *)outer);
}

/* ---- requests ---- */

typedef void message_fn(void *ctx, const struct nlmsghdr *h);

/* 1: the answer is complete.  0: more messages follow.  -1: the kernel refused, with errno. */
static int take_message(const struct nlmsghdr *h, message_fn *fn, void *ctx)
{
	if (h->nlmsg_type == NLMSG_DONE)
		return 1;
	if (h->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = NLMSG_DATA(h);

		errno = -e->error;
		return e->error ? -1 : 1;
	}
	if (fn)
		fn(ctx, h);
	return h->nlmsg_flags & NLM_F_MULTI ? 0 : 1;
}

static int ask(int fd, struct netlink_request *r, message_fn *fn, void *ctx)
{
	CLEANUP(freep) char *answer = xmalloc(ANSWER_MAX);

	if (send(fd, r->room, r->h.nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		ssize_t got = recv(fd, answer, ANSWER_MAX, 0);
		size_t left = got > 0 ? (size_t)got : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			int rc = take_message(h, fn, ctx);

			if (rc != 0)
				return rc < 0 ? -1 : 0;
		}
	}
}

static int change(int fd, struct netlink_request *r, const char *what, const char *name,
		  struct err *err)
{
	r->h.nlmsg_flags |= NLM_F_ACK;
	if (ask(fd, r, NULL, NULL) == 0)
		return 0;
	if (errno == EPERM)
		return err_set(err, ERR_DENIED, "%s '%s': not permitted (it takes CAP_NET_ADMIN)",
			       what, name);
	if (errno == EOPNOTSUPP)
		return err_set(err, ERR_INVALID, "%s '%s': this kernel has no such links", what,
			       name);
	return err_errno(err, errno, "%s '%s'", what, name);
}

int netlink_open(struct err *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval limit = {.tv_sec = WAIT_S};

	if (fd < 0)
		return err_errno(err, errno, "open a netlink socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

/* ---- links ---- */

static int check_name(const char *name, struct err *err)
{
	if (!name[0] || strlen(name) >= LINK_NAME_SIZE)
		return err_set(err, ERR_INVALID, "'%s' is no name of a link", name);
	return 0;
}

struct found {
	bool there;
	int index;
	char *alias;
};

static void read_link(const struct nlmsghdr *h, const char **ret_name, const char **ret_alias)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*info));

	*ret_name = *ret_alias = "";
	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			*ret_name = RTA_DATA(a);
		else if (a->rta_type == IFLA_IFALIAS)
			*ret_alias = RTA_DATA(a);
	}
}

static void take_found(void *ctx, const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	struct found *f = ctx;
	const char *name, *alias;

	if (h->nlmsg_type != RTM_NEWLINK)
		return;
	f->there = true;
	f->index = info->ifi_index;
	read_link(h, &name, &alias);
	if (f->alias)
		snprintf(f->alias, LINK_ALIAS_SIZE, "%s", alias);
}

static int find(int fd, const char *name, struct found *f, struct err *err)
{
	struct netlink_request r;

	if (check_name(name, err) < 0)
		return -1;
	request_begin(&r, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	put_text(&r, IFLA_IFNAME, name);
	if (ask(fd, &r, take_found, f) < 0 && errno != ENODEV)
		return err_errno(err, errno, "look for the link '%s'", name);
	return 0;
}

static int index_of(int fd, const char *name, int *ret, struct err *err)
{
	struct found f = {0};

	if (find(fd, name, &f, err) < 0)
		return -1;
	if (!f.there)
		return err_set(err, ERR_NOT_FOUND, "there is no link '%s'", name);
	*ret = f.index;
	return 0;
}

int netlink_find(int fd, const char *name, bool *ret_there, char alias[static LINK_ALIAS_SIZE],
		 struct err *err)
{
	struct found f = {.alias = alias};

	alias[0] = '\0';
	if (find(fd, name, &f, err) < 0)
		return -1;
	*ret_there = f.there;
	return 0;
}

static void link_begin(struct netlink_request *r, int type, int flags, const char *name)
{
	request_begin(r, type, flags, sizeof(struct ifinfomsg));
	put_text(r, IFLA_IFNAME, name);
}

int netlink_add_bridge(int fd, const char *name, struct err *err)
{
	struct netlink_request r;

	if (check_name(name, err) < 0)
		return -1;
	link_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name);
	struct rtattr *info = put(&r, IFLA_LINKINFO, NULL, 0);

	put_text(&r, IFLA_INFO_KIND, "bridge");
	put_end(&r, info);
	return change(fd, &r, "make the bridge", name, err);
}

static void put_peer(struct netlink_request *r, const struct link_veth *v)
{
	static const struct ifinfomsg none;
	struct rtattr *peer = put(r, VETH_INFO_PEER, &none, sizeof(none));

	put_text(r, IFLA_IFNAME, v->peer);
	put_u32(r, IFLA_NET_NS_FD, (uint32_t)v->peer_netns);
	put_end(r, peer);
}

int netlink_add_veth(int fd, const struct link_veth *v, struct err *err)
{
	struct netlink_request r;
	int bridge;

	if (check_name(v->name, err) < 0 || check_name(v->peer, err) < 0 ||
	    index_of(fd, v->bridge, &bridge, err) < 0)
		return -1;
	link_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, v->name);
	put_u32(&r, IFLA_MASTER, (uint32_t)bridge);
	struct rtattr *info = put(&r, IFLA_LINKINFO, NULL, 0);

	put_text(&r, IFLA_INFO_KIND, "veth");
	struct rtattr *data = put(&r, IFLA_INFO_DATA, NULL, 0);

	put_peer(&r, v);
	put_end(&r, data);
	put_end(&r, info);
	return change(fd, &r, "make the link", v->name, err);
}

int netlink_delete(int fd, const char *name, struct err *err)
{
	struct found f = {0};
	struct netlink_request r;

	if (find(fd, name, &f, err) < 0)
		return -1;
	if (!f.there)
		return 0;
	link_begin(&r, RTM_DELLINK, 0, name);
	struct err why = {0};

	if (change(fd, &r, "remove the link", name, &why) == 0 || why.code == ENODEV)
		return 0;
	if (err)
		*err = why;
	return -1;
}

int netlink_set_up(int fd, const char *name, struct err *err)
{
	struct netlink_request r;

	if (check_name(name, err) < 0)
		return -1;
	struct ifinfomsg *info = request_begin(&r, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_flags = info->ifi_change = IFF_UP;
	put_text(&r, IFLA_IFNAME, name);
	return change(fd, &r, "set up the link", name, err);
}

int netlink_set_alias(int fd, const char *name, const char *alias, struct err *err)
{
	struct netlink_request r;

	if (check_name(name, err) < 0)
		return -1;
	if (strlen(alias) >= LINK_ALIAS_SIZE)
		return err_set(err, ERR_INVALID, "the alias of link '%s' is too long", name);
	link_begin(&r, RTM_NEWLINK, 0, name);
	put(&r, IFLA_IFALIAS, alias, strlen(alias));
	return change(fd, &r, "name the link", name, err);
}

int netlink_add_address(int fd, const char *name, uint32_t address, int prefix, struct err *err)
{
	uint32_t wire = htonl(address), broadcast = htonl(address | (UINT32_MAX >> prefix));
	struct err why = {0};
	struct netlink_request r;
	int index;

	if (index_of(fd, name, &index, err) < 0)
		return -1;
	struct ifaddrmsg *m = request_begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	*m = (struct ifaddrmsg){.ifa_family = AF_INET,
				.ifa_prefixlen = (uint8_t)prefix,
				.ifa_index = (uint32_t)index};
	put(&r, IFA_LOCAL, &wire, sizeof(wire));
	put(&r, IFA_ADDRESS, &wire, sizeof(wire));
	put(&r, IFA_BROADCAST, &broadcast, sizeof(broadcast));
	if (change(fd, &r, "give an address to the link", name, &why) == 0 || why.code == EEXIST)
		return 0;
	if (err)
		*err = why;
	return -1;
}

/* ---- lists ---- */

struct each {
	netlink_link_fn *link;
	netlink_route_fn *route;
	void *ctx;
};

static void take_link(void *ctx, const struct nlmsghdr *h)
{
	const struct each *e = ctx;
	const char *name, *alias;

	if (h->nlmsg_type != RTM_NEWLINK)
		return;
	read_link(h, &name, &alias);
	e->link(e->ctx, name, alias);
}

int netlink_each_link(int fd, netlink_link_fn *fn, void *ctx, struct err *err)
{
	struct each e = {.link = fn, .ctx = ctx};
	struct netlink_request r;

	request_begin(&r, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	if (ask(fd, &r, take_link, &e) < 0)
		return err_errno(err, errno, "list the links");
	return 0;
}

static void take_route(void *ctx, const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	const struct each *e = ctx;
	uint32_t network = 0;

	if (h->nlmsg_type != RTM_NEWROUTE || m->rtm_family != AF_INET)
		return;
	for (const struct rtattr *a = RTM_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_DST)
			memcpy(&network, RTA_DATA(a), sizeof(network));
	e->route(e->ctx, ntohl(network), m->rtm_dst_len);
}

int netlink_each_route(int fd, netlink_route_fn *fn, void *ctx, struct err *err)
{
	struct each e = {.route = fn, .ctx = ctx};
	struct netlink_request r;
	struct rtmsg *m = request_begin(&r, RTM_GETROUTE, NLM_F_DUMP, sizeof(*m));

	m->rtm_family = AF_INET;
	if (ask(fd, &r, take_route, &e) < 0)
		return err_errno(err, errno, "list the routes");
	return 0;
}
