# PostgreSQL 15 of Debian 12 with inplace, from Debian's packages alone.
#
#   docker build -t inplace .
#   docker run -d --name inplace -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD=secret inplace
#   docker exec -it -u postgres inplace psql
#
# The data is in the volume /var/lib/postgresql/data.  The first start makes the
# cluster, and the extension in the databases postgres and template1.

FROM debian:bookworm AS build
RUN apt-get update \
	&& apt-get install -y --no-install-recommends build-essential postgresql-server-dev-15
WORKDIR /src
COPY Makefile inplace.control ./
COPY sql sql
COPY src src
RUN make -j"$(nproc)" PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config \
	&& make install PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config DESTDIR=/inplace

FROM debian:bookworm
# Without a cluster of the package's own.
RUN mkdir -p /etc/postgresql-common \
	&& echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
	&& apt-get update \
	&& apt-get install -y --no-install-recommends locales postgresql-15 \
	&& rm -rf /var/lib/apt/lists/* \
	&& echo 'en_US.UTF-8 UTF-8' >/etc/locale.gen \
	&& locale-gen
COPY --from=build /inplace/ /
COPY docker-entrypoint.sh /usr/local/bin/
ENV LANG=en_US.UTF-8 \
	PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin \
	PGDATA=/var/lib/postgresql/data
RUN install -d -o postgres -g postgres -m 700 "$PGDATA" \
	&& install -d -o postgres -g postgres -m 2775 /var/run/postgresql
USER postgres
VOLUME /var/lib/postgresql/data
EXPOSE 5432
# A fast shutdown.
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
