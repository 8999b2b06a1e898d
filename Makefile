# Builds the extension with PGXS:
#
#   make PG_CONFIG=/path/to/pg_config
#   make PG_CONFIG=... install
#   make PG_CONFIG=... installcheck    (a running server with
#                                       shared_preload_libraries = 'inplace')
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

# The script is sql/inplace--VERSION.sql, or put together from its parts.
DATA = $(wildcard sql/inplace--*.sql)
ifeq ($(DATA),)
SQL_PARTS = $(sort $(wildcard sql/parts/*.sql))
DATA_built = $(OBJDIR)/inplace--0.1.0.sql
endif

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

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Unlike PGXS's own rule this one tracks the headers, and recompiles everything
# when make is called for another server than last time.
$(OBJS): $(OBJDIR)/%.o: %.c $(OBJDIR)/server
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

ifdef SQL_PARTS
$(OBJDIR)/inplace--0.1.0.sql: $(SQL_PARTS)
	@mkdir -p $(@D)
	cat $^ >$@
endif

$(OBJDIR)/server: FORCE
	@mkdir -p $(@D)
	@$(PG_CONFIG) --version --pgxs --configure --cflags >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: FORCE
FORCE:

installcheck: | $(OBJDIR)/regress
$(OBJDIR)/regress:
	mkdir -p $@

# The archive for PGXN, of what has been committed.
VERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" inplace.control)
.PHONY: dist
dist:
	@mkdir -p $(OBJDIR)
	scripts/check-meta
	git archive --format=zip --prefix=inplace-$(VERSION)/ \
		-o $(OBJDIR)/inplace-$(VERSION).zip HEAD
	@echo $(OBJDIR)/inplace-$(VERSION).zip

-include $(OBJS:.o=.d)
