# Shortcuts; Meson and ninja do the work.  Everything made lives in build/.
#
#	make            build/regatta, static and stripped
#	make run        install what is missing, build, run examples/quickstart.toml
#	make test       everything that is checked: see tools/run-tests
#	make check      build, unit tests, lint: the loop of daily work
#	make mutants    all deliberate faults in the code, each of which a test must notice; make test has a sample
#	make chaos      [KILLS=2000] kill -9 of masters, agents, shims and whole hosts, as root
#	make cloud      a small AWS on this machine, to try the EC2 engine without an account; Ctrl-C removes it
#	make cloud-sweep  every crash point, fault and missing permission on the small AWS, not only a sample
#	make cluster    a Kubernetes of three nodes on this machine, as root; Ctrl-C removes it
#	make operators  the long tests on that Kubernetes, with MPI operator, JobSet, Argo and Kueue
#	make frameworks  wheels of JAX, TensorFlow, MXNet, Paddle, mpi4py, PyTorch 2, Horovod: two nodes of each train
#	make export-check  TensorBoard and MLflow from PyPI read what 'regatta export' writes
#	make sim        [SEEDS=1000000] histories full of faults; what holds in all of them
#	make bench      figures, beside what is installed
#	make asan       the unit tests under ASan and UBSan
#	make fuzz       [SECONDS=60] [TARGET=name] let libFuzzer look for trouble
#	make lint       layers, clang-format, clang-tidy, cppcheck
#	make format     let clang-format have its way
#	make install    [PREFIX=/usr/local] [DESTDIR=]
#	make deb        build/regatta_VERSION_ARCH.deb: program, man page, completions, systemd units
#	make image      build/regatta-image.tar: a container image with the program, for agent_image in [kubernetes]
#	make dist       build/dist: archives for x86-64 and arm64 with checksums, after the unit tests of arm64 under qemu
#	make clean

PREFIX ?= /usr/local
SECONDS ?= 60
TARGET ?=
KILLS ?= 2000
SEEDS ?= 1000000

.PHONY: all run test check mutants sim chaos cloud cloud-sweep cluster operators frameworks export-check bench asan fuzz lint format install deb image dist clean

all:
	@tools/build

run:
	@tools/setup build
	@tools/build
	@build/regatta run examples/quickstart.toml

test:
	@tools/setup test
	@tools/run-tests

check:
	@tools/setup test
	@tools/run-tests build unit lint

mutants:
	@tools/setup test
	@REGATTA_MUTANTS=all tools/run-tests build mutants

chaos:
	@tools/setup test
	@seed=$${REGATTA_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "seed $$seed: 'REGATTA_SEED=$$seed make chaos' makes the same choices"; \
	REGATTA_SEED=$$seed REGATTA_HOST_KILLS=$(KILLS) REGATTA_HOSTS_SECONDS=14400 REGATTA_TEST_SECONDS=0 tools/run-tests build hosts

# As root its instances boot; otherwise they are rows in a table.
cloud:
	@tools/setup test
	@[ -e build/venv/stamp ] || echo "making the Python environment of the tests, which takes a minute or two" >&2
	@tools/run-tests --venv
	@PYTHONPATH=tests PYTHONDONTWRITEBYTECODE=1 exec build/venv/bin/python -m cloud up

cloud-sweep:
	@tools/setup test
	@REGATTA_CLOUD_SWEEP=1 REGATTA_TEST_SECONDS=0 tools/run-tests build cloud

cluster:
	@tools/setup test
	@exec tools/kube-bench up

operators:
	@tools/setup test
	@REGATTA_OPERATORS=1 REGATTA_TEST_SECONDS=0 tools/run-tests build kube

frameworks:
	@tools/setup test
	@tools/build
	@tools/frameworks

export-check:
	@tools/setup test
	@tools/build
	@tools/run-tests --venv
	@tools/export-check

sim:
	@tools/build
	@build/regatta sim --seeds $(SEEDS) --nodes 8

bench:
	@tools/setup test
	@tools/build --tests
	@tools/bench

asan:
	@tools/setup test
	@tools/run-tests asan

fuzz:
	@tools/setup test
	@tools/fuzz "$(SECONDS)" $(TARGET)

lint:
	@tools/setup test
	@tools/build --configure-only
	@tools/lint

format:
	@tools/setup test
	@tools/format

# What is built is only copied: "sudo make install" leaves nothing of root's in build/.
install: all
	@install -D -m 755 build/regatta "$(DESTDIR)$(PREFIX)/bin/regatta"
	@install -D -m 644 docs/man/regatta.1 "$(DESTDIR)$(PREFIX)/share/man/man1/regatta.1"
	@echo "installed in $(DESTDIR)$(PREFIX)"

deb: all
	@tools/deb

image: all
	@tools/image

dist:
	@tools/setup dist
	@tools/build
	@tools/run-tests arm64
	@tools/dist

clean:
	rm -rf build
