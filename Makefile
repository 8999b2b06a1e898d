# Builds the extension with PGXS:
#
#   make PG_CONFIG=/path/to/pg_config
#   make PG_CONFIG=... install
#   make PG_CONFIG=... installcheck    (a running server with the settings
#                                       of test/temp.conf)
#   make PG_CONFIG=... dist            (build/inplace-VERSION.zip, for PGXN)
#
# ./check does all of that, on private servers of its own.

EXTENSION = inplace
MODULE_big = inplace

PG_CONFIG ?= pg_config

# Objects go to a directory of their own, so that the source tree stays clean
# and one tree can be shared by build directories of several servers
# (scripts/build makes those).
OBJDIR = build
SOURCES = $(sort $(wildcard src/*.c src/*/*.c))
OBJS = $(SOURCES:%.c=$(OBJDIR)/%.o)

# This version's script is put together from its parts.  Those of older ones, and
# those that lead from one to the next, are as they were (sql/README.md).
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" inplace.control)
DATA = $(wildcard sql/inplace--*.sql)
SQL_PARTS = $(sort $(wildcard sql/parts/*.sql))
DATA_built = $(OBJDIR)/inplace--$(EXTVERSION).sql

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -Wmissing-prototypes \
	-Wdeclaration-after-statement
EXTRA_CLEAN = $(OBJDIR)

# The tests in the order of the schedule; ./check uses the schedule itself.
REGRESS = $(shell sed -n 's/^test: *//p' test/schedule 2>/dev/null)
REGRESS_OPTS = --inputdir=test --outputdir=$(OBJDIR)/regress

# No LLVM bitcode: inlining into JIT-compiled expressions gains nothing here
# and would need the clang that the server was built with.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
# (What needs no server is made without one.)
ifneq ($(filter-out clean dist distclean indent,$(or $(MAKECMDGOALS),all)),)
ifeq ($(wildcard $(PGXS)),)
$(error '$(PG_CONFIG) --pgxs' names no PostgreSQL with header files: give PG_CONFIG=/path/to/pg_config, and install \
the header files, which Debian has in postgresql-server-dev-15)
endif
endif
include $(PGXS)

# As 16 and later have it for extensions: only what is marked is seen outside.
ifeq ($(MAJORVERSION),15)
override CFLAGS += -fvisibility=hidden
endif

# Unlike PGXS's own rule this one tracks the headers, and recompiles everything
# when make is called for another server, or with other options, than last time.
$(OBJS): $(OBJDIR)/%.o: %.c $(OBJDIR)/server
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

$(DATA_built): $(SQL_PARTS)
	@mkdir -p $(@D)
	cat $^ >$@

$(OBJDIR)/server: FORCE
	@mkdir -p $(@D)
	@$(PG_CONFIG) --version --pgxs --configure --cflags >$@.new
	@echo '$(COPT)' >>$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: FORCE
FORCE:

# What a file of src/ is compiled with, for scripts/check-headers and check-clang.
.PHONY: flags
flags:
	@echo '$(CFLAGS) $(CPPFLAGS)'

# src/ as pgindent of PostgreSQL 18 lays it out.
.PHONY: indent
indent:
	scripts/indent

installcheck: | $(OBJDIR)/regress
$(OBJDIR)/regress:
	mkdir -p $@

# The archive for PGXN, of what has been committed.
.PHONY: dist
dist:
	@mkdir -p $(OBJDIR)
	scripts/check-meta
	git archive --format=zip --prefix=inplace-$(EXTVERSION)/ \
		-o $(OBJDIR)/inplace-$(EXTVERSION).zip HEAD
	@echo $(OBJDIR)/inplace-$(EXTVERSION).zip

-include $(OBJS:.o=.d)
